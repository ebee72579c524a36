"""Whole results in files, for answers that were cut; only the latest are kept."""

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pytorch_to_triton import places

MOST_FILES = 50
MOST_BYTES = 256 << 20


def keep(tool: str, text: str) -> Path:
    """Write a result of a tool into a new file of the cache, and remove the oldest. Raises OSError."""
    folder = places.results()
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    file = folder / f"{now}-{tool}-{secrets.token_hex(3)}.json"
    places.write_atomically(file, text)
    _make_room(folder, file)
    return file


def _make_room(folder: Path, newest: Path) -> None:
    """Remove the oldest files above the limits on number and total size, but never the newest."""
    left = MOST_BYTES
    for number, file in enumerate(sorted(folder.glob("*.json"), reverse=True)):  # names begin with the time
        with suppress(FileNotFoundError):  # other servers remove files as well
            left -= file.stat().st_size
            if file != newest and (number >= MOST_FILES or left < 0):
                file.unlink()
