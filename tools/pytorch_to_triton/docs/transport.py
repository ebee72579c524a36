"""Polite and careful HTTP: few requests, small answers, short waits, and nothing beyond the gate."""

import hashlib
import ssl
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import anyio
import httpx
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from pytorch_to_triton.docs.address import AddressRefused, Gate, NotFetched, Unreachable, shown
from pytorch_to_triton.docs.store import Validators
from pytorch_to_triton.places import version

USER_AGENT = f"pytorch-to-triton/{version()} (documentation cache)"
_FIRST_BACK_OFF_SECONDS = 0.5
_LAST_BACK_OFF_SECONDS = 8.0
_JITTER_SECONDS = 0.5
_ADDRESSES = 4
"""So many addresses of a host are tried before it counts as unreachable."""
_PATIENCE = 3
"""A host that fails this many pages in a row, retries included, is not asked again."""
_VALIDATOR_CHARACTERS = 500
_REDIRECTS = {301, 302, 303, 307, 308}
_GONE = {404, 410}
_LATER = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may cost at most."""

    connect_seconds: float = 10.0
    read_seconds: float = 20.0
    """Silence between two pieces of an answer."""
    whole_seconds: float = 60.0
    """From a request to the end of its answer."""
    max_bytes: int = 2 << 20
    """Of an answer, before and after decompression."""
    redirects: int = 5
    attempts: int = 4
    patience_seconds: float = 60.0
    """The longest Retry-After that is waited for."""
    pause_seconds: float = 0.2
    """Between the beginnings of two requests to one host."""


@dataclass(frozen=True)
class Clock:
    """Time, and waiting for it."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


@dataclass(frozen=True)
class Document:
    """What a server sent, whole."""

    body: bytes
    validators: Validators


class Absent(NotFetched):
    """The server says that it has no such page."""


class Transient(NotFetched):
    """A failure that may pass by itself."""


class Client:
    """Fetches what the gate lets through. An async context manager; many tasks may share it.

    `verify` says whom to trust for TLS; None: the certificate authorities that httpx knows. Proxies of the
    environment are not used: they would choose the address to connect to.
    """

    def __init__(
        self,
        gate: Gate | None = None,
        limits: FetchLimits | None = None,
        clock: Clock | None = None,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self.gate = gate or Gate()
        self.limits = limits or FetchLimits()
        self.clock = clock or Clock()
        self._verify = verify or httpx.create_ssl_context()
        # One client a host: a connection verified for one host must not serve another at the same address.
        self._clients: defaultdict[str, httpx.AsyncClient] = defaultdict(self._new_client)
        self._turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._next_turn: defaultdict[str, float] = defaultdict(float)
        self._failures: Counter[str] = Counter()
        self._given_up: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            for client in self._clients.values():
                await client.aclose()

    async def get(
        self, url: str, media_types: frozenset[str], known: Validators | None = None
    ) -> Document | None:
        """The document at `url`; None where the server says that the one of `known` is still right.

        Raises NotFetched: Refused, Absent, Unreachable, Transient, or itself for an answer of no use.
        """
        host = self.gate.checked(url).host
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.limits.attempts),
            wait=wait_exponential(_FIRST_BACK_OFF_SECONDS, _LAST_BACK_OFF_SECONDS)
            + wait_random(0, _JITTER_SECONDS),
            retry=retry_if_exception_type(Transient),
            sleep=self.clock.sleep,
            reraise=True,
        )
        try:
            document: Document | None = await retrying(self._follow, url, media_types, known)
        except Unreachable as error:
            self._given_up[error.host] = error.reason
            raise
        except Transient as error:
            self._failures[host] += 1
            if self._failures[host] >= _PATIENCE:
                self._given_up[host] = f"{host} is not asked any more, after: {error.reason}"
            raise
        except NotFetched:
            self._failures[host] = 0
            raise
        self._failures[host] = 0
        if document is None and known is None:
            raise NotFetched(f"{shown(url)} was answered as unchanged, though nothing was known of it.")
        return document

    async def _follow(
        self, url: str, media_types: frozenset[str], known: Validators | None
    ) -> Document | None:
        """Redirects are followed by hand, so that the gate sees each of them."""
        place = self.gate.checked(url)
        seen: set[httpx.URL] = set()
        while len(seen) <= self.limits.redirects:
            if place in seen:
                raise AddressRefused(f"{shown(url)} is redirected in a circle.")
            seen.add(place)
            answer = await self._exchange(place, media_types, known)
            if not isinstance(answer, httpx.URL):
                return answer
            place = answer
        raise AddressRefused(f"{shown(url)} is redirected more than {self.limits.redirects} times.")

    async def _exchange(
        self, url: httpx.URL, media_types: frozenset[str], known: Validators | None
    ) -> Document | httpx.URL | None:
        await self._turn(url.host)
        try:
            with anyio.fail_after(self.limits.whole_seconds):
                async with self._sent(url, _headers(media_types, known)) as response:
                    return await self._read(url, response, media_types)
        except TimeoutError as error:
            seconds = self.limits.whole_seconds
            raise Transient(f"{shown(url)} did not answer in full within {seconds:g} s.") from error
        except httpx.TimeoutException as error:
            raise Transient(f"{shown(url)} kept silent for too long.") from error
        except httpx.TransportError as error:
            raise Transient(f"The answer of {shown(url)} broke off: {shown(error)}.") from error

    async def _turn(self, host: str) -> None:
        """Wait until the host may be asked again. Raises Unreachable where it was given up."""
        async with self._turns[host]:
            if host in self._given_up:
                raise Unreachable(host, self._given_up[host])
            wait_seconds = self._next_turn[host] - self.clock.monotonic()
            if wait_seconds > 0:
                await self.clock.sleep(wait_seconds)
            self._next_turn[host] = self.clock.monotonic() + self.limits.pause_seconds

    @asynccontextmanager
    async def _sent(self, url: httpx.URL, headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """The answer's head, from an address that was checked: the name is not resolved a second time."""
        client = self._clients[url.host]
        named = {**headers, "Host": url.netloc.decode("ascii")}
        tls = {"sni_hostname": url.host}
        failure: httpx.TransportError | None = None
        for address in await self._addresses(url.host):
            request = client.build_request("GET", url.copy_with(host=address), headers=named, extensions=tls)
            try:
                response = await client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
                continue
            try:
                yield response
            finally:
                await response.aclose()
            return
        if isinstance(failure, httpx.ConnectTimeout):
            raise failure
        raise Unreachable(url.host, f"No connection to {url.host} could be made: {shown(failure)}.")

    async def _addresses(self, host: str) -> tuple[str, ...]:
        """Where to connect to. A name that is not resolved in time counts as one that cannot be: see Gate."""
        seconds = self.limits.connect_seconds
        try:
            with anyio.fail_after(seconds):
                return (await self.gate.addresses(host))[:_ADDRESSES]
        except TimeoutError as error:
            raise Unreachable(host, f"The name {host} was not resolved within {seconds:g} s.") from error

    async def _read(
        self, url: httpx.URL, response: httpx.Response, media_types: frozenset[str]
    ) -> Document | httpx.URL | None:
        status = response.status_code
        if status == 304:
            return None
        if status in _REDIRECTS and "location" in response.headers:
            return self.gate.checked(response.headers["location"], url)
        if status in _GONE:
            raise Absent(f"There is no {shown(url)} (status {status}).")
        if status in _LATER:
            self._hold_back(url.host, response.headers.get("retry-after"))
            raise Transient(f"{shown(url)} was answered with status {status}.")
        if status != 200:
            raise NotFetched(f"{shown(url)} was answered with status {status}.")
        media_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type not in media_types:
            expected = " or ".join(sorted(media_types))
            raise NotFetched(f"{shown(url)} is of type {shown(media_type) or 'unknown'}, not {expected}.")
        body = await self._body(url, response)
        etag, modified = (_short(response.headers.get(name)) for name in ("etag", "last-modified"))
        digest = hashlib.sha256(body).hexdigest()
        return Document(body, Validators(etag=etag, last_modified=modified, digest=digest))

    def _hold_back(self, host: str, retry_after: str | None) -> None:
        """Let all requests to the host wait as long as it asks. Raises Unreachable where that is too long."""
        seconds = _seconds(retry_after, self.clock.now()) if retry_after else 0.0
        if seconds > self.limits.patience_seconds:
            raise Unreachable(host, f"{host} asks not to be asked again for {seconds:.0f} s.")
        self._next_turn[host] = max(self._next_turn[host], self.clock.monotonic() + seconds)

    async def _body(self, url: httpx.URL, response: httpx.Response) -> bytes:
        """The body within the cap. Decompressed here, since a small piece may unfold to gigabytes at once."""
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", "gzip"):
            raise NotFetched(f"{shown(url)} is compressed as {shown(coding)}, which was not asked for.")
        too_large = NotFetched(f"{shown(url)} is larger than {self.limits.max_bytes} bytes.")
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if coding == "gzip" else None
        body, sent_bytes = bytearray(), 0
        async for piece in response.aiter_raw():
            sent_bytes += len(piece)
            remaining = self.limits.max_bytes + 1 - len(body)
            try:
                body += inflate.decompress(piece, remaining) if inflate else piece
            except zlib.error as error:
                raise NotFetched(f"{shown(url)} is not compressed as it says: {shown(error)}.") from error
            if max(len(body), sent_bytes) > self.limits.max_bytes:
                raise too_large
        if inflate and not inflate.eof:
            raise Transient(f"The answer of {shown(url)} broke off.")
        return bytes(body)

    def _new_client(self) -> httpx.AsyncClient:
        timeout = httpx.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        return httpx.AsyncClient(
            verify=self._verify, timeout=timeout, trust_env=False, follow_redirects=False
        )


def _headers(media_types: frozenset[str], known: Validators | None) -> dict[str, str]:
    headers = {
        "User-Agent": USER_AGENT,
        "Accept": ", ".join(sorted(media_types)),
        "Accept-Encoding": "gzip",
    }
    if known and known.etag:
        headers["If-None-Match"] = known.etag
    if known and known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


def _seconds(retry_after: str, now: datetime) -> float:
    """The header's wait in seconds, from a number or a date; 0 where it is neither."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())


def _short(validator: str | None) -> str | None:
    return validator if validator and len(validator) <= _VALIDATOR_CHARACTERS else None
