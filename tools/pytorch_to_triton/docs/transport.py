"""Polite and careful HTTP: small answers, short waits, and only allow-listed places."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
import httpx

from pytorch_to_triton.docs.sources import Origins
from pytorch_to_triton.places import version

_HEADERS = {
    "User-Agent": f"pytorch-to-triton/{version()} (documentation cache)",
    # A small compressed answer may unfold to gigabytes.
    "Accept-Encoding": "identity",
}
_CONDITIONS = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}
"""The headers of a request by the headers of an answer that they repeat."""
_GONE = {404, 410}
_RETRIES = 2
"""Of a connection that cannot be made."""


@dataclass(frozen=True)
class FetchLimits:
    """What one fetch may cost at most."""

    connect_seconds: float = 10.0
    whole_seconds: float = 60.0
    """From a request to the end of its answer, redirects included."""
    max_bytes: int = 2 << 20
    """Of an answer."""


@dataclass(frozen=True)
class Document:
    """What a server sent, whole."""

    body: bytes
    conditions: dict[str, str]
    """Headers for the next time: the server is to send the document only where it has changed."""


class NotFetched(Exception):
    """A page that could not be fetched; its text is a whole sentence."""


class Absent(NotFetched):
    """The server says that it has no such page."""


class Client:
    """Fetches what lies below the origins. Many tasks may share it; to be closed.

    `verify` says whom to trust for TLS; None: the certificate authorities that httpx knows. Proxies of the
    environment are not used: they would choose the address to connect to.
    """

    def __init__(
        self,
        origins: Origins | None = None,
        limits: FetchLimits | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self.origins = origins or Origins()
        self.limits = limits or FetchLimits()
        self.now = now
        self._http = httpx.AsyncClient(
            headers=_HEADERS,
            timeout=httpx.Timeout(None, connect=self.limits.connect_seconds),
            follow_redirects=True,
            event_hooks={"request": [self._check]},
            trust_env=False,
            transport=httpx.AsyncHTTPTransport(verify or True, trust_env=False, retries=_RETRIES),
        )
        self._given_up: dict[str, str] = {}
        """The hosts that are not asked any more, each with the reason."""

    async def aclose(self) -> None:
        """Give the connections back, as contextlib.aclosing asks for it."""
        await self._http.aclose()

    async def get(self, url: str, conditions: Mapping[str, str] | None = None) -> Document | None:
        """The document at `url`; None where the server says that it is still the one of the conditions.

        Raises NotFetched, and Absent where there is no such page. The next fetch goes on where this one
        stopped, so nothing but a connection is tried again here.
        """
        try:
            with anyio.fail_after(self.limits.whole_seconds):
                async with self._http.stream("GET", url, headers=conditions) as response:
                    return None if conditions and response.status_code == 304 else await self._read(response)
        except TimeoutError as error:
            reason = f"{url} did not answer in full within {self.limits.whole_seconds:g} s."
            raise self._give_up(httpx.URL(url).host, reason) from error
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            host = error.request.url.host
            raise self._give_up(host, f"No connection to {host} could be made: {show(error)}.") from error
        except httpx.RequestError as error:
            raise NotFetched(f"The answer of {url} broke off: {show(error)}.") from error

    async def _check(self, request: httpx.Request) -> None:
        """Called by httpx before each request, those of redirects included."""
        if not may_be_asked(request.url, self.origins):
            places = " and ".join(self.origins.allowed)
            raise NotFetched(f"{show(request.url)} is not among the places that may be asked: {places}.")
        if request.url.host in self._given_up:
            raise NotFetched(self._given_up[request.url.host])

    async def _read(self, response: httpx.Response) -> Document:
        status, url = response.status_code, response.url
        if "retry-after" in response.headers:
            host, seconds = url.host, show(response.headers["retry-after"])
            raise self._give_up(host, f"{host} asks not to be asked again for now (Retry-After: {seconds}).")
        if status in _GONE:
            raise Absent(f"There is no {url} (status {status}).")
        if status != 200:
            raise NotFetched(f"{url} was answered with status {status}.")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > self.limits.max_bytes:
                raise NotFetched(f"{url} is larger than {self.limits.max_bytes} bytes.")
        tags = {condition: response.headers.get(tag) for condition, tag in _CONDITIONS.items()}
        return Document(bytes(body), {condition: tag for condition, tag in tags.items() if tag})

    def _give_up(self, host: str, reason: str) -> NotFetched:
        self._given_up[host] = reason
        return NotFetched(reason)


def may_be_asked(url: httpx.URL, origins: Origins) -> bool:
    """Whether a URL begins like one of the origins, as httpx writes it: `..` is gone."""
    # A server may read an escape as a dot or slash, and so leave the path that is checked here.
    return str(url).startswith(origins.allowed) and "%" not in str(url)


def show(text: object) -> str:
    """Text from outside for a message: on one line, visible, not long."""
    return ascii(str(text))[1:-1][:200]
