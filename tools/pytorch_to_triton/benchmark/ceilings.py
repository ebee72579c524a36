"""What this GPU can do at most: measured once, and kept for it and its driver."""

import re
from pathlib import Path

from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.versions import today
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.device_lock import device_lock, device_of
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.timing import Ceilings

_SECONDS = 120.0


async def ceilings_of(
    worker: WorkerClient,
    device: str,
    driver: str | None,
    runtime: Runtime,
    listener: ProgressListener | None = None,
) -> Ceilings:
    """The kept ceilings of `device` under `driver`, else measured now. Raises MissingRequirement."""
    file = kept_at(device, driver)
    if (kept := read(file)) is not None:
        return kept
    async with device_lock(device_of(runtime), listener):
        if (kept := read(file)) is not None:  # measured by another process meanwhile
            return kept
        outcome = await worker.ask(Job(kind="ceilings"), runtime, seconds=_SECONDS, listener=listener)
        if outcome.answer is None:
            raise MissingRequirement(
                f"What {device} can do could not be measured: {outcome.detail}.",
                f"The log is in {outcome.folder}; does anything else use the device?",
            )
        source = f"driver {driver or 'unknown'}, {today()}"
        measured = Ceilings(provenance="measured", source=source, **outcome.answer)
        places.write_atomically(file, measured.model_dump_json(indent=2))
    return measured


def kept_at(device: str, driver: str | None) -> Path:
    """The file of a device and its driver."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{device} {driver or 'unknown'}").strip("-")
    return places.cache() / "ceilings" / f"{name}.json"


def read(file: Path) -> Ceilings | None:
    """What was kept; None where nothing was, or nothing that can be read."""
    try:
        return Ceilings.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
