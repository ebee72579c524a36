"""The folder through which the jobs of one validation pass tensors to each other."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.jobs.no_answer import cache_required


@contextmanager
def exchange_folder() -> Iterator[Path]:
    """A new folder, removed with the block; those that ended processes left behind are removed first."""
    root = places.cache() / "exchange"
    folder = root / f"{os.getpid()}-{secrets.token_hex(4)}"
    with cache_required():
        root.mkdir(parents=True, exist_ok=True)
        for old in root.iterdir():
            if not alive(old.name.partition("-")[0]):
                shutil.rmtree(old, ignore_errors=True)
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
