"""Fetched pages on disk: one file a page, written whole or not at all, dropped when damaged."""

import hashlib
import os
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import ValidationError

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.places import UNFINISHED, write_atomically
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.schema.value import Value

_ENDING = ".json"
_ABANDONED_SECONDS = 3600.0
_READABLE_CHARACTERS = 80


class Validators(Value):
    """What shows whether the server's page is still the one that was fetched."""

    etag: str | None = None
    last_modified: str | None = None
    digest: str
    """SHA-256 of the body as it was sent, in hexadecimal."""


class StoredPage(Value):
    """A page with what is known about its fetching."""

    format: Literal[2] = 2
    """Raised when pages are turned into Markdown differently: older files are fetched again."""
    page: Page
    validators: Validators
    text_digest: str
    """SHA-256 of the page's text, in hexadecimal: files do get damaged."""


class PageStore:
    """The pages below one folder. Many processes may use it at once; the last to write a page wins.

    `damaged` names the files that this object found unreadable and dropped.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.damaged: list[str] = []

    def prepare(self) -> None:
        """Make the folder, and remove what killed writers left. Raises MissingRequirement if it cannot."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for left in self.root.glob(f"*{UNFINISHED}"):
                with suppress(FileNotFoundError):
                    if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                        left.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def pages(self) -> list[Page]:
        """All pages by name; none where nothing was fetched yet."""
        entries = [self._read(path) for path in self.root.glob(f"*{_ENDING}")]
        return sorted((entry.page for entry in entries if entry), key=lambda page: page.name)

    def get(self, name: str) -> Page | None:
        """The page of that name; None where it was not fetched, or was damaged."""
        entry = self.entry(name)
        return entry.page if entry else None

    def entry(self, name: str) -> StoredPage | None:
        """The page of that name with its validators; None where there is none, or was damaged."""
        return self._read(self.root / _file_name(name))

    def put(self, page: Page, validators: Validators) -> None:
        """Keep the page in place of an earlier one of its name. Raises MissingRequirement where it cannot."""
        entry = StoredPage(page=page, validators=validators, text_digest=_digest(page.text))
        try:
            write_atomically(self.root / _file_name(page.name), entry.model_dump_json(indent=1))
        except OSError as error:
            raise self._unwritable(error) from error

    def touch(self, entry: StoredPage, when: datetime, applies_to: str) -> None:
        """Note that the server confirmed the page at `when`, and of which Triton it now speaks."""
        self.put(entry.page.model_copy(update={"fetched": when, "applies_to": applies_to}), entry.validators)

    def _read(self, path: Path) -> StoredPage | None:
        try:
            with path.open("rb") as file:
                read = os.fstat(file.fileno())
                text = file.read()
        except OSError:
            return None
        try:
            entry = StoredPage.model_validate_json(text)
        except ValidationError:
            entry = None
        if (
            entry
            and entry.text_digest == _digest(entry.page.text)
            and _file_name(entry.page.name) == path.name
        ):
            return entry
        self._drop(path, read)
        return None

    def _drop(self, path: Path, read: os.stat_result) -> None:
        self.damaged.append(path.name)
        with suppress(OSError):
            # Another process may have put a sound page there since it was read.
            if os.path.samestat(read, path.stat()):
                path.unlink()

    def _unwritable(self, error: OSError) -> MissingRequirement:
        return MissingRequirement(
            f"Pages cannot be written to {self.root}: {error.strerror or error}.",
            "Free some space or make it writable, or name another folder in PYTORCH_TO_TRITON_CACHE.",
        )


def _file_name(name: str) -> str:
    """A file name for any page name: the digest keeps names apart that a file system takes for the same."""
    return f"{quote(name, safe='')[:_READABLE_CHARACTERS]}-{_digest(name)[:16]}{_ENDING}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
