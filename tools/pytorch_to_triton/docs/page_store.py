"""Fetched pages on disk: each is a file, written whole or not at all."""

import hashlib
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import ValidationError

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.places import write_atomically
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.schema.value import Value

_READABLE_CHARACTERS = 80


class StoredPage(Value):
    """A page with what is known about its fetching."""

    format: Literal[3] = 3
    """Raised when pages are turned into Markdown differently: older files are fetched again."""
    page: Page
    conditions: dict[str, str]
    """Headers that ask the server to send the page only where it has changed."""


class PageStore:
    """The pages below one folder. Many processes may use it at once; the last to write a page wins."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def pages(self) -> list[Page]:
        """All pages by name; none where nothing was fetched yet."""
        entries = (_read(path) for path in self.root.glob("*.json"))
        return sorted((entry.page for entry in entries if entry), key=lambda page: page.name)

    def entry(self, name: str) -> StoredPage | None:
        """The page of that name as it is stored; None where it was not fetched, or was damaged."""
        return _read(self._file(name))

    def put(self, entry: StoredPage) -> None:
        """Keep a page in place of an earlier one of its name. Raises MissingRequirement where it cannot."""
        try:
            write_atomically(self._file(entry.page.name), entry.model_dump_json(indent=1))
        except OSError as error:
            raise MissingRequirement(
                f"Pages cannot be written to {self.root}: {error.strerror or error}.",
                "Free some space or make it writable, or name another folder in PYTORCH_TO_TRITON_CACHE.",
            ) from error

    def _file(self, name: str) -> Path:
        """The digest keeps names apart that a file system takes for the same, and long ones short."""
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self.root / f"{quote(name, safe='')[:_READABLE_CHARACTERS]}-{digest}.json"


def _read(path: Path) -> StoredPage | None:
    try:
        return StoredPage.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
