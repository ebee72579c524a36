"""What all processes of a validation share, and the folder through which they pass tensors to each other."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.no_answer import cache_required
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.worker.wire import validation

SEED_BYTES = 6
"""Seeds stay below 2**48: JSON numbers are exact that far."""


@dataclass(frozen=True)
class ValidationSetting:
    """One validation, or one conversion: its folder, its seed, where it runs."""

    worker: WorkerClient
    runtime: Runtime
    seconds: float
    """How long one call of one side may take."""
    folder: Path
    """The exchange folder."""
    seed: int
    backward: bool
    """Whether gradients are compared too."""

    @property
    def device(self) -> str:
        """The torch device on which tensors lie."""
        return "cpu" if self.runtime.interpreter else "cuda"

    @property
    def shared(self) -> validation.ExchangeSetting:
        """As the jobs take it."""
        return validation.ExchangeSetting(folder=str(self.folder), device=self.device, backward=self.backward)

    def seed_of(self, name: str) -> int:
        """The seed of one case: it tells nothing about those of others."""
        digest = hashlib.sha256(f"{self.seed}\0{name}".encode()).digest()
        return int.from_bytes(digest[:SEED_BYTES], "big")


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
