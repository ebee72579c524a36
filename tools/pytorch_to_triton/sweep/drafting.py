"""One problem drafted as `convert` drafts it, without validating anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import anyio.to_process

from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import DraftOrigin, resolve
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

Origin = DraftOrigin | CutOrigin


async def origin_of(worker: WorkerClient, request: ConversionRequest, runtime: Runtime) -> Origin:
    """Describe and trace the target, as a whole or in parts. Raises a Refusal where that cannot be done."""
    return (await resolve(worker, request, runtime)).convertible()


def declared_of(origin: Origin) -> Mapping[str, Any]:
    """INPUTS, DIMS and REQUIRES of its drafts."""
    return origin.declared if isinstance(origin, CutOrigin) else origin.source.declared


def inputs_of(origin: Origin) -> dict[str, Any]:
    """What forward takes, as declared; a module's state is left out."""
    given: Mapping[str, Any] = declared_of(origin).get("INPUTS") or {}
    return {name: value for name, value in given.items() if name not in origin.state}


WaysDrafted = Literal["all", "usual", "own"]
"""Every way, the usual one first; that one alone; or what no library has a part in."""


async def drafted(origin: Origin, stage: Stage, wanted: WaysDrafted) -> dict[str, Any]:
    """The drafts as `drafted_here` describes them, made in a process that is killed if this is cancelled."""
    return cast(
        dict[str, Any], await anyio.to_process.run_sync(drafted_here, origin, stage, wanted, cancellable=True)
    )


def drafted_here(origin: Origin, stage: Stage, wanted: WaysDrafted) -> dict[str, Any]:
    """`ways`: a draft for each way that is wanted and differs; or the `refusal`.

    Each has its `text`, the names of its `kernels`, the operators that stay `calls` of PyTorch, and in `left`
    their lines and why.
    """
    ways: dict[str, dict[str, Any]] = {}
    refused: dict[str, Any] = {}
    for way in (PURE,) if wanted == "own" else origin.ways():
        if ways and wanted == "usual":
            break
        try:
            module = origin.drafted(stage, way)
        except Refusal as refusal:
            refused = {"refusal": refusal_of(refusal)}
            continue
        if all(module.text != other["text"] for other in ways.values()):
            kernels = [kernel.name for kernel in module.kernels]
            left = {"calls": list(module.calls), "left": list(module.left)}
            ways[str(way)] = {"text": module.text, "kernels": kernels, **left}
    return {"ways": ways} if ways else refused


def refusal_of(refusal: Refusal) -> dict[str, str]:
    return {"kind": refusal.kind, "message": refusal.message, "hint": refusal.hint}
