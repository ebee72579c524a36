"""The guides that ship with this project, as pages."""

from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.docs.sections import sections_of
from pytorch_to_triton.schema.page import Page

PREFIX = "guides/"
APPLIES_TO = "Triton 3.6 to 3.9"


def guide_files() -> list[Path]:
    """The files of the guides, by name. Raises FileNotFoundError where they are not installed."""
    return sorted(places.shipped("docs_cache/guides").glob("*.md"))


def guide_pages() -> list[Page]:
    """Each guide as the page `guides/NAME`, its first heading as the title."""
    return [page_of(file) for file in guide_files()]


def page_of(file: Path) -> Page:
    """One guide. A file that does not start with a heading of level 1 takes its name as the title."""
    text = file.read_text(encoding="utf-8")
    first = next(iter(sections_of(text)), None)
    title = first.headings[0] if first is not None and first.headings else file.stem.replace("_", " ")
    return Page(name=f"{PREFIX}{file.stem}", title=title, source="guide", applies_to=APPLIES_TO, text=text)
