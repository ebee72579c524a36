"""Measured configurations, kept on disk: one JSON file for each kernel file, by its content.

A kernel file that was changed is another one: measurements of the old text do not hold for the new.
In a file, the newest configuration for each GPU, Triton version, kernel and key is kept.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import TargetNotFound
from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.tuning import KeptConfig, KeptConfigs, Origin

_DIGITS = 16
"""Of the hash, in a file's name."""


def keep(file: Path, configs: Sequence[TunedConfig], origin: Origin) -> Path:
    """Add what was measured of a kernel file to what is kept; returns the file that holds it.

    Safe beside other processes that do the same. Raises TargetNotFound where the kernel file cannot be read.
    """
    place = place_of(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        known = [*_read(place), *(KeptConfig(origin=origin, chosen=config) for config in configs)]
        merged = {one.identity: one for one in known}
        content = KeptConfigs(file=str(file), configs=tuple(merged.values()))
        places.write_atomically(place, content.model_dump_json(indent=2) + "\n")
    return place


def kept_configs(
    file: Path, *, device: str | None = None, triton: str | None = None
) -> tuple[KeptConfig, ...]:
    """What is kept of a kernel file as it now is, measured on that GPU and Triton; None takes any.

    Empty where nothing is, or where the file that held it is damaged. Raises TargetNotFound where the kernel
    file cannot be read.
    """
    return tuple(
        one
        for one in _read(place_of(file))
        if device in (None, one.origin.device) and triton in (None, one.origin.triton)
    )


def place_of(file: Path) -> Path:
    """The file that holds what is kept of a kernel file. Raises TargetNotFound where that cannot be read."""
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise TargetNotFound(f"{file} cannot be read: {problem.strerror}.", "Check the path.") from problem
    return places.tuned() / f"{file.stem}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.json"


def _read(place: Path) -> tuple[KeptConfig, ...]:
    """What the file holds; nothing of a damaged one, which the next `keep` replaces."""
    try:
        return KeptConfigs.model_validate_json(place.read_bytes()).configs
    except (FileNotFoundError, ValidationError):
        return ()
