"""Author's files written to a folder of their own, loaded and run under the watchers."""

import importlib.util
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from pytorch_to_triton.worker.integrity.sandbox import Sandbox
from pytorch_to_triton.worker.wire.observation import SandboxViolation


class Author:
    """A fresh folder with the author's file in it, a secret folder and one to be kept as it is."""

    def __init__(self, source: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="integrity-"))
        self.secret, self.kept = self.folder / "secret", self.folder / "kept"
        for folder in (self.secret, self.kept):
            folder.mkdir()
            (folder / "values.bin").write_bytes(b"1234")
        self.file = self.folder / "candidate.py"
        places = f"SECRET, KEPT = {str(self.secret)!r}, {str(self.kept)!r}\n"
        self.file.write_text(places + source)
        self.reported: list[SandboxViolation] = []
        self.sandbox = Sandbox([self.secret], [self.kept], self.reported.append)

    def load(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location("candidate", self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        return module

    def act(self) -> None:
        """Load the file and call its `act`; what is refused may reach it or not."""
        with self.sandbox.watching(), suppress(Exception):
            self.load().act()


def kinds(source: str) -> set[str]:
    """The kinds of violation that the author's `act` leaves."""
    author = Author(source)
    author.act()
    assert author.reported == author.sandbox.violations
    return {record.kind for record in author.sandbox.violations}


def act(*lines: str) -> str:
    """A file whose `act` has these lines."""
    return "def act():\n" + "".join(f"    {line}\n" for line in lines)
