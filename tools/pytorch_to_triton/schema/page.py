"""A page of documentation, wherever it comes from."""

from datetime import datetime
from typing import Literal

from pytorch_to_triton.schema.value import Value

Source = Literal["installed", "guide", "fetched"]
"""installed: read from the installed Triton itself; guide: written here; fetched: a public page."""


class Page(Value):
    """One page, as Markdown."""

    name: str
    """Unique, as `docs read` takes it: `triton.language.load`, `guides/masks`, `web/tutorials/index`."""
    title: str
    source: Source
    applies_to: str
    """Which Triton: `Triton 3.7.1 (installed)`, `Triton 3.6 to 3.9`, `main, may not match 3.7`."""
    text: str
    """Markdown, starting with a heading of level 1."""
    url: str | None = None
    """Where it was fetched from."""
    fetched: datetime | None = None
    """When the server last confirmed it."""
