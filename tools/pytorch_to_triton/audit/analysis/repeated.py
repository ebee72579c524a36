"""Loads of a kernel that certainly give the same values as an earlier one."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from pytorch_to_triton.audit.analysis.movement import (
    accesses_in,
    bound_in,
    calls_unknown,
    names_in,
    statements_between,
)
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel


@dataclass(frozen=True, eq=False)
class Pair:
    """Two loads of one place, with nothing between them that changes it."""

    first: KernelAccess
    second: KernelAccess
    fills_alike: bool
    """Both give the same values where the mask is off."""
    stores_between: bool

    @property
    def is_merged(self) -> bool:
        """Whether the compiler makes one load of the two."""
        return self.fills_alike and not self.stores_between


@lru_cache(maxsize=16)
def repeated_loads(kernel: SourceKernel) -> tuple[Pair, ...]:
    """The pairs in one list of statements, in source order."""
    loads = [access for access in kernel.accesses if access.name == "load" and access.pointer]
    return tuple(_pairs(kernel, loads))


def _pairs(kernel: SourceKernel, loads: Sequence[KernelAccess]) -> Iterator[Pair]:
    for first, second in combinations(loads, 2):
        if not _same_place(first, second):
            continue
        between = statements_between(kernel, first.call, second.call)
        if between is None or len(between) < 2:
            continue
        stores = _stores(kernel, first, second, between)
        if stores is not None:
            yield Pair(first, second, _text(first.other) == _text(second.other), bool(stores))


def _same_place(first: KernelAccess, second: KernelAccess) -> bool:
    return first.pointer == second.pointer and all(
        _text(one) == _text(other)
        for one, other in ((first.address, second.address), (first.mask, second.mask))
    )


def _stores(
    kernel: SourceKernel, first: KernelAccess, second: KernelAccess, between: Sequence[ast.stmt]
) -> list[KernelAccess] | None:
    """The stores between two loads; None where they may not give the same values."""
    needed = names_in(first.address, *([first.mask] if first.mask else []))
    if needed & bound_in(*between[:-1]) or any(_nested(one, first, second) for one in between):
        return None
    if any(keyword.arg == "volatile" for one in (first, second) for keyword in one.call.keywords):
        return None
    if any(_may_write(kernel, one) for one in between):
        return None
    middle = between[:-1]
    writes = [access for one in middle for access in accesses_in(kernel, one) if access.writes]
    if any(access.pointer in (None, first.pointer) or access.name != "store" for access in writes):
        return None
    return writes


def _may_write(kernel: SourceKernel, statement: ast.stmt) -> bool:
    """Whether a statement calls what may write to memory out of sight."""
    return calls_unknown(kernel, statement) and not _only_computes(kernel, statement)


def _only_computes(kernel: SourceKernel, statement: ast.stmt) -> bool:
    """Whether all that a statement calls beyond Triton is the file's own functions that access no memory."""
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        helper = next((one for one in kernel.file.kernels if one.node.name == node.func.id), None)
        if helper is None or any(
            isinstance(inner, ast.Call) and _touches(helper, inner) for inner in helper.nodes
        ):
            return False
    return not any(
        path.endswith((".debug_barrier", ".inline_asm_elementwise")) for path in _paths(kernel, statement)
    )


def _touches(helper: SourceKernel, call: ast.Call) -> bool:
    path = helper.scope.path(call.func) or ""
    pure = path.startswith("triton.language.") and not path.endswith(
        (".store", ".debug_barrier", ".inline_asm_elementwise", ".make_tensor_descriptor")
    )
    method = isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cast")
    return not (pure or method) or ".atomic_" in path


def _paths(kernel: SourceKernel, statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            yield kernel.scope.path(node.func) or ""


def _nested(statement: ast.stmt, first: KernelAccess, second: KernelAccess) -> bool:
    """Whether one of the loads stands in a branch or a loop below the statement."""
    compound = isinstance(statement, ast.If | ast.For | ast.While)
    return compound and any(node in (first.call, second.call) for node in ast.walk(statement))


def _text(node: ast.expr | None) -> str:
    return "" if node is None else ast.dump(node)
