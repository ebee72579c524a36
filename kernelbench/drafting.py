"""One problem drafted as `convert` drafts it, without validating anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio.to_process

from pytorch_to_triton.convert.convert import source_of
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import Source, draft
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.graph.tracing import Traced, trace
from pytorch_to_triton.inputs.declaration import NO_OPTIONS
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.targets.problem import resolve_problem


@dataclass(frozen=True)
class Origin:
    """What a problem's drafts are made from."""

    traced: Traced
    source: Source

    @property
    def inputs(self) -> dict[str, Any]:
        """What forward takes, as declared; a module's state is left out."""
        given: Mapping[str, Any] = self.source.declared.get("INPUTS") or {}
        return {name: value for name, value in given.items() if name not in self.traced.graph.state}


async def origin_of(worker: WorkerClient, target: Target, runtime: Runtime, *, seconds: float) -> Origin:
    """Describe and trace the target. Raises a Refusal where that cannot be done."""
    description = await describe(worker, target, "reference", runtime, seconds=seconds)
    problem = await resolve_problem(worker, description, None, NO_OPTIONS, runtime, seconds=seconds)
    traced = await trace(worker, target, problem.declaration, runtime, seconds=seconds)
    return Origin(traced, source_of(target, description, problem.declaration, traced))


async def drafted(origin: Origin, stage: Stage) -> dict[str, Any]:
    """The draft as `drafted_here` describes it, made in a process that is killed when this is cancelled."""
    return cast(
        dict[str, Any], await anyio.to_process.run_sync(drafted_here, origin, stage, cancellable=True)
    )


def drafted_here(origin: Origin, stage: Stage) -> dict[str, Any]:
    """`text`, names of `kernels`, and the operators that stay `calls` of PyTorch; or the `refusal`."""
    try:
        found = draft(origin.traced.graph, origin.source, stage)
    except Refusal as refusal:
        return {"refusal": refusal_of(refusal)}
    return {
        "text": found.text,
        "kernels": [getattr(kernel, "name", str(kernel)) for kernel in found.kernels],
        "calls": [str(call) for call in getattr(found, "calls", ())],
    }


def refusal_of(refusal: Refusal) -> dict[str, str]:
    return {"kind": refusal.kind, "message": refusal.message, "hint": refusal.hint}
