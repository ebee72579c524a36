"""Asking the worker to compile a target's kernels; an autotuner's configurations in several processes."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import anyio

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.architectures import Architecture
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.compiled import CompiledKernel, TextKind
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import refusal_of
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire import Failure
from pytorch_to_triton.worker.wire.as_json import decoded

NEEDS = ("triton.experimental.gluon", "pytorch_to_triton_worker.jobs.compile")
"""What each process would import before it compiles."""
SEED = 0
"""Of the inputs: no kernel reads them, only the code that launches kernels."""
MOST_PROCESSES = 8
TEXTS: dict[str, tuple[TextKind, ...]] = {
    "cuda": ("ttir", "ttgir", "llir", "ptx", "sass"),
    "hip": ("ttir", "ttgir", "llir", "amdgcn"),
}
"""What is kept."""


@dataclass(frozen=True)
class Compiling:
    """What to compile, and how."""

    worker: WorkerClient
    runtime: Runtime
    """Compiled, not the interpreter."""
    candidate: Target
    declaring: Target | None
    """Whose file declares the inputs; None: the candidate's."""
    case: Case
    gpu: Architecture
    most_configurations: int
    """At most this many configurations of autotuners are compiled."""
    seconds: float
    """Each process may take."""
    listener: ProgressListener | None
    backward: bool
    """Whether the call's gradients are asked for too."""
    what_if: Mapping[str, int] = field(default_factory=dict)
    """Launch options and constexprs that have other values than the launches give."""

    @property
    def call(self) -> Mapping[str, object]:
        """What jobs `compile` and `profile` take of the call."""
        return {
            "candidate": self.candidate.as_json(),
            "reference": self.declaring.as_json() if self.declaring else None,
            "case": {**self.case.model_dump(mode="json"), "seed": SEED},
        }

    async def ask(self, trials: Sequence[int]) -> Outcome:
        """One process: the call's kernels, and of the autotuners' trials those with these numbers."""
        job = Job(
            kind="compile",
            arguments={
                **self.call,
                "gpu": offline_gpu(self.gpu),
                "request": wire.CompileRequest(
                    trials=tuple(trials),
                    texts=TEXTS[self.gpu.backend],
                    backward=self.backward,
                    what_if=dict(self.what_if),
                ),
            },
            needs=NEEDS,
        )
        return await self.worker.ask(job, self.runtime, seconds=self.seconds, listener=self.listener)


def offline_gpu(gpu: Architecture) -> wire.OfflineGpu:
    """What the worker needs to know of the GPU."""
    return wire.OfflineGpu(**{known.name: getattr(gpu, known.name) for known in fields(wire.OfflineGpu)})


@dataclass(frozen=True)
class Compiled:
    """All that the processes compiled."""

    kernels: tuple[CompiledKernel, ...]
    notes: tuple[str, ...]
    """What is missing, and why."""
    failure: Failure | None
    """What ended the call early."""


async def compile_kernels(compiling: Compiling) -> Compiled:
    """Every kernel that the call launches, in the order of the launches.

    What the compiler refuses is among them. Raises TargetNotFound or TargetBroken where the target cannot be
    loaded.
    """
    first = await compiling.ask([0])
    if first.failure is not None:
        raise refusal_of(first, compiling.candidate)
    answer: wire.CompileAnswer | None = decoded(wire.CompileAnswer | None, first.answer)
    trials = answer.trials if answer else ()
    compiled = min(len(trials), compiling.most_configurations)
    outcomes = [first, *await _the_rest(compiling, range(1, compiled))]
    items = [decoded(wire.CompileItem, item) for outcome in outcomes for item in outcome.items]
    kernels: dict[int, CompiledKernel] = {}
    for item in items:
        if isinstance(item, wire.KernelItem):
            kernel = CompiledKernel.model_validate({**item.kernel, "what_if": dict(compiling.what_if)})
            kernels.setdefault(kernel.number, kernel)
    for item in items:
        if isinstance(item, wire.LaunchedItem):
            kernels[item.number] = kernels[item.number].model_copy(update={"grid": item.grid or ()})
    rest = len(trials) - compiled
    left_out = [f"{rest} of {len(trials)} autotuner configurations were not compiled."] if rest else []
    return Compiled(
        kernels=tuple(kernels[number] for number in sorted(kernels)),
        notes=(*left_out, *_cut_short(outcomes)),
        failure=answer.failure if answer else None,
    )


async def _the_rest(compiling: Compiling, trials: range) -> list[Outcome]:
    """The outcomes of as many processes as there are processors, each with its share of the trials."""
    processes = min(len(trials), os.cpu_count() or 1, MOST_PROCESSES)
    outcomes: list[Outcome] = []

    async def ask(share: Sequence[int]) -> None:
        outcomes.append(await compiling.ask(share))

    async with anyio.create_task_group() as group:
        for number in range(processes):
            group.start_soon(ask, trials[number::processes])
    return outcomes


def _cut_short(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        f"A process {outcome.status.replace('_', ' ')} during {outcome.during or 'start'}: {outcome.detail}; "
        f"its log is in {outcome.folder}."
        for outcome in outcomes
        if outcome.answer is None
    ]


def alternative(text: str) -> dict[str, int]:
    """Values by name. Raises BadInput for what is no `NAME=INTEGER`."""
    values: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*(\d{1,9})\s*", part)
        if match is None or match[1] in values:
            raise BadInput(
                f"{part.strip()!r} in {text!r} is not an option with a value.",
                "Write --what-if num_warps=8, or several at once: num_warps=8,num_stages=2.",
            )
        values[match[1]] = int(match[2])
    return values


async def compiled_otherwise(
    compiling: Compiling, kernels: Sequence[CompiledKernel], what_ifs: Sequence[Mapping[str, int]]
) -> list[tuple[CompiledKernel, ...]]:
    """The call's kernels with each of these. Raises BadInput for a name that no launch takes."""
    constexprs = (a.name for kernel in kernels for a in kernel.arguments if a.type == "constexpr")
    taken = {*wire.LAUNCH_OPTIONS, *constexprs}
    for name in (name for what_if in what_ifs for name in what_if):
        if name not in taken:
            raise BadInput(f"No kernel of this call takes {name}.", f"It takes {', '.join(sorted(taken))}.")
    return [(await compile_kernels(replace(compiling, what_if=what_if))).kernels for what_if in what_ifs]
