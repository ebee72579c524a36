"""What is fetched, and how: small answers, short waits, and only from allow-listed places.

Pages of Triton's site describe its newest source; files among its sources are of one release.
"""

import re
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import anyio
import httpx

from pytorch_to_triton.docs.markdown import Form
from pytorch_to_triton.places import version

MOST_PAGES = 300
"""At most this many pages of the site are fetched."""

_GUIDES = (
    "index", "getting-started/installation", "programming-guide/chapter-1/introduction",
    "programming-guide/chapter-2/related-work", "programming-guide/chapter-3/debugging", "python-api/triton",
    "python-api/triton.language", "python-api/triton.testing", "python-api/triton-semantics",
)  # fmt: skip
_TUTORIALS = (
    "01-vector-add", "02-fused-softmax", "03-matrix-multiplication", "04-low-memory-dropout", "05-layer-norm",
    "06-fused-attention", "07-extern-functions", "08-grouped-gemm", "09-persistent-matmul",
    "10-block-scaled-matmul", "11-programmatic-dependent-launch",
)  # fmt: skip
_RELEASE_FILES = (
    *(f"docs/{path}.rst" for path in _GUIDES),
    *(f"python/tutorials/{name}.py" for name in _TUTORIALS),
)
_SECTIONS = ("index", "python-api", "programming-guide", "getting-started", "gluon")
"""Of the site, the most important one first."""

_RELEASE = re.compile(r"\d+\.\d+\.\d+")
_INVENTORY_BYTES = 8 << 20
_DOCUMENT = re.compile(rf"^((?:{'|'.join(_SECTIONS)})(?:/\w[\w.-]*)*) std:doc ", re.MULTILINE)
_TIMES = "sg_execution_times"
"""How long the site's own examples took to run."""
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
class WantedPage:
    """One document to fetch."""

    name: str
    """Of the page that it becomes: `web/main/python-api/triton`, `web/v3.7.1/docs/index.rst`."""
    url: str
    applies_to: str
    form: Form


@dataclass(frozen=True)
class Origins:
    """Where both kinds of documents begin; each ends in a slash."""

    site: str = "https://triton-lang.org/main/"
    sources: str = "https://raw.githubusercontent.com/triton-lang/triton/"

    @property
    def allowed(self) -> tuple[str, str]:
        """The beginnings of every URL that may be asked; each fixes scheme, host and port."""
        return self.site, self.sources

    @property
    def inventory(self) -> str:
        """Sphinx's list of all that the site documents."""
        return f"{self.site}objects.inv"


def tag_of(version: str | None) -> str | None:
    """The release's name among the sources: `v3.7.1` for `3.7.1+git0123`; None where it is not known."""
    release = _RELEASE.match(version or "")
    return f"v{release[0]}" if release else None


def release_files(origins: Origins, version: str | None) -> Iterator[WantedPage]:
    """Documents of the release; none where `version` names no release."""
    tag = tag_of(version)
    for path in _RELEASE_FILES if tag else ():
        yield WantedPage(
            name=f"web/{tag}/{path}",
            url=f"{origins.sources}{tag}/{path}",
            applies_to=f"Triton {tag}".replace(" v", " "),
            form="tutorial" if path.endswith(".py") else "rst",
        )


def site_pages(origins: Origins, version: str | None, inventory: bytes) -> Iterator[WantedPage]:
    """The pages that the site's inventory lists, `MOST_PAGES` at most. They describe the newest source.

    Raises ValueError where the inventory is none.
    """
    release = ".".join(version.split(".")[:2]) if version else None
    paths = {path for path in _DOCUMENT.findall(_inflate(inventory)) if _TIMES not in path}
    ranked = sorted(paths, key=lambda path: (_SECTIONS.index(path.partition("/")[0]), path))
    for path in ranked[:MOST_PAGES]:
        yield WantedPage(
            name=f"web/main/{path}",
            url=f"{origins.site}{path}.html",
            applies_to=f"main, may not match {release}" if release else "main",
            form="html",
        )


def _inflate(inventory: bytes) -> str:
    """The lines of an inventory, which are compressed below a head of four."""
    inflate = zlib.decompressobj()
    try:
        listed = inflate.decompress(inventory.split(b"\n", 4)[4], _INVENTORY_BYTES).decode("utf-8")
    except (IndexError, UnicodeDecodeError, zlib.error) as error:
        raise ValueError("The site's inventory is damaged.") from error
    if not inflate.eof:
        raise ValueError("The site's inventory has no end.")
    return listed


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
            raise NotFetched(f"The answer from {url} broke off: {show(error)}.") from error

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
            raise self._give_up(host, f"{host} asks its clients to wait (Retry-After: {seconds}).")
        if status in _GONE:
            raise Absent(f"{url} does not exist (status {status}).")
        if status != 200:
            raise NotFetched(f"{url} answered with status {status}.")
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
