"""The outcome of fetching documentation pages."""

from datetime import datetime
from pathlib import Path

from pytorch_to_triton.schema.value import Value


class Failed(Value):
    """A page that could not be fetched; an earlier copy stays."""

    name: str
    url: str
    reason: str
    """A whole sentence."""


class FetchReport(Value):
    """Which pages were fetched, from where and when; pages are named as `docs read` takes them."""

    summary: str
    """What a person would say."""
    next_step: str
    version: str | None
    """The Triton release that pages were asked for; None where it is not known."""
    fetched: tuple[str, ...] = ()
    """New, or changed since the last time."""
    unchanged: tuple[str, ...] = ()
    """The server confirmed them."""
    fresh: tuple[str, ...] = ()
    """Not asked for, since the server confirmed them less than a day ago."""
    absent: tuple[str, ...] = ()
    """The server does not have them, as happens where releases differ."""
    failed: tuple[Failed, ...] = ()
    origins: tuple[str, ...]
    """The beginnings of the URLs that were asked."""
    started: datetime
    ended: datetime
    folder: Path
    """Where the pages are."""
