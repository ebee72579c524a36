"""Mistakes in the code around kernels: launches, grids, outputs, layouts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from mutants.code import Edit
from mutants.operators.operator import Site, called, in_host_code

WITHOUT_ZEROS = {"zeros": "empty", "zeros_like": "empty_like", "new_zeros": "new_empty"}


@in_host_code(ast.Call)
def launch_arguments_swapped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """Two neighbouring arguments of a launch stand in each other's place."""
    if isinstance(node.func, ast.Subscript):
        for first, second in pairwise(node.args):
            if not any(isinstance(a, ast.Starred) for a in (first, second)):
                yield site.code.swapped(first, second)


@in_host_code(ast.Call)
def grid_axes_swapped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """The first two axes of a launch's grid stand in each other's place."""
    grid = node.func.slice if isinstance(node.func, ast.Subscript) else None
    if isinstance(grid, ast.Lambda):
        grid = grid.body
    if isinstance(grid, ast.Tuple) and len(grid.elts) > 1:
        yield site.code.swapped(grid.elts[0], grid.elts[1])


@in_host_code(ast.Call)
def cdiv_of_host_made_floor(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`triton.cdiv(n, BLOCK)` becomes `n // BLOCK`."""
    if called(node) == "cdiv":
        yield site.code.replaced(node, "({} // {})".format(*map(site.code.atom, node.args)))


@in_host_code(ast.Call)
def zeros_made_empty(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`torch.zeros` becomes `torch.empty`."""
    if called(node) in WITHOUT_ZEROS and isinstance(node.func, ast.Attribute):
        other = f"{site.code.written(node.func.value)}.{WITHOUT_ZEROS[called(node)]}"
        yield site.code.replaced(node.func, other)


@in_host_code(ast.Call)
def contiguous_dropped(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`x.contiguous()` becomes `x`."""
    if called(node) == "contiguous" and isinstance(node.func, ast.Attribute) and not node.args:
        yield site.code.replaced(node, site.code.atom(node.func.value))


@in_host_code(ast.Call)
def stride_of_other_dim(node: ast.Call, site: Site) -> Iterator[Edit]:
    """`x.stride(0)` becomes `x.stride(1)`, or the reverse; of `x.stride(-1)` likewise."""
    if called(node) == "stride" and len(node.args) == 1:
        axis = ast.literal_eval(node.args[0]) if not isinstance(node.args[0], ast.Name) else None
        if isinstance(axis, int):
            yield site.code.replaced(
                node.args[0], str(axis - 1 if axis > 0 else 1 if axis == 0 else -1 - axis % 2)
            )
