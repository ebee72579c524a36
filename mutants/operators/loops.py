"""Mistakes in loops, and in what they carry from one iteration to the next."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.code import Edit
from mutants.operators.operator import Site, called, in_kernels

RANGES = ("range", "static_range")


@in_kernels(ast.For)
def first_iteration_skipped(node: ast.For, site: Site) -> Iterator[Edit]:
    """A loop starts a step later."""
    if bounds := bounds_of(node, site):
        start, stop, step = bounds
        assert isinstance(node.iter, ast.Call)
        if start is None:
            yield site.code.replaced(stop, f"{step}, {site.code.written(stop)}")
        else:
            yield site.code.replaced(start, f"{site.code.written(start)} + {step}")


@in_kernels(ast.For)
def last_iteration_skipped(node: ast.For, site: Site) -> Iterator[Edit]:
    """A loop ends a step earlier."""
    if bounds := bounds_of(node, site):
        _, stop, step = bounds
        yield site.code.replaced(stop, f"{site.code.written(stop)} - {step}")


def bounds_of(node: ast.For, site: Site) -> tuple[ast.expr | None, ast.expr, str] | None:
    """Start, stop and step of a loop over a range; None for the start that is left out."""
    if not isinstance(node.iter, ast.Call) or called(node.iter) not in RANGES:
        return None
    arguments = node.iter.args
    step = site.code.atom(arguments[2]) if len(arguments) == 3 else "1"
    return (None, arguments[0], step) if len(arguments) == 1 else (arguments[0], arguments[1], step)


@in_kernels(ast.AugAssign)
def sum_overwritten(node: ast.AugAssign, site: Site) -> Iterator[Edit]:
    """`total += x` becomes `total = x`."""
    target, value = site.code.written(node.target), site.code.written(node.value)
    yield site.code.replaced(node, f"{target} = {value}")


@in_kernels(ast.For)
def update_dropped(node: ast.For, site: Site) -> Iterator[Edit]:
    """A loop does not carry on what it has computed."""
    before = {n.id for n in stored(site.function) if n.lineno < node.lineno}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign | ast.AugAssign):
            targets = {n.id for n in stored(statement)}
            if targets and targets <= before:
                yield site.code.replaced(statement, "pass")


def stored(node: ast.AST) -> Iterator[ast.Name]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


@in_kernels(ast.If)
def condition_negated(node: ast.If, site: Site) -> Iterator[Edit]:
    """`if c:` becomes `if not c:`."""
    yield site.code.replaced(node.test, f"not ({site.code.written(node.test)})")
