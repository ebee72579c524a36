"""Mistakes in what is computed, and in which precision."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from mutants.code import Edit
from mutants.operators.operator import Site, called, cast_to, enter_swap, in_kernels, keyword, of_language

EXPONENTIALS = ("exp", "exp2", "term")
REDUCTIONS: dict[str, tuple[str, ...]] = {
    "max": ("min", "sum"),
    "min": ("max",),
    "sum": ("max",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
}
ALONG_AN_AXIS = (*REDUCTIONS, "reduce", "cumsum", "cumprod", "associative_scan")
OTHER_AXIS: dict[object, str] = {0: "1", 1: "0"}


enter_swap("plus_made_minus", "`a + b` becomes `a - b`.", {ast.Add: ("+", "-")})
enter_swap("minus_made_plus", "`a - b` becomes `a + b`.", {ast.Sub: ("-", "+")})


@in_kernels(ast.BinOp)
def factor_dropped(node: ast.BinOp, site: Site) -> Iterator[Edit]:
    """`a * b` becomes `a`."""
    if isinstance(node.op, ast.Mult):
        yield site.code.replaced(node, site.code.atom(node.left))


@in_kernels(ast.BinOp)
def divided_by_block(node: ast.BinOp, site: Site) -> Iterator[Edit]:
    """`x / n_cols` becomes `x / BLOCK_N`."""
    block = next((name for name in site.constexprs if name.startswith("BLOCK")), None)
    sizes = {n for n in site.parameters if not n.endswith("_ptr")} - set(site.constexprs)
    if isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name) and node.right.id in sizes and block:
        yield site.code.replaced(node.right, block)


@in_kernels(ast.BinOp)
def eps_dropped(node: ast.BinOp, site: Site) -> Iterator[Edit]:
    """`x + eps` becomes `x`."""
    for eps, kept in ((node.left, node.right), (node.right, node.left)):
        if isinstance(node.op, ast.Add) and isinstance(eps, ast.Name) and "eps" in eps.id.lower():
            yield site.code.replaced(node, site.code.atom(kept))


@in_kernels(ast.Call)
def max_subtraction_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`exp(x - max)` becomes `exp(x)`."""
    argument = node.args[0] if node.args else None
    if called(node) in EXPONENTIALS and isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Sub):
        yield site.code.replaced(argument, site.code.written(argument.left))


@in_kernels(ast.Call)
def cast_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`x.to(tl.float32)` becomes `x`."""
    if value := cast_to(node, "tl.float32"):
        yield site.code.replaced(node, site.code.atom(value))


@in_kernels(ast.Call)
def accumulator_narrowed(node: ast.Call, site: Site) -> Iterator[Edit]:
    """What sums start from is float16 instead of float32."""
    if of_language(node, "zeros", "full"):
        for argument in (*node.args, *(k.value for k in node.keywords)):
            if site.code.written(argument) == "tl.float32":
                yield site.code.replaced(argument, "tl.float16")


@in_kernels(ast.Call)
def accumulator_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.dot(a, b, total)` becomes `tl.dot(a, b)`."""
    if of_language(node, "dot") and len(node.args) == 3:
        yield Edit(site.code.end(node.args[1]), site.code.end(node.args[2]), "")
    if of_language(node, "dot") and (edit := site.code.without(node, "acc")):
        yield edit


@in_kernels(ast.Call)
def reduction_changed(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.max` becomes `tl.min` or `tl.sum`, `tl.sum` becomes `tl.max`, and so on."""
    if of_language(node, *REDUCTIONS):
        for other in REDUCTIONS[called(node)]:
            yield site.code.replaced(node.func, f"tl.{other}")


@in_kernels(ast.Call)
def axis_changed(node: ast.Call, site: Site) -> Iterator[Edit]:
    """A block of two dimensions is reduced, or scanned, along the other one."""
    named = keyword(node, "axis")
    axis = named.value if named else node.args[1] if len(node.args) > 1 else None
    if (
        of_language(node, *ALONG_AN_AXIS)
        and isinstance(axis, ast.Constant)
        and "None" in site.code.written(site.function)
    ):
        yield site.code.replaced(axis, OTHER_AXIS.get(axis.value, "0"))


@in_kernels(ast.Call)
def nan_handling_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`propagate_nan`, or a `tl.where` on NaN, is left out."""
    if edit := site.code.without(node, "propagate_nan"):
        yield edit
    if of_language(node, "where") and len(node.args) == 3:
        test, _, otherwise = node.args
        if isinstance(test, ast.Compare) and ast.dump(test.left) == ast.dump(test.comparators[0]):
            yield site.code.replaced(node, site.code.atom(otherwise))


@in_kernels(ast.Call)
def branches_swapped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.where(c, a, b)` becomes `tl.where(c, b, a)`."""
    if of_language(node, "where") and len(node.args) == 3:
        yield site.code.swapped(node.args[1], node.args[2])


@in_kernels(ast.Constant)
def constant_changed(node: ast.Constant, site: Site) -> Iterator[Edit]:
    """A float constant grows by a hundredth; 0.0 becomes 1.0."""
    if isinstance(node.value, float) and math.isfinite(node.value):
        yield site.code.replaced(node, repr(node.value * 1.01 or 1.0))


@in_kernels(ast.BinOp)
def number_changed(node: ast.BinOp, site: Site) -> Iterator[Edit]:
    """A whole number in arithmetic grows by one."""
    for side in (node.left, node.right):
        if isinstance(side, ast.Constant) and type(side.value) is int:
            yield site.code.replaced(side, str(side.value + 1))


@in_kernels(ast.Call)
def cdiv_made_floor(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`tl.cdiv(n, BLOCK)` becomes `n // BLOCK`."""
    if of_language(node, "cdiv"):
        yield site.code.replaced(node, "({} // {})".format(*map(site.code.atom, node.args)))
