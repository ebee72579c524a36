"""What is fetched: pages of Triton's site, which describes its newest source, and files of one release."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.docs.markdown import Form

INVENTORY = "objects.inv"
"""Sphinx's list of all that the site documents, next to its front page."""
MAX_DISCOVERED = 240
"""At most this many pages are fetched beyond the ones named here."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset({"text/plain"})
INVENTORY_TYPES = frozenset({"application/octet-stream", "text/plain"})

_GUIDES = (
    "index", "getting-started/installation", "programming-guide/chapter-1/introduction",
    "programming-guide/chapter-2/related-work", "programming-guide/chapter-3/debugging", "python-api/triton",
    "python-api/triton.language", "python-api/triton.testing", "python-api/triton-semantics",
)  # fmt: skip
_TUTORIALS = (
    "01-vector-add", "02-fused-softmax", "03-matrix-multiplication", "04-low-memory-dropout", "05-layer-norm",
    "06-fused-attention", "07-extern-functions", "08-grouped-gemm", "09-persistent-matmul",
    "10-block-scaled-matmul",
)  # fmt: skip
_SITE = (
    *_GUIDES,
    *(f"getting-started/tutorials/{name}" for name in (*_TUTORIALS, "index")),
    "programming-guide/chapter-3/fpsan",
    "python-api/triton.language.extra.cuda",
)
_RELEASE_FILES = (
    *(f"docs/{path}.rst" for path in _GUIDES),
    *(f"python/tutorials/{name}.py" for name in (*_TUTORIALS, "11-programmatic-dependent-launch")),
)

_RELEASE = re.compile(r"\d+\.\d+\.\d+")
_INVENTORY_BYTES = 8 << 20
_INVENTORY_LINE = re.compile(r"(\S+)\s+([\w-]+:[\w-]+)\s+-?\d+\s+(\S+)\s")
_SEGMENT = r"[\w-]+(?:\.[\w-]+)*"
_DISCOVERABLE = re.compile(rf"(?:getting-started|programming-guide|python-api|gluon)(?:/{_SEGMENT})+\.html")
_SKIPPED = "sg_execution_times"
"""How long the site's own examples took to run."""


@dataclass(frozen=True)
class WantedPage:
    """One document to fetch."""

    name: str
    """Of the page that it becomes: `web/main/python-api/triton`, `web/v3.7.1/docs/index.rst`."""
    url: str
    applies_to: str
    form: Form

    @property
    def title(self) -> str:
        """Of a document that has none of its own."""
        return self.name.rpartition("/")[2]

    @property
    def media_types(self) -> frozenset[str]:
        """What the server may call it."""
        return _HTML if self.form == "html" else _TEXT


@dataclass(frozen=True)
class Origins:
    """Where both kinds of documents begin; each ends in a slash."""

    site: str = "https://triton-lang.org/main/"
    sources: str = "https://raw.githubusercontent.com/triton-lang/triton/"


def tag_of(version: str | None) -> str | None:
    """The release's name among the sources: `v3.7.1` for `3.7.1+git0123`; None where it is not known."""
    release = _RELEASE.match(version or "")
    return f"v{release[0]}" if release else None


def site_pages(origins: Origins, version: str | None) -> tuple[WantedPage, ...]:
    """The pages of the site that are known by name. They describe the newest source."""
    return tuple(_site_page(origins, path, version) for path in _SITE)


def release_files(origins: Origins, version: str | None) -> tuple[WantedPage, ...]:
    """Documents of the release, its front page first; none where `version` names no release."""
    tag = tag_of(version)
    if tag is None:
        return ()
    return tuple(
        WantedPage(
            name=f"web/{tag}/{path}",
            url=f"{origins.sources}{tag}/{path}",
            applies_to=f"Triton {tag[1:]}",
            form="tutorial" if path.endswith(".py") else "rst",
        )
        for path in _RELEASE_FILES
    )


def discover(origins: Origins, version: str | None, inventory: bytes) -> tuple[WantedPage, ...]:
    """Further pages that the site's inventory lists, Triton's own reference first, `MAX_DISCOVERED` at most.

    Raises ValueError where the inventory is none.
    """
    known = {page.url for page in site_pages(origins, version)}
    paths = sorted(
        set(_inventory_paths(inventory)), key=lambda path: (not path.startswith("python-api"), path)
    )
    pages = (_site_page(origins, path, version) for path in paths)
    return tuple(page for page in pages if page.url not in known)[:MAX_DISCOVERED]


def _site_page(origins: Origins, path: str, version: str | None) -> WantedPage:
    release = ".".join(version.split(".")[:2]) if version else None
    return WantedPage(
        name=f"web/main/{path}",
        url=f"{origins.site}{path}.html",
        applies_to=f"main, may not match {release}" if release else "main",
        form="html",
    )


def _inventory_paths(inventory: bytes) -> Iterator[str]:
    """Paths of pages, without `.html`."""
    *header, body = inventory.split(b"\n", 4)
    if len(header) < 4 or not header[0].startswith(b"# Sphinx inventory version 2"):
        raise ValueError("The site's inventory is not in the form that is understood.")
    inflate = zlib.decompressobj()
    try:
        listed = inflate.decompress(body, _INVENTORY_BYTES).decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError("The site's inventory is damaged.") from error
    if not inflate.eof:
        raise ValueError("The site's inventory has no end.")
    for line in listed.split("\n"):
        entry = _INVENTORY_LINE.match(line)
        if entry is None:
            continue
        name, kind, uri = entry.groups()
        path = f"{name}.html" if kind == "std:doc" else uri.partition("#")[0].replace("$", name)
        if _DISCOVERABLE.fullmatch(path) and _SKIPPED not in path:
            yield path.removesuffix(".html")
