"""What is fetched: pages of Triton's site, which describes its newest source, and files of one release."""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.docs.markdown import Form

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
