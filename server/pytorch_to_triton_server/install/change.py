"""What an entry changes in a client's file, and making that change."""

import difflib
import os
import secrets
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.places import read_regular
from pytorch_to_triton_server.install.clients import SERVER, McpClient, Scope

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
    entry: Any = None
    """The server's entry before, as the file has it."""

    @property
    def backup(self) -> Path:
        """Where the file is kept as it was before its first change."""
        return self.file.with_name(self.file.name + BACKUP)

    def diff(self) -> str:
        """The change as a unified diff."""
        lines = ((self.before or "").splitlines(keepends=True), (self.after or "").splitlines(keepends=True))
        return "".join(difflib.unified_diff(*lines, f"{self.file} (now)", f"{self.file} (then)"))

    def make(self) -> None:
        """Change the file whole or not at all, once it has a copy. Raises BadInput."""
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
                "Correct its permissions, or add the server there yourself: --dry-run shows the change.",
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


def plan_change(client: McpClient, scope: Scope, command: list[str] | None) -> FileChange:
    """What enters a command as the server, or takes its entry out again where there is no command.

    Fields that the user added to the entry stay. Raises BadInput where the file is better left as it is.
    """
    named = client.file(scope)
    if named is None:
        raise BadInput(f"{client.title} has no file for a single project.", "Leave out --scope project.")
    try:
        file = named.resolve()
        text = _text_of(file) if file.exists() else None
    except (OSError, ValueError, RuntimeError) as error:
        raise BadInput(f"{named} cannot be read: {error}.", "Correct the file, then try again.") from error
    try:
        if command is None:
            return _remove_entry(client, file, text)
        return _add_entry(client, file, text, client.entry(command))
    except (ValueError, IndexError) as error:
        raise BadInput(
            f"{file} is left as it is: {error}.",
            f"Correct it, or add the server yourself, as references/installing.md says for {client.title}.",
        ) from error


def _add_entry(client: McpClient, file: Path, before: str | None, wanted: dict[str, Any]) -> FileChange:
    forms, text = _forms(client), before or ""
    content = forms.read(text)
    section = content.get(client.section, {})
    if not isinstance(section, dict):
        raise ValueError(f'its "{client.section}" is not an object')
    old = section.get(SERVER)
    entry = {**(old if isinstance(old, dict) else {}), **wanted}
    if old == entry:
        return FileChange(file, "unchanged", before, before, old)
    after = forms.with_entry(text, client.section, SERVER, entry)
    _verify(forms.read(after), {**content, client.section: {**section, SERVER: entry}})
    return FileChange(file, "added" if old is None else "updated", before, after, old)


def _remove_entry(client: McpClient, file: Path, before: str | None) -> FileChange:
    forms, text = _forms(client), before or ""
    content = forms.read(text)
    section = content.get(client.section)
    if not isinstance(section, dict) or SERVER not in section:
        return FileChange(file, "absent", before, before)
    change = FileChange(file, "removed", before, None, section[SERVER])
    after = _original(client, change) or forms.without_entry(text, client.section, SERVER)
    others = {key: value for key, value in section.items() if key != SERVER}
    _verify({client.section: {}, **forms.read(after)}, {**content, client.section: others})
    ours = not others and not forms.read(after) and not change.backup.exists()
    return change if ours else replace(change, after=after)


def _original(client: McpClient, change: FileChange) -> str | None:
    """The kept copy, if the entry is all that was changed since."""
    if not change.backup.is_file():
        return None
    forms, original = _forms(client), _text_of(change.backup)
    try:
        is_all = forms.with_entry(original, client.section, SERVER, change.entry) == change.before
    except ValueError:
        return None
    return original if is_all and SERVER not in forms.read(original).get(client.section, {}) else None


def _forms(client: McpClient) -> ModuleType:
    """Who reads and changes texts of the client's form."""
    from pytorch_to_triton_server.install import json_text, toml_text

    return toml_text if client.form == "toml" else json_text


def _text_of(file: Path) -> str:
    return read_regular(file, MOST_BYTES).decode("utf-8")


def _verify(content: dict[str, Any], expected: dict[str, Any]) -> None:
    if content != expected:
        raise ValueError("its entry cannot be changed without touching more")
