"""Tuning the autotuned kernels of a target within a time budget, and keeping what was measured on disk.

What is kept is one JSON file for each kernel file, by its content: measurements of an old text do not hold
for a new one. In a file, the newest configuration for each GPU, Triton version, kernel and key is kept.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement, TargetBroken, TargetNotFound
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.device_lock import device_lock, device_of
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.tuning import KeptConfig, KeptConfigs, Origin, Tried, Tuning
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import decoded

GRACE_SECONDS = 120.0
"""Beyond the budget, for loading the target, generating its inputs and finishing started compilations."""
NAMED = 3
"""Chosen configurations in the summary."""
_DIGITS = 16
"""Of the hash, in a file's name."""


class TuneRequest(Value):
    """What to tune, at which sizes, and for how long."""

    target: Target
    """The kernel: a kernel file, or a function or module."""
    reference: Target
    """What defines the inputs and the state of a module's kernel; of a kernel file, itself."""
    case: Case
    """The call to tune for."""
    seed: int
    """The inputs are generated from it."""
    seconds: float
    """About how long the search takes; started compilations may take a little longer."""


async def tune(
    worker: WorkerClient, request: TuneRequest, runtime: Runtime, listener: ProgressListener | None = None
) -> Tuning:
    """Search for the fastest configurations under the device lock.

    An error, a crash or a time-out keeps what was found before it. Raises MissingRequirement under the
    interpreter, and TargetBroken where the target cannot be called or nothing was found.
    """
    if runtime.interpreter:
        raise MissingRequirement(
            "Tuning needs a GPU: times under the interpreter mean nothing.",
            "Tune on a machine with a GPU; the result can be frozen into the kernel file.",
        )
    async with device_lock(device_of(runtime), listener):
        job = Job(kind="tune", arguments=request.model_dump(mode="json"))
        outcome = await worker.ask(job, runtime, seconds=request.seconds + GRACE_SECONDS, listener=listener)
    return tuning_of(request, outcome)


def tuning_of(request: TuneRequest, outcome: Outcome) -> Tuning:
    """The tuning by the worker's items. Raises TargetBroken where the job ended early and found nothing."""
    items: list[wire.TuneItem] = [decoded(wire.TuneItem, item) for item in outcome.items]
    best = [item for item in items if isinstance(item, wire.ConfigBestItem)]
    if outcome.status != "answered" and not best:
        what = outcome.failure.message if outcome.failure else outcome.detail
        raise TargetBroken(
            f"Tuning {request.target} {outcome.status.replace('_', ' ')} during "
            f"{outcome.during or 'start'}: {what}.",
            f"Validate the kernel first; the log is in {outcome.folder}.",
        )
    device = next((item for item in items if isinstance(item, wire.TuningDeviceItem)), None)
    tuned = _tuned_configs(best)
    tried = _trials(items)
    sites = len(tuned) if outcome.answer is None else outcome.answer["sites"]
    return Tuning(
        summary=_summary(outcome, sites, tuned, tried),
        next_step=_next_step(tuned, tried),
        verdict="stopped" if outcome.answer is None else "tuned" if sites else "nothing_to_tune",
        kernel=str(request.target),
        device=device.device if device else "unknown",
        triton=device.triton if device else "unknown",
        dims=request.case.dims,
        tuned=tuned,
        tried=tried,
    )


def _tuned_configs(best: Iterable[wire.ConfigBestItem]) -> tuple[TunedConfig, ...]:
    """The last of each kernel and key."""
    last = {(item.kernel, repr(item.key)): item for item in best}
    return tuple(
        TunedConfig(kernel=item.kernel, key=item.key, config=item.config, seconds=item.seconds)
        for item in last.values()
    )


def _trials(items: Iterable[wire.TuneItem]) -> tuple[Tried, ...]:
    """Each configuration once, with its last result, in the order in which they came up."""
    results: dict[str, Tried] = {}
    for item in items:
        if isinstance(item, wire.ConfigDroppedItem | wire.ConfigTimedItem):
            tried = Tried.model_validate(vars(item))
            results[repr((tried.kernel, tried.key, tried.config))] = tried
    return tuple(results.values())


def _summary(outcome: Outcome, sites: int, tuned: tuple[TunedConfig, ...], tried: tuple[Tried, ...]) -> str:
    if not sites:
        return "The call launches no autotuned kernel: there is nothing to tune."
    timed = sum(config.median_ms is not None for config in tried)
    sentences = [f"{timed} of {len(tried)} configurations were timed; `tried` shows why the others were not."]
    sentences += [_choice(config, tried) for config in tuned[:NAMED]]
    if len(tuned) > NAMED:
        sentences.append(f"{len(tuned) - NAMED} more are in `tuned`.")
    if sites > len(tuned):
        sentences.append(f"{sites - len(tuned)} of {sites} autotuned kernels have no working configuration.")
    if outcome.answer is None:
        what = outcome.failure.message if outcome.failure else outcome.detail
        sentences.insert(0, f"Tuning ended early during {outcome.during or 'start'}: {what}.")
    return " ".join(sentences)


def _choice(config: TunedConfig, tried: tuple[Tried, ...]) -> str:
    """The configuration in a sentence, with its time and that of the slowest."""
    same = [trial for trial in tried if (trial.kernel, trial.key) == (config.kernel, config.key)]
    times = [trial.median_ms for trial in same if trial.median_ms is not None]
    ours = next((trial.median_ms for trial in same if trial.config == config.config), None)
    values = " ".join(f"{name}={value}" for name, value in config.config.items())
    time = (
        f"{ours:.4g} ms per call; the slowest takes {max(times):.4g} ms" if ours is not None else "not timed"
    )
    return f"{config.kernel} is fastest with {values} ({time})."


def _next_step(tuned: tuple[TunedConfig, ...], tried: tuple[Tried, ...]) -> str:
    if tuned:
        return "Freeze the configurations into the kernel file, and validate the frozen file."
    if tried:
        return "Read why each configuration was dropped in `tried`, and fix the kernel or its configurations."
    return "Decorate a kernel with triton.autotune to have its configurations tuned."


def keep(file: Path, configs: Sequence[TunedConfig], origin: Origin) -> Path:
    """Add what was measured of a kernel file to what is kept; returns the file that holds it.

    Safe beside other processes that do the same. Raises TargetNotFound where the kernel file cannot be read.
    """
    place = place_of(file)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        known = [*_read(place), *(KeptConfig(origin=origin, chosen=config) for config in configs)]
        merged = {kept.identity: kept for kept in known}
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
        kept
        for kept in _read(place_of(file))
        if device in (None, kept.origin.device) and triton in (None, kept.origin.triton)
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
