"""Loads of what a program has in registers, or that a loop repeats."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from pytorch_to_triton.audit.analysis.movement import (
    accesses_in,
    bound_in,
    calls_unknown,
    names_in,
    statements_between,
)
from pytorch_to_triton.audit.examples import LANES, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_LOAD = "x = tl.load(x_ptr + i, mask=i < n)"
_STORE = "tl.store(out_ptr + i, x, mask=i < n)"


@dataclass(frozen=True, eq=False)
class _Pair:
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


@kernel_rule(
    "low",
    "memory access",
    bad=(jit(LANES, _LOAD, _STORE, _LOAD.replace("x =", "y =")),),
    good=(
        # Another place by then.
        jit(LANES, _LOAD, _STORE, "i += n", _LOAD),
        jit(LANES, _LOAD, _STORE.replace("out_ptr", "x_ptr"), _LOAD),
        # Another thread may have written.
        jit(LANES, _LOAD, "tl.debug_barrier()", _LOAD),
    ),
)
def redundant_load(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel loads the same values twice.

    The compiler merges two loads of one address and mask, unless a store stands between them, which may
    change what is there, or their `other` differs: then the values come from memory twice. Where it merges
    them, readers still have to check that it is the same value.

    Fix: keep the values of the first load in a variable; put another fill value in with tl.where.
    """
    for pair in sorted(_repeated_loads(kernel), key=lambda pair: pair.is_merged):
        line = pair.first.call.lineno
        yield Fault(
            pair.second.call,
            f"These values of {pair.first.pointer} were loaded at line {line} already, and the compiler "
            f"{_outcome(pair)}.",
            f"Use what line {line} loaded.",
            severity="info" if pair.is_merged else None,
        )


def _outcome(pair: _Pair) -> str:
    if pair.is_merged:
        return "merges the two loads"
    reason = "a store stands between the two" if pair.fills_alike else "their `other` differs"
    return f"loads them again because {reason}"


def _repeated_loads(kernel: SourceKernel) -> Iterator[_Pair]:
    """The pairs in one list of statements, in source order."""
    for first, second in combinations(kernel.loads, 2):
        if not first.pointer or not _is_same_place(first, second):
            continue
        between = statements_between(kernel, first.call, second.call)
        if between is None or len(between) < 2:
            continue
        stores = _stores(kernel, first, second, between)
        if stores is not None:
            yield _Pair(first, second, _text(first.other) == _text(second.other), bool(stores))


def _is_same_place(first: KernelAccess, second: KernelAccess) -> bool:
    return first.pointer == second.pointer and all(
        _text(one) == _text(other)
        for one, other in ((first.address, second.address), (first.mask, second.mask))
    )


def _stores(
    kernel: SourceKernel, first: KernelAccess, second: KernelAccess, between: Sequence[ast.stmt]
) -> list[KernelAccess] | None:
    """The stores between two loads; None where they may not give the same values."""
    needed = names_in(first.address, *([first.mask] if first.mask else []))
    if needed & bound_in(*between[:-1]) or any(_is_nested(statement, first, second) for statement in between):
        return None
    if any(keyword.arg == "volatile" for one in (first, second) for keyword in one.call.keywords):
        return None
    if any(calls_unknown(kernel, statement) for statement in between):
        return None
    middle = between[:-1]
    writes = [access for statement in middle for access in accesses_in(kernel, statement) if access.writes]
    if any(access.pointer in (None, first.pointer) or access.name != "store" for access in writes):
        return None
    return writes


def _is_nested(statement: ast.stmt, first: KernelAccess, second: KernelAccess) -> bool:
    """Whether one of the loads stands in a branch or a loop below the statement."""
    compound = isinstance(statement, ast.If | ast.For | ast.While)
    return compound and any(node in (first.call, second.call) for node in ast.walk(statement))


def _text(node: ast.expr | None) -> str:
    return "" if node is None else ast.dump(node)


_BACK = "y = tl.load(out_ptr + i, mask=i < n)"


@kernel_rule(
    "low",
    "memory access",
    bad=(jit(LANES, _LOAD, _STORE, _BACK),),
    good=(jit(LANES, _LOAD, _STORE, "i += n", _BACK),),
)
def stored_then_loaded(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel stores a block and loads it back from the same place.

    The values are in registers when they are stored. Loading them again costs a round trip through the
    cache, and without a barrier it may return what was there before, as another thread may have stored what
    this one loads.

    Fix: keep computing with the value that was stored.
    """
    if any(access.name.startswith("atomic") for access in kernel.accesses):
        return
    for load, store in product(kernel.loads, kernel.stores):
        if not store.pointer or not _is_same_place(load, store):
            continue
        between = statements_between(kernel, store.call, load.call)
        if between and len(between) > 1 and _still_there(kernel, store, between):
            value = ast.unparse(store.value) if store.value else "the value"
            yield Fault(
                load.call,
                f"This loads what line {store.call.lineno} has just stored to {store.pointer}: a round trip "
                "through memory for values that are in registers.",
                f"Use `{value}` itself." if len(value) <= 40 else "Use the stored value itself.",
            )
            return


def _still_there(kernel: SourceKernel, store: KernelAccess, between: Sequence[ast.stmt]) -> bool:
    """Whether nothing between changes the place, or what is stored there."""
    needed = names_in(store.address, *([store.mask] if store.mask else []))
    simple = all(
        isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr) for statement in between
    )
    later = [
        access for statement in between[1:-1] for access in accesses_in(kernel, statement) if access.writes
    ]
    return (
        simple
        and not needed & bound_in(*between[:-1])
        and not any(access.pointer in (None, store.pointer) for access in later)
    )


_ROWS = "for row in range(n):"


@kernel_rule(
    "low",
    "memory access",
    bad=(jit(LANES, _ROWS, f"    {_LOAD}", "    tl.store(out_ptr + row * n + i, x, mask=i < n)"),),
    # Waits for another program.
    good=(
        jit(
            _ROWS,
            "    while tl.load(x_ptr, volatile=True) < row:",
            "        pass",
            "    tl.store(out_ptr, row)",
        ),
    ),
)
def loop_invariant_load(kernel: SourceKernel) -> Iterator[Fault]:
    """A loop loads the same values in every iteration, and the compiler cannot move the load out of it.

    The compiler hoists a load whose address and mask stay the same, unless the loop stores something: for
    all it knows, the store changes what is loaded. So it is loaded again each time.

    Fix: load it once, before the loop.
    """
    for loop in kernel.nodes:
        if not isinstance(loop, ast.For) or calls_unknown(kernel, loop):
            continue
        accesses = accesses_in(kernel, loop)
        written = {access.pointer for access in accesses if access.writes}
        if not written or None in written or any(access.name.startswith("atomic") for access in accesses):
            continue
        changed = bound_in(loop)
        for access in accesses:
            if access.pointer in written or not _is_repeated(kernel, loop, access):
                continue
            if not names_in(access.call) & changed:
                stored = " and ".join(sorted(name for name in written if name))
                yield Fault(
                    access.call,
                    f"Every iteration loads the same values of {access.pointer}. The store to {stored} keeps "
                    "the compiler from loading them just once.",
                    f"Load them before the loop at line {loop.lineno}.",
                )


def _is_repeated(kernel: SourceKernel, loop: ast.For, access: KernelAccess) -> bool:
    """Whether a load stands in the loop itself, and each iteration runs it."""
    if access.writes or access.pointer is None or loop.iter in kernel.around(access.call):
        return False
    if any(keyword.arg == "volatile" for keyword in access.call.keywords):
        return False
    for outer in kernel.around(access.call):
        if outer is loop:
            return True
        if isinstance(outer, ast.For | ast.While | ast.If | ast.IfExp):
            return False
    return False
