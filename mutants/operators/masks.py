"""Mistakes in masks, bounds, and what masked lanes hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.code import Edit
from mutants.operators.operator import LOADS_AND_STORES, Site, enter_swap, in_kernels, keyword, of_language


@in_kernels(ast.BinOp)
def mask_term_dropped(node: ast.BinOp, site: Site) -> Iterator[Edit]:
    """`a & b` becomes `a`, or `b`."""
    sides = (node.left, node.right)
    if isinstance(node.op, ast.BitAnd) and not any(isinstance(side, ast.Constant) for side in sides):
        for side in sides:
            yield site.code.replaced(node, site.code.atom(side))


@in_kernels(ast.Call)
def mask_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """A load or store loses its mask."""
    if of_language(node, *LOADS_AND_STORES) and (edit := site.code.without(node, "mask", "other")):
        yield edit


@in_kernels(ast.UnaryOp)
def negation_dropped(node: ast.UnaryOp, site: Site) -> Iterator[Edit]:
    """`~mask` becomes `mask`."""
    if isinstance(node.op, ast.Invert | ast.Not):
        yield site.code.replaced(node, site.code.atom(node.operand))


enter_swap(
    "bound_off_by_one",
    "`<` becomes `<=`, or the reverse; `>` likewise.",
    {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
)
enter_swap(
    "equality_negated", "`==` becomes `!=`, or the reverse.", {ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}
)


@in_kernels(ast.Compare)
def bound_of_other_dim(node: ast.Compare, site: Site) -> Iterator[Edit]:
    """`rows < n_rows` becomes `rows < n_cols`."""
    bounds = {bound.id for compare in ast.walk(site.function) if (bound := bound_of(compare))}
    if own := bound_of(node):
        for other in sorted(bounds - {own.id})[:1]:
            yield site.code.replaced(own, other)


def bound_of(node: ast.AST) -> ast.Name | None:
    """`n` of `index < n`."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
        bound = node.comparators[0]
        return bound if isinstance(bound, ast.Name) else None
    return None


@in_kernels(ast.Call)
def other_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """A masked load does not say what masked lanes hold."""
    if of_language(node, "load") and (edit := site.code.without(node, "other")):
        yield edit


@in_kernels(ast.Call)
def other_changed(node: ast.Call, site: Site) -> Iterator[Edit]:
    """Masked lanes hold 1 instead of 0, or 0 instead of another number."""
    other = keyword(node, "other")
    if of_language(node, "load") and other is not None:
        zero = isinstance(other.value, ast.Constant) and other.value.value == 0
        yield site.code.replaced(other.value, "1" if zero else "0")
