"""Mistakes in addresses, in who does what, and in what is stored when."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.code import Edit
from mutants.operators.operator import (
    LOADS_AND_STORES,
    Site,
    called,
    cast_to,
    enter_swap,
    in_kernels,
    keyword,
    of_language,
)

OTHER_AXIS: dict[object, str] = {0: "1", 1: "0", 2: "0"}


@in_kernels(ast.Call)
def offset_by_one(node: ast.Call, site: Site) -> Iterator[Edit]:
    """A load or store goes one element too far."""
    if of_language(node, *LOADS_AND_STORES) and node.args:
        yield site.code.replaced(node.args[0], f"{site.code.written(node.args[0])} + 1")


@in_kernels(ast.Call)
def lanes_shifted(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.arange(0, BLOCK)` starts at 1."""
    if of_language(node, "arange"):
        yield site.code.replaced(node, f"(1 + {site.code.written(node)})")


@in_kernels(ast.Name)
def strides_swapped(node: ast.Name, site: Site) -> Iterator[Edit]:
    """A stride of a tensor stands where another of the same tensor belongs."""
    tensor = node.id.partition("_")[0]
    strides = [name for name in site.parameters if "stride" in name and name.partition("_")[0] == tensor]
    if node.id in strides and len(strides) > 1 and isinstance(node.ctx, ast.Load):
        yield site.code.replaced(node, strides[strides.index(node.id) - 1])


@in_kernels(ast.Call)
def offset_cast_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`.to(tl.int64)` is left out."""
    if value := cast_to(node, "tl.int64"):
        yield site.code.replaced(node, site.code.atom(value))


@in_kernels(ast.Call)
def program_axis_changed(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.program_id(0)` becomes `tl.program_id(1)`, or the reverse."""
    axis = node.args[0] if node.args else None
    if of_language(node, "program_id", "num_programs") and isinstance(axis, ast.Constant):
        yield site.code.replaced(axis, OTHER_AXIS[axis.value])


enter_swap(
    "quotient_and_remainder_swapped",
    "`//` becomes `%`, or the reverse.",
    {ast.FloorDiv: ("//", "%"), ast.Mod: ("%", "//")},
)


@in_kernels(ast.Expr)
def store_skipped(node: ast.Expr, site: Site) -> Iterator[Edit]:
    """A store, or an atomic update, is left out."""
    if of_language(node.value, *LOADS_AND_STORES) or called(node.value) == "store":
        yield site.code.replaced(node, "pass")


@in_kernels(ast.Expr)
def barrier_dropped(node: ast.Expr, site: Site) -> Iterator[Edit]:
    """`tl.debug_barrier()` is left out."""
    if of_language(node.value, "debug_barrier"):
        yield site.code.replaced(node, "pass")


@in_kernels(ast.Call)
def semantics_relaxed(node: ast.Call, site: Site) -> Iterator[Edit]:
    """An acquire or release becomes relaxed; a volatile load a usual one."""
    sem = keyword(node, "sem")
    if sem is not None and isinstance(sem.value, ast.Constant) and sem.value.value != "relaxed":
        yield site.code.replaced(sem.value, '"relaxed"')
    if sem is None and called(node).startswith("atomic_"):
        yield Edit(site.code.end(node) - 1, site.code.end(node), ', sem="relaxed")')
    if edit := site.code.without(node, "volatile"):
        yield edit


@in_kernels(ast.Call)
def transpose_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.trans(x)` becomes `x`."""
    if of_language(node, "trans") and len(node.args) == 1:
        yield site.code.replaced(node, site.code.atom(node.args[0]))
