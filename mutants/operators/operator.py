"""What an operator is: from a node of a kernel file to the ways to make one mistake there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from mutants.code import Code, Edit, Function

Make = Callable[[Any, "Site"], Iterator[Edit]]
LOADS_AND_STORES = frozenset(
    {"load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas"}
)


@dataclass(frozen=True)
class Operator:
    """One kind of mistake. Its docstring's first line says what becomes of what."""

    name: str
    summary: str
    node: type[ast.AST]
    in_kernels: bool
    """Else in the Python code around kernels."""
    make: Make


@dataclass(frozen=True)
class Site:
    """Where an operator is asked: in a function of a file."""

    code: Code
    function: Function

    @property
    def parameters(self) -> list[str]:
        return [parameter.arg for parameter in self.function.args.args]

    @property
    def constexprs(self) -> list[str]:
        """Parameters that are compiled in."""
        return [
            a.arg
            for a in self.function.args.args
            if a.annotation and "constexpr" in ast.unparse(a.annotation)
        ]


OPERATORS: list[Operator] = []


def in_kernels(node: type[ast.AST], *, host_code: bool = False) -> Callable[[Make], Make]:
    """Enters a function as an operator on such nodes of kernels, named after the function."""

    def enter(make: Make) -> Make:
        summary = (make.__doc__ or "").strip().partition("\n")[0]
        OPERATORS.append(Operator(make.__name__, summary, node, not host_code, make))
        return make

    return enter


in_host_code = partial(in_kernels, host_code=True)
"""As `in_kernels`, for the functions around kernels."""


def enter_swap(name: str, summary: str, swaps: Mapping[type[ast.AST], tuple[str, str]]) -> None:
    """Enters an operator of kernels that writes another symbol between two expressions."""

    def make(node: ast.BinOp | ast.Compare, site: Site) -> Iterator[Edit]:
        symbols = [node.op] if isinstance(node, ast.BinOp) else node.ops
        right = node.right if isinstance(node, ast.BinOp) else node.comparators[0]
        if len(symbols) == 1 and (change := swaps.get(type(symbols[0]))):
            yield site.code.between(node.left, right, *change)

    node = ast.BinOp if any(issubclass(symbol, ast.operator) for symbol in swaps) else ast.Compare
    OPERATORS.append(Operator(name, summary, node, True, make))


def called(call: ast.expr) -> str:
    """The last name of what is called: `load` of `tl.load(...)`; empty for what is no call of a name."""
    function = call.func if isinstance(call, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def of_language(call: ast.expr, *names: str) -> bool:
    """Whether it calls one of these functions of `tl`, such as `tl.load`."""
    function = call.func if isinstance(call, ast.Call) else None
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "tl"
        and function.attr in names
    )


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((k for k in call.keywords if k.arg == name), None)


def cast_to(call: ast.Call, dtype: str) -> ast.expr | None:
    """`x` of `x.to(dtype)`; None for any other call."""
    cast = called(call) == "to" and len(call.args) == 1 and not call.keywords
    if cast and isinstance(call.func, ast.Attribute) and ast.unparse(call.args[0]) == dtype:
        return call.func.value
    return None
