"""Reductions over lanes that a mask left out: what they hold, and whether the result shows it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import bounds
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.covered import is_guarded
from pytorch_to_triton.audit.analysis.masked_lanes import (
    NEUTRAL,
    NOT_ZERO,
    UNDEFINED,
    Lanes,
    is_masked_along,
    is_never_negative,
    lanes,
)
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.call_arguments import factors
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Severity

_NEVER_NEGATIVE = re.compile(
    r"len|count|num|size|idx|index|indices|pos|offs|cu_|mask|flag|seg|abs|scale|prob|hist|token|expert|id(?:s|x)?(?:_|$)",
    re.IGNORECASE,
)
"""Names of pointers to what is no less than zero: lengths, places, counts."""


def is_decisive(extreme: ast.expr, load: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether lanes that a load left out may well decide a maximum or minimum, and so a result.

    Not where it loads lengths, places and the like, nor where the maximum only keeps exponentials small and
    those of the masked lanes are not summed up.
    """
    if load.pointer is None or _NEVER_NEGATIVE.search(load.pointer):
        return False
    exponentials = [
        node
        for node in kernel.nodes
        if isinstance(node, ast.Call) and _is_exponential(node) and extreme in kernel.origins(*node.args)
    ]
    if any(access.value is not None and kernel.bare(access.value) is extreme for access in kernel.accesses):
        return True
    counted = [
        exponential
        for exponential in exponentials
        if not is_masked_later(exponential, kernel) and _is_summed(exponential, kernel)
    ]
    return not exponentials or bool(counted)


def _is_exponential(call: ast.Call) -> bool:
    """Whether it is tl.exp or the like, a function of the project's own among them."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "exp" in name and not name.startswith(("expand", "expm1"))
    return False


def _is_summed(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether tl.sum adds a value up; a function that kernels call leaves that to them."""
    sums = [call for call in kernel.operations if call.name == "sum"]
    if not sums and not kernel.is_launched:
        return True
    return any(value in kernel.origins(*call.operands) for call in sums)


def is_masked_later(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether tl.where chooses from a value, or a comparison is multiplied with it."""
    return value in kernel.selected or any(
        kernel.bare(factor) is value and _is_mask(other, kernel)
        for node in kernel.expressions
        for factor, other in factors(node)
    )


def _is_mask(value: ast.expr, kernel: SourceKernel) -> bool:
    match kernel.bare(value):
        case ast.Compare():
            return True
        case ast.BinOp(left=left, op=ast.BitAnd()):
            return _is_mask(left, kernel)
    return False


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
    for called in kernel.operations:
        if not called.operands:
            continue
        if called.name in NEUTRAL:
            held = _lanes_reduced(called.operands[0], called, kernel) or _lanes_passed(called, kernel)
        else:
            held = _lanes_kept(called, kernel) if called.name in _RUNNING else None
        if held:
            neutral = NEUTRAL[_RUNNING.get(called.name, called.name)]
            decisive = neutral != "0.0" and is_decisive(called.call, held.load, kernel)
            yield PoisonedReduction(called, held, neutral, decisive)


def _lanes_passed(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes of a block that another kernel passes to this function, which reduces it as it is."""
    block = kernel.bare(called.operands[0])
    held = kernel.definitions(block) if isinstance(block, ast.Name) else ()
    if kernel.is_launched or len(held) != 1 or not isinstance(held[0], ast.arg):
        return None
    name = held[0].arg
    passed = (one for one in kernel.passed(name) if one[1] not in one[0].selected)
    return next(filter(None, (_lanes_reduced(given, called, caller) for caller, _, given in passed)), None)


def _lanes_reduced(block: ast.expr, called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change what tl.sum and the like make of a block."""
    held = lanes(block, kernel)
    if held is None or not _poisons(held, called.name, block, kernel):
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
    held = kernel.definitions(kept) if isinstance(kept, ast.Name) else ()
    starts = [definition for definition in held if definition is not called.call]
    if len(starts) != 1 or len(held) != 2 or not isinstance(starts[0], ast.expr):
        return None
    made = kernel.operation(kernel.bare(starts[0]))
    value = made.option(1, "value") if made and made.name == "full" else starts[0]
    return kernel.number(value) if value is not None else None


def _differs_by_step(held: Lanes, called: Operation, kernel: SourceKernel) -> bool:
    """Whether the load's mask is made from what the loop around the call runs over."""
    loops = [loop for loop in kernel.loops(called.call) if isinstance(loop, ast.For)][:1]
    origins = kernel.origins(held.load.mask) if held.load.mask else frozenset()
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


@dataclass(frozen=True, eq=False)
class UndefinedLanes:
    """A load whose undefined lanes take part in something."""

    load: KernelAccess
    where: str
    """What takes them in, with its line."""
    neutral: str
    """The value that changes nothing there."""
    severity: Severity | None = None


def undefined_lanes(kernel: SourceKernel) -> list[UndefinedLanes]:
    """The loads whose undefined lanes certainly reach a result, the weightiest of them first."""
    return sorted(_all_of(kernel), key=lambda one: SEVERITIES.index(one.severity or "low"))


def _all_of(kernel: SourceKernel) -> Iterator[UndefinedLanes]:
    for called in kernel.operations:
        where = f"tl.{called.name} in line {called.call.lineno}"
        if called.name in NEUTRAL and called.operands:
            axis = called.option(1, "axis")
            for load in _undefined(called.operands[0], axis, kernel):
                yield UndefinedLanes(load, where, NEUTRAL[called.name], _severity(called, load, kernel))
        elif called.name == "dot" and len(called.operands) >= 2:
            for side, summed in ((0, 1), (1, 0)):
                for load in _undefined(called.operands[side], ast.Constant(summed), kernel):
                    yield UndefinedLanes(load, where, "0.0", _of_sum(load, kernel))
    for access in kernel.accesses:
        if (
            access.name == "store"
            and access.mask is None
            and access.value is not None
            and not access.call.keywords
        ):
            for load in _undefined(access.value, None, kernel):
                yield UndefinedLanes(load, f"the store without a mask in line {access.call.lineno}", "0.0")


def _severity(called: Operation, load: KernelAccess, kernel: SourceKernel) -> Severity | None:
    """Of a maximum or minimum: what usually stands in undefined lanes, zeros, decides it too."""
    if NEUTRAL[called.name] == "0.0":
        return _of_sum(load, kernel)
    if is_never_negative(called.operands[0], kernel):
        return None
    return "high" if is_decisive(called.call, load, kernel) else None


def _of_sum(load: KernelAccess, kernel: SourceKernel) -> Severity | None:
    """Medium where a launch of the file may leave lanes out: zeros, which would do, are not promised."""
    sizes = {bound.size.id for bound in bounds(load.mask, kernel) if isinstance(bound.size, ast.Name)}
    given = [(launch, launch.given.get(name)) for launch in kernel.launches for name in sizes]
    is_open = any(value is not None and not is_guarded(value, launch, kernel) for launch, value in given)
    return "medium" if is_open and not is_trial(kernel.file) else None


def _undefined(value: ast.expr, axis: ast.expr | None, kernel: SourceKernel) -> Iterator[KernelAccess]:
    held = lanes(value, kernel)
    if held and held.hold == UNDEFINED and is_masked_along(held.load, axis, kernel):
        yield held.load
