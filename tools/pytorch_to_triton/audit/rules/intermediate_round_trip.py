"""Pairs of launches in a row of elementwise kernels, with a tensor that serves nothing else."""

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers
from pytorch_to_triton.audit.analysis.launched_tensors import allocation, tensors_of
from pytorch_to_triton.audit.analysis.movement import escapes
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import ELEMENTWISE
from pytorch_to_triton.audit.rule import file_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceFile, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

_DOUBLE, _RELU = (
    jit(LANES, "x = tl.load(x_ptr + i, mask=i < n)", f"tl.store(out_ptr + i, {value}, mask=i < n)").replace(
        "kernel", name
    )
    for name, value in (("double", "x * 2"), ("relu", "tl.maximum(x, 0.0)"))
)
_RUN = run(
    "between = torch.empty_like(x)",
    "double[(triton.cdiv(x.numel(), 64),)](x, between, x.numel(), B=64)",
    "relu[(triton.cdiv(x.numel(), 64),)](between, out, x.numel(), B=64)",
)
_MOVES = frozenset({"arange", "load", "store", "program_id", "cdiv"})


@file_rule(
    "info",
    "performance",
    bad=(_DOUBLE + _RELU + _RUN,),
    good=(
        # The caller wants it, too.
        _DOUBLE + _RELU + _RUN + "    return between\n",
        # Other elements than its own.
        _DOUBLE + _RELU.replace("x_ptr + i", "x_ptr + n - i") + _RUN,
    ),
)
def intermediate_round_trip(file: SourceFile) -> Iterator[Fault]:
    """Two elementwise kernels follow each other, and a tensor goes from one to the other through memory.

    The first kernel writes every element and the second reads it again at once, while both do only a few
    operations on each: their cost is the memory traffic.

    Fix: do both steps in one kernel and keep the values in registers.
    """
    for function, launches in launchers(file).items():
        if is_trial(file, function):
            continue
        for first, second in pairwise(launches):
            if first.kernel is not second.kernel and (name := _passed_on(first, second)):
                yield Fault(
                    second.call,
                    f"{first.kernel.name} writes {name} to memory only for {second.kernel.name} to read it "
                    "again, element by element.",
                    f"Do both in one kernel, without {name}.",
                )


def _passed_on(first: LaunchSite, second: LaunchSite) -> str | None:
    """A tensor of the function that the first launch writes, the second loads, and nothing else mentions."""
    are_elementwise = _is_elementwise(first.kernel) and _is_elementwise(second.kernel)
    if not are_elementwise or first.flow.loops(second.call):
        return None
    read = {name: parameter for parameter, name in tensors_of(second).items()}
    for parameter, name in tensors_of(first).items():
        if name in read and allocation(name, first) and _mentions(name, first) == 2:
            writes = _places(parameter, "store", first)
            if len(writes) == 1 and writes == _places(read[name], "load", second):
                return name
    return None


def _places(pointer: str, access: str, launch: LaunchSite) -> frozenset[str]:
    """The offsets at which a pointer is accessed, in terms of what the launch passes, with the grid.

    Empty where it is accessed in another way, too.
    """
    accesses = [one for one in launch.kernel.accesses if one.pointer == pointer]
    if any(one.name != access for one in accesses):
        return frozenset()
    given = {**launch.given, pointer: ast.Constant("start")}
    grid = ast.unparse(launch.flow.resolved(launch.grid))
    return frozenset(f"{grid} {ast.unparse(_spelled(one.address, launch.kernel, given))}" for one in accesses)


def _spelled(part: Any, kernel: SourceKernel, given: Mapping[str, ast.expr]) -> Any:
    """A node with what each name stands for in its place: its one assignment, or what is passed."""
    match part:
        case ast.Name():
            value = kernel.resolved(part)
            if isinstance(value, ast.Name):
                return given.get(value.id, value)
            return _spelled(value, kernel, given)
        case ast.AST():
            fields = {name: _spelled(inner, kernel, given) for name, inner in ast.iter_fields(part)}
            return type(part)(**fields)
        case list():
            return [_spelled(inner, kernel, given) for inner in part]
    return part


def _is_elementwise(kernel: SourceKernel) -> bool:
    """Whether a kernel has no loop, and works on each element for itself."""
    if any(isinstance(node, ast.For | ast.While) for node in kernel.nodes):
        return False
    paths = (kernel.scope.path(node.func) for node in kernel.nodes if isinstance(node, ast.Call))
    if any(path and path.rpartition(".")[2] not in _MOVES | ELEMENTWISE for path in paths):
        return False
    return not any(escapes(kernel, parameter) for parameter in kernel.parameters)


def _mentions(name: str, launch: LaunchSite) -> int:
    """How often the launching function reads a name, its strides and sizes left out."""
    nodes = own_nodes(launch.function.body if launch.function else [])
    return sum(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and getattr(launch.flow.parents.get(node), "attr", "") not in ("stride", "shape", "size", "numel")
        for node in nodes
    )
