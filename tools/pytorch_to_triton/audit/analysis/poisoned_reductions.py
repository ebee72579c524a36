"""Reductions of blocks whose masked lanes hold something that is not neutral."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.extremes import is_decisive
from pytorch_to_triton.audit.analysis.masked_lanes import (
    NEUTRAL,
    NOT_ZERO,
    Lanes,
    is_masked_along,
    is_never_negative,
    lanes,
)
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.analysis.ranges import calls_of
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.source import SourceKernel

_RUNNING = {"maximum": "max", "minimum": "min"}
"""What a loop keeps in an accumulator, by the reduction that it stands for."""
_LEAST = 1000.0
"""What stands for infinity in many kernels is at least this."""


@dataclass(frozen=True, eq=False)
class PoisonedReduction:
    """A reduction that masked lanes change."""

    operation: Operation
    held: Lanes
    """The masked lanes, and what they hold."""
    neutral: str
    """What would change nothing."""
    is_decisive: bool
    """What the masked lanes hold decides a maximum or a minimum."""


def poisoned_reductions(kernel: SourceKernel) -> Iterator[PoisonedReduction]:
    """Reductions of blocks whose masked lanes certainly hold something that is not neutral."""
    for called in values(kernel).operations:
        if not called.operands:
            continue
        if called.name in NEUTRAL:
            held = _lanes_reduced(called, kernel) or _lanes_passed(called, kernel)
        else:
            held = _lanes_kept(called, kernel) if called.name in _RUNNING else None
        if held:
            neutral = NEUTRAL[_RUNNING.get(called.name, called.name)]
            decisive = neutral != "0.0" and is_decisive(called.call, held.load, kernel)
            yield PoisonedReduction(called, held, neutral, decisive)


def _lanes_passed(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes of a block that another kernel passes to this function, which reduces it as it is."""
    block = values(kernel).bare(called.operands[0])
    held = values(kernel).definitions(block) if isinstance(block, ast.Name) else ()
    if kernel.is_launched or len(held) != 1 or not isinstance(held[0], ast.arg):
        return None
    name = held[0].arg
    for caller, call in calls_of(kernel):
        given = argument(call, kernel.parameters.index(name), name)
        passed = lanes(given, caller.kernel) if given is not None else None
        if given is None or passed is None or call in caller.selected:
            continue
        if _poisons(passed, called.name, given, caller.kernel) and is_masked_along(
            passed.load, called.option(1, "axis"), caller.kernel
        ):
            return passed
    return None


def _lanes_reduced(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change what tl.sum and the like make of a block."""
    held = lanes(called.operands[0], kernel)
    if held is None or not _poisons(held, called.name, called.operands[0], kernel):
        return None
    return held if is_masked_along(held.load, called.option(1, "axis"), kernel) else None


def _lanes_kept(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change a maximum which a loop keeps, where each step masks other lanes."""
    for kept, block in (called.operands[:2], called.operands[1::-1]):
        start = _start(kept, called, kernel)
        held = lanes(block, kernel) if start is not None else None
        if held is None or not _poisons(held, _RUNNING[called.name], block, kernel):
            continue
        if abs(start or 0.0) >= _LEAST and _differs_by_step(held, called, kernel):
            return held
    return None


def _start(kept: ast.expr, called: Operation, kernel: SourceKernel) -> float | None:
    """The number that a name holds before a loop updates it by the call; None where it is something else."""
    known = values(kernel)
    held = known.definitions(kept) if isinstance(kept, ast.Name) else ()
    starts = [one for one in held if one is not called.call]
    if len(starts) != 1 or len(held) != 2 or not isinstance(starts[0], ast.expr):
        return None
    made = known.operation(known.bare(starts[0]))
    value = made.option(1, "value") if made and made.name == "full" else starts[0]
    return known.number(value) if value is not None else None


def _differs_by_step(held: Lanes, called: Operation, kernel: SourceKernel) -> bool:
    """Whether the load's mask is made from what the loop around the call runs over."""
    loops = [loop for loop in kernel.flow.loops(called.call) if isinstance(loop, ast.For)][:1]
    origins = kernel.flow.origins(held.load.mask) if held.load.mask else frozenset()
    names = {node.id for node in origins if isinstance(node, ast.Name)}
    return any(isinstance(loop.target, ast.Name) and loop.target.id in names for loop in loops)


def _poisons(held: Lanes, reduction: str, block: ast.expr, kernel: SourceKernel) -> bool:
    match reduction, held.hold:
        case "sum", float(hold):
            return hold != 0
        case "sum", content:
            return content == NOT_ZERO
        case "max" | "argmax", float(hold):
            return hold > -_LEAST and not (hold == 0 and is_never_negative(block, kernel))
        case "min" | "argmin", float(hold):
            return hold < _LEAST
    return False
