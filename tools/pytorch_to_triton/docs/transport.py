"""Polite and careful HTTP: few requests, small answers, short waits, and only allow-listed places."""

import hashlib
import ssl
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
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

from pytorch_to_triton.docs.store import Validators
from pytorch_to_triton.places import version

ALLOWED = ("https://triton-lang.org/", "https://raw.githubusercontent.com/triton-lang/triton/")
"""The beginnings of every URL that may be asked; each fixes scheme, host and port."""
USER_AGENT = f"pytorch-to-triton/{version()} (documentation cache)"

_DISGUISED = (b"%2e", b"%2f", b"%5c", b"\\")
"""A server may read these as dots and slashes, and so leave the path that was checked."""
_SHOWN = 200
_FIRST_BACK_OFF_SECONDS = 0.5
_LAST_BACK_OFF_SECONDS = 8.0
_JITTER_SECONDS = 0.5
_PATIENCE = 3
"""A host that fails this many pages in a row, retries included, is not asked again."""
_VALIDATOR_CHARACTERS = 500
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
    """Of an answer."""
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


class NotFetched(Exception):
    """A page that could not be fetched; `reason` is a whole sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AddressRefused(NotFetched):
    """An address that may not be asked, or an answer that leads to one."""


class Absent(NotFetched):
    """The server says that it has no such page."""


class Transient(NotFetched):
    """A failure that may pass by itself."""


class Unreachable(NotFetched):
    """A host that is of no use now, whatever it is asked for."""


class Client:
    """Fetches what begins like one of `allowed`. An async context manager; many tasks may share it.

    `verify` says whom to trust for TLS; None: the certificate authorities that httpx knows. Proxies of the
    environment are not used: they would choose the address to connect to.
    """

    def __init__(
        self,
        allowed: tuple[str, ...] = ALLOWED,
        limits: FetchLimits | None = None,
        clock: Clock | None = None,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self.allowed = allowed
        self.limits = limits or FetchLimits()
        self.clock = clock or Clock()
        timeout = httpx.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        self._http = httpx.AsyncClient(verify=verify or True, timeout=timeout, trust_env=False)
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
            await self._http.aclose()

    async def get(
        self, url: str, media_types: frozenset[str], known: Validators | None = None
    ) -> Document | None:
        """The document at `url`; None where the server says that the one of `known` is still right.

        Raises NotFetched: AddressRefused, Absent, Unreachable, Transient, or itself for an answer of no use.
        """
        host = check(url, self.allowed).host
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
        except Transient as error:
            self._failures[host] += 1
            if self._failures[host] >= _PATIENCE:
                self._given_up[host] = f"{host} is not asked any more, after: {error.reason}"
            raise
        if document is None and known is None:
            raise NotFetched(f"{show(url)} was answered as unchanged, though nothing was known of it.")
        return document

    async def _follow(
        self, url: str, media_types: frozenset[str], known: Validators | None
    ) -> Document | None:
        """Redirects are followed by hand: each address is checked, and no body of theirs is read."""
        request = self._http.build_request("GET", url, headers=_headers(media_types, known))
        for _ in range(self.limits.redirects + 1):
            check(str(request.url), self.allowed)
            await self._turn(request.url.host)
            answer = await self._exchange(request, media_types)
            if not isinstance(answer, httpx.Request):
                return answer
            request = answer
        raise AddressRefused(f"{show(url)} is redirected more than {self.limits.redirects} times.")

    async def _turn(self, host: str) -> None:
        """Wait until the host may be asked again. Raises Unreachable where it was given up."""
        async with self._turns[host]:
            if host in self._given_up:
                raise Unreachable(self._given_up[host])
            wait_seconds = self._next_turn[host] - self.clock.monotonic()
            if wait_seconds > 0:
                await self.clock.sleep(wait_seconds)
            self._next_turn[host] = self.clock.monotonic() + self.limits.pause_seconds

    async def _exchange(
        self, request: httpx.Request, media_types: frozenset[str]
    ) -> Document | httpx.Request | None:
        """The answer to one request, or the request that it redirects to."""
        url, host = show(request.url), request.url.host
        try:
            with anyio.fail_after(self.limits.whole_seconds):
                response = await self._http.send(request, stream=True)
                try:
                    return response.next_request or await self._read(response, media_types)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            seconds = self.limits.whole_seconds
            raise Transient(f"{url} did not answer in full within {seconds:g} s.") from error
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise self._give_up(host, f"No connection to {host} could be made: {show(error)}.") from error
        except httpx.TimeoutException as error:
            raise Transient(f"{url} kept silent for too long.") from error
        except httpx.TransportError as error:
            raise Transient(f"The answer of {url} broke off: {show(error)}.") from error

    async def _read(self, response: httpx.Response, media_types: frozenset[str]) -> Document | None:
        status, url = response.status_code, show(response.url)
        if status in _LATER:
            self._hold_back(response.url.host, response.headers.get("retry-after"))
            raise Transient(f"{url} was answered with status {status}.")
        self._failures[response.url.host] = 0
        if status == 304:
            return None
        if status in _GONE:
            raise Absent(f"There is no {url} (status {status}).")
        if status != 200:
            raise NotFetched(f"{url} was answered with status {status}.")
        media_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type not in media_types:
            expected = " or ".join(sorted(media_types))
            raise NotFetched(f"{url} is of type {show(media_type) or 'unknown'}, not {expected}.")
        body = await self._body(response)
        etag, modified = (_short(response.headers.get(name)) for name in ("etag", "last-modified"))
        digest = hashlib.sha256(body).hexdigest()
        return Document(body, Validators(etag=etag, last_modified=modified, digest=digest))

    def _hold_back(self, host: str, retry_after: str | None) -> None:
        """Let all requests to the host wait as long as it asks. Raises Unreachable where that is too long."""
        seconds = _seconds(retry_after, self.clock.now()) if retry_after else 0.0
        if seconds > self.limits.patience_seconds:
            raise self._give_up(host, f"{host} asks not to be asked again for {seconds:.0f} s.")
        self._next_turn[host] = max(self._next_turn[host], self.clock.monotonic() + seconds)

    async def _body(self, response: httpx.Response) -> bytes:
        """The body within the cap. No compression is asked for: a small piece may unfold to gigabytes."""
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding != "identity":
            raise NotFetched(
                f"{show(response.url)} is compressed as {show(coding)}, which was not asked for."
            )
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > self.limits.max_bytes:
                raise NotFetched(f"{show(response.url)} is larger than {self.limits.max_bytes} bytes.")
        return bytes(body)

    def _give_up(self, host: str, reason: str) -> Unreachable:
        self._given_up[host] = reason
        return Unreachable(reason)


def check(url: str, allowed: tuple[str, ...]) -> httpx.URL:
    """The URL as it is to be asked. Raises AddressRefused where it may not be."""
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise AddressRefused(f"{show(url)} is not a URL: {show(error)}.") from error
    disguised = any(part in read.raw_path.lower() for part in _DISGUISED)
    if read.userinfo or disguised or not any(_begins(read, httpx.URL(place)) for place in allowed):
        raise AddressRefused(f"{show(read)} is not among the places that may be asked: {', '.join(allowed)}.")
    return read


def show(text: object) -> str:
    """Text from outside for a message: on one line, visible, not long."""
    return ascii(str(text))[1:-1][:_SHOWN]


def _begins(url: httpx.URL, place: httpx.URL) -> bool:
    same = (url.scheme, url.host, url.port) == (place.scheme, place.host, place.port)
    return same and url.path.startswith(place.path)


def _headers(media_types: frozenset[str], known: Validators | None) -> dict[str, str]:
    headers = {
        "User-Agent": USER_AGENT,
        "Accept": ", ".join(sorted(media_types)),
        "Accept-Encoding": "identity",
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
