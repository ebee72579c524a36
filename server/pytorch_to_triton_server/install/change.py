"""What an entry changes in a client's file, and making that change."""

import difflib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.install import json_text, toml_text
from pytorch_to_triton_server.install.clients import SERVER, McpClient, Scope
from pytorch_to_triton_server.install.unreadable import Unreadable

Action = Literal["added", "updated", "unchanged", "removed", "absent"]
BACKUP = f".before-{SERVER}"
"""The ending of the copy that is kept of a file as it was before its first change."""
MOST_BYTES = 32 << 20


@dataclass(frozen=True)
class FileChange:
    """A file's text before and after; `after` is None where the file goes."""

    file: Path
    action: Action
    before: str | None
    """None if there was no file."""
    after: str | None

    @property
    def backup(self) -> Path:
        """Where the file is kept as it was before its first change."""
        return self.file.with_name(self.file.name + BACKUP)

    def diff(self) -> str:
        """The change as a unified diff."""
        lines = ((self.before or "").splitlines(keepends=True), (self.after or "").splitlines(keepends=True))
        return "".join(difflib.unified_diff(*lines, f"{self.file} (now)", f"{self.file} (then)"))

    def make(self) -> None:
        """FileChange the file whole or not at all, once it has a copy. Raises BadInput."""
        try:
            if self.after is not None and self.before != self.after:
                self._write(self.after)
            elif self.after is None and self.before is not None:
                self.file.unlink()
            if self.action == "removed" and self.backup.is_file() and self.after == _text_of(self.backup):
                self.backup.unlink()
        except OSError as error:
            raise BadInput(
                f"{self.file} cannot be written: {error.strerror or error}.",
                "Correct its permissions, or enter the server there yourself: --dry-run shows the change.",
            ) from error

    def _write(self, text: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self.before is not None and not self.backup.exists():
            shutil.copy2(self.file, self.backup)
        part = self.file.with_name(f".{self.file.name}.{secrets.token_hex(4)}")
        # It may hold secrets: until it has its permissions, nobody else can read it.
        with open(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8", newline=""
        ) as new:
            new.write(text)
        try:
            if self.before is not None:
                shutil.copymode(self.file, part)
            part.replace(self.file)
        finally:
            part.unlink(missing_ok=True)


def adding(client: McpClient, scope: Scope, command: list[str]) -> FileChange:
    """What enters a command as the server; fields that the user added to the entry stay. Raises BadInput."""
    file, before, forms = _opened(client, scope)
    return _guarded(client, file, lambda: _added(client, file, before, forms, command))


def removing(client: McpClient, scope: Scope) -> FileChange:
    """What takes the entry out again. Raises BadInput."""
    file, before, forms = _opened(client, scope)
    return _guarded(client, file, lambda: _removed(client, file, before, forms))


def _added(
    client: McpClient, file: Path, before: str | None, forms: ModuleType, command: list[str]
) -> FileChange:
    text = before or ""
    known = forms.read(text)
    section = known.get(client.section, {})
    if not isinstance(section, dict):
        raise Unreadable(f'its "{client.section}" is not an object')
    old = section.get(SERVER)
    entry = {**(old if isinstance(old, dict) else {}), **client.entry(command)}
    if old == entry:
        return FileChange(file, "unchanged", before, before)
    after = forms.with_entry(text, client.section, SERVER, entry)
    _verify(forms.read(after), {**known, client.section: {**section, SERVER: entry}})
    return FileChange(file, "added" if old is None else "updated", before, after)


def _removed(client: McpClient, file: Path, before: str | None, forms: ModuleType) -> FileChange:
    text = before or ""
    known = forms.read(text)
    section = known.get(client.section)
    if before is None or not isinstance(section, dict) or SERVER not in section:
        return FileChange(file, "absent", before, before)
    after = _original(client, file, text, forms) or forms.without_entry(text, client.section, SERVER)
    others = {key: value for key, value in section.items() if key != SERVER}
    expected = {**known, client.section: others}
    _verify({client.section: {}, **forms.read(after)}, expected)
    backup = FileChange(file, "removed", before, None).backup
    ours = not any(others.values()) and not forms.read(after) and not backup.exists()
    return FileChange(file, "removed", before, None if ours else after)


def _original(client: McpClient, file: Path, text: str, forms: ModuleType) -> str | None:
    """The kept copy, if the entry is all that was changed since."""
    backup = FileChange(file, "removed", text, None).backup
    if not backup.is_file():
        return None
    original = _text_of(backup)
    entry = forms.read(text)[client.section][SERVER]
    try:
        same = forms.with_entry(original, client.section, SERVER, entry) == text
    except Unreadable:
        return None
    return original if same and SERVER not in forms.read(original).get(client.section, {}) else None


def _opened(client: McpClient, scope: Scope) -> tuple[Path, str | None, ModuleType]:
    """The file behind any links, its text, and who reads its form."""
    named = client.file(scope)
    if named is None:
        raise BadInput(f"{client.title} has no file for one project.", "Leave out --scope project.")
    try:
        file = named.resolve()
        text = _text_of(file) if file.exists() else None
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{named} cannot be read: {error}.", "Correct the file, then try again.") from error
    return file, text, toml_text if client.form == "toml" else json_text


def _text_of(file: Path) -> str:
    from pytorch_to_triton.places import read_regular

    return read_regular(file, MOST_BYTES).decode("utf-8")


def _guarded(client: McpClient, file: Path, change: Any) -> FileChange:
    try:
        made: FileChange = change()
    except (Unreadable, IndexError) as error:
        raise BadInput(
            f"{file} is left as it is: {error}.",
            f"Correct it, or enter the server yourself, as references/installing.md says of {client.title}.",
        ) from error
    return made


def _verify(read: dict[str, Any], expected: dict[str, Any]) -> None:
    if read != expected:
        raise Unreadable("its entry cannot be changed without touching more")
