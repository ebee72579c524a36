"""Masked loads without other= whose undefined lanes reach a result."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import bounds
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.extremes import is_decisive
from pytorch_to_triton.audit.analysis.masked_lanes import (
    NEUTRAL,
    UNDEFINED,
    is_masked_along,
    is_never_negative,
    lanes,
)
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.analysis.size_guards import is_guarded
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Severity


@dataclass(frozen=True, eq=False)
class UndefinedLanes:
    """A load whose undefined lanes take part in something."""

    load: KernelAccess
    where: str
    """What takes them in, with its line."""
    neutral: str
    """The value that changes nothing there."""
    severity: Severity | None = None


def undefined_lanes(kernel: SourceKernel) -> Iterator[UndefinedLanes]:
    """Each such load once, with the weightiest result that its undefined lanes certainly reach."""
    reported: set[ast.Call] = set()
    for taken in sorted(_all_of(kernel), key=lambda one: SEVERITIES.index(one.severity or "low")):
        if taken.load.call not in reported:
            reported.add(taken.load.call)
            yield taken


def _all_of(kernel: SourceKernel) -> Iterator[UndefinedLanes]:
    for called in values(kernel).operations:
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
    given = [(launch, launch.given(kernel).get(name)) for launch in kernel.launches for name in sizes]
    is_open = any(value is not None and not is_guarded(value, launch, kernel) for launch, value in given)
    return "medium" if is_open and not is_trial(kernel.file) else None


def _undefined(value: ast.expr, axis: ast.expr | None, kernel: SourceKernel) -> Iterator[KernelAccess]:
    held = lanes(value, kernel)
    if held and held.hold == UNDEFINED and is_masked_along(held.load, axis, kernel):
        yield held.load
