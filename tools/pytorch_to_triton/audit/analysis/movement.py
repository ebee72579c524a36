"""What a kernel moves: the terms of its addresses, what is a scalar, what a loop changes."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from pytorch_to_triton.audit.call_arguments import (
    argument,
    index_parts,
    is_new_axis,
    is_whole_axis,
    literal_integer,
    only_adds_axes,
    shape_of,
)
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_TL = "triton.language."
_SAME_PLACES = frozenset({_TL + "max_contiguous", _TL + "multiple_of", _TL + "expand_dims", _TL + "cast"})
"""Calls that leave the values of their first argument as they are."""
_SAME_DIMS = (_SAME_PLACES | {_TL + "load"}) - {_TL + "expand_dims"}
_BLOCKS = frozenset({_TL + "arange", _TL + "make_block_ptr", _TL + "make_tensor_descriptor", _TL + "dot"})
_SHAPED = frozenset({_TL + "zeros", _TL + "full"})
_SCALARS = frozenset({_TL + "program_id", _TL + "num_programs", _TL + "cdiv"})
_HIDDEN = frozenset({_TL + "debug_barrier", _TL + "inline_asm_elementwise", _TL + "make_tensor_descriptor"})
"""Calls that access memory out of sight, or wait for others that do."""
_BUILTINS = frozenset({"range", "min", "max", "float", "int"})
_MOST_TERMS = 64

Dims = tuple[ast.expr | None, ...]
"""The sizes of a block; None for one that is not known, () for a scalar."""


@dataclass(frozen=True)
class Term:
    """A product in an address that is a sum of products."""

    factors: tuple[ast.expr, ...]
    block: bool
    """One of the factors is a tl.arange."""

    @property
    def coefficients(self) -> tuple[ast.expr, ...]:
        """What the tl.arange is multiplied with."""
        return tuple(one for one in self.factors if not (isinstance(one, ast.Call) or _is_one(one)))


def terms(address: ast.expr, kernel: SourceKernel) -> tuple[Term, ...] | None:
    """The products that an address sums up; None where a tl.arange goes through anything else than sums,
    products and remainders."""
    products = _products(address, kernel, frozenset())
    if products is None:
        return None
    return tuple(Term(factors, any(_is_range(one, kernel) for one in factors)) for factors in products)


def names_in(*values: ast.AST) -> frozenset[str]:
    """The names that the expressions themselves spell."""
    return frozenset(node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name))


def bound_in(*nodes: ast.AST) -> frozenset[str]:
    """The names that statements give a value to."""
    return frozenset(
        node.id
        for outer in nodes
        for node in ast.walk(outer)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def is_scalar(kernel: SourceKernel, *values: ast.AST) -> bool:
    """Whether nothing that the values are made from can be a block: no range, no call of unknown outcome.

    The parameters of a launched kernel are scalars and pointers.
    """
    return all(_is_scalar(node, kernel, _scalars(kernel)) for value in values for node in ast.walk(value))


def is_entry(kernel: SourceKernel) -> bool:
    """Whether it certainly is launched, and not called by another kernel."""
    return kernel.is_launched or any(path == _TL + "program_id" for path, _ in kernel.calls())


def accesses_in(kernel: SourceKernel, node: ast.AST) -> tuple[KernelAccess, ...]:
    """The accesses of a part of a kernel."""
    inside = {*ast.walk(node)}
    return tuple(access for access in kernel.accesses if access.call in inside)


def calls_unknown(kernel: SourceKernel, node: ast.AST) -> bool:
    """Whether a part of a kernel calls what may access memory out of sight."""
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        path = kernel.scope.path(call.func)
        builtin = isinstance(call.func, ast.Name) and call.func.id in _BUILTINS
        method = isinstance(call.func, ast.Attribute) and path is None and call.func.attr in ("to", "cast")
        if path in _HIDDEN or not (builtin or method or (path or "").startswith("triton.")):
            return True
    return False


def escapes(kernel: SourceKernel, parameter: str) -> bool:
    """Whether a pointer may be accessed otherwise than by the kernel's `accesses`."""
    loads = {access.call for access in kernel.accesses}
    for node in kernel.nodes:
        if not isinstance(node, ast.Call):
            continue
        path = kernel.scope.path(node.func)
        method = path is None and isinstance(node.func, ast.Attribute)
        builtin = isinstance(node.func, ast.Name) and node.func.id in _BUILTINS
        known = method or builtin or (path or "").startswith("triton.")
        opaque = not known or path in _HIDDEN | {_TL + "make_block_ptr"}
        if opaque and parameter in kernel.flow.parameters(node, stop=loads.__contains__):
            return True
    return any(access.pointer is None for access in kernel.accesses)


def statements_between(kernel: SourceKernel, first: ast.AST, second: ast.AST) -> Sequence[ast.stmt] | None:
    """The statements from one node's to another's, both included; None where they are not in one list so."""
    one, other = _statement(kernel, first), _statement(kernel, second)
    around = kernel.flow.parents.get(one) if one else None
    if one is None or other is None or around is not kernel.flow.parents.get(other):
        return None
    for block in _blocks(around) if around else [kernel.node.body]:
        if one in block and other in block:
            start, end = block.index(one), block.index(other)
            return block[start : end + 1] if start <= end else None
    return None


def run_between(kernel: SourceKernel, first: ast.AST, second: ast.AST) -> list[ast.stmt] | None:
    """The statements that run between two nodes' own, in whatever loops and branches these stand; None where
    the second never runs after the first. In a common loop that may be in its next iteration."""
    one, other = _path(kernel, first), _path(kernel, second)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))
    if shared < min(len(one), len(other)):
        block, start = _place(kernel, one[shared])
        same, end = _place(kernel, other[shared])
        if block is same and start < end:
            between = block[start + 1 : end]
            return [*_after(kernel, one[shared + 1 :]), *between, *_before(kernel, other[shared + 1 :])]
    loops = [at for at, node in enumerate(one[:shared]) if isinstance(node, ast.For | ast.While)]
    if not loops:
        return None
    inside = loops[-1] + 1
    return [*_after(kernel, one[inside:]), *_before(kernel, other[inside:])]


def dims(value: ast.expr, kernel: SourceKernel) -> Dims | None:
    """The sizes of a block, as its source spells them; None where even their number is not known."""
    return _dims(value, kernel, frozenset())


@lru_cache(maxsize=16)
def _scalars(kernel: SourceKernel) -> frozenset[str]:
    """The names of a kernel that certainly hold no block: all, less those that something else reaches."""
    parts = {
        name: [
            node
            for value in kernel.flow.feeds(name)
            for node in ast.walk(value)
            if isinstance(node, ast.Call | ast.Name)
        ]
        for name in kernel.scope.bindings
    }
    names = frozenset(parts)
    while left := {name for name in names if not all(_is_scalar(one, kernel, names) for one in parts[name])}:
        names -= left
    return names


def _is_scalar(node: ast.AST, kernel: SourceKernel, names: frozenset[str]) -> bool:
    """Whether one node, for itself, is no block."""
    match node:
        case ast.Call(func=func):
            path = kernel.scope.path(func) or ""
            method = isinstance(func, ast.Attribute) and func.attr in ("to", "cast")
            builtin = isinstance(func, ast.Name) and func.id in _BUILTINS
            return method or builtin or (path.startswith("triton.") and path not in _BLOCKS | _SHAPED)
        case ast.Name(id=name):
            return name in names or name in _BUILTINS or kernel.scope.path(node) is not None
    return True


def _products(
    node: ast.expr, kernel: SourceKernel, seen: frozenset[str]
) -> list[tuple[ast.expr, ...]] | None:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            first, second = _products(left, kernel, seen), _products(right, kernel, seen)
            return None if first is None or second is None else first + second
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = _products(left, kernel, seen), _products(right, kernel, seen)
            if first is None or second is None or len(first) * len(second) > _MOST_TERMS:
                return None
            return [one + other for one in first for other in second]
        case ast.BinOp(left=left, op=ast.Mod()):
            return _products(left, kernel, seen)
        case ast.Subscript(value=inner) if only_adds_axes(node.slice):
            return _products(inner, kernel, seen)
        case ast.Call(func=ast.Attribute(value=inner, attr="to")) if kernel.scope.path(node.func) is None:
            return _products(inner, kernel, seen)
        case ast.Call(func=func, args=[inner, *_]) if kernel.scope.path(func) in _SAME_PLACES:
            return _products(inner, kernel, seen)
        case ast.Name(id=name) if name not in seen:
            return _products_of_name(node, kernel, seen | {name})
    return [(node,)] if _is_range(node, kernel) or is_scalar(kernel, node) else None


def _products_of_name(
    name: ast.Name, kernel: SourceKernel, seen: frozenset[str]
) -> list[tuple[ast.expr, ...]] | None:
    """Those of what the name stands for: one assignment, and what is added to it later."""
    feeds = kernel.flow.feeds(name.id)
    if is_scalar(kernel, name):
        return [(name,)]
    starts = [one for one in feeds if not isinstance(kernel.flow.parents.get(one), ast.AugAssign)]
    if len(starts) + (name.id in kernel.parameters) != 1 or not feeds:
        return None
    parts = [_products(one, kernel, seen) for one in feeds]
    return None if None in parts else [product for part in parts for product in part or []]


def _is_range(node: ast.expr, kernel: SourceKernel) -> bool:
    return isinstance(node, ast.Call) and kernel.scope.path(node.func) == _TL + "arange"


def _is_one(node: ast.expr) -> bool:
    return literal_integer(node) == 1


def _path(kernel: SourceKernel, node: ast.AST) -> list[ast.stmt]:
    """The statements that a node stands in, the outermost first."""
    around = (node, *kernel.flow.around(node))
    return [outer for outer in around if isinstance(outer, ast.stmt) and outer is not kernel.node][::-1]


def _place(kernel: SourceKernel, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    """The list of statements that one stands in, and where."""
    around = kernel.flow.parents.get(statement)
    blocks = [kernel.node.body] if around is None else _blocks(around)
    block = next(block for block in blocks if statement in block)
    return block, block.index(statement)


def _after(kernel: SourceKernel, path: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in path:
        block, at = _place(kernel, statement)
        yield from block[at + 1 :]


def _before(kernel: SourceKernel, path: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in path:
        block, at = _place(kernel, statement)
        yield from block[:at]


def _statement(kernel: SourceKernel, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that a node stands in."""
    around = (node, *kernel.flow.around(node))
    return next((outer for outer in around if isinstance(outer, ast.stmt)), None)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """A statement's lists of statements."""
    for _, field in ast.iter_fields(node):
        if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
            yield field


def _dims(node: ast.expr, kernel: SourceKernel, seen: frozenset[str]) -> Dims | None:
    match node:
        case ast.Constant():
            return ()
        case ast.Name(id=name) if name not in seen:
            return _dims_of_name(node, kernel, seen | {name})
        case ast.BinOp(left=left, right=right):
            return _broadcast(_dims(left, kernel, seen), _dims(right, kernel, seen))
        case ast.Subscript(value=inner) if only_adds_axes(node.slice):
            return _with_axes(node, _dims(inner, kernel, seen))
        case ast.Call(func=ast.Attribute(value=inner, attr="to")) if kernel.scope.path(node.func) is None:
            return _dims(inner, kernel, seen)
        case ast.Call(func=ast.Attribute(value=inner, attr="T")):
            return None
        case ast.Call():
            return _dims_of_call(node, kernel, seen)
    return None


def _dims_of_call(call: ast.Call, kernel: SourceKernel, seen: frozenset[str]) -> Dims | None:
    path = kernel.scope.path(call.func) or ""
    if path == _TL + "arange":
        low, high = argument(call, 0, "start"), argument(call, 1, "end")
        return (high if literal_integer(low) == 0 else None,)
    if path in _SCALARS:
        return ()
    if path in _SHAPED:
        return tuple(shape_of(path, call)) or None
    if path in _SAME_DIMS and call.args:
        return _dims(call.args[0], kernel, seen)
    if path == _TL + "trans" and len(call.args) == 1:
        inner = _dims(call.args[0], kernel, seen)
        return inner[::-1] if inner else None
    return None


def _dims_of_name(name: ast.Name, kernel: SourceKernel, seen: frozenset[str]) -> Dims | None:
    feeds = kernel.flow.feeds(name.id)
    if name.id in kernel.parameters:
        return () if is_entry(kernel) and not feeds else None
    starts = [one for one in feeds if not isinstance(kernel.flow.parents.get(one), ast.AugAssign)]
    if len(starts) != 1:
        return None
    return () if isinstance(kernel.flow.parents.get(starts[0]), ast.For) else _dims(starts[0], kernel, seen)


def _broadcast(first: Dims | None, second: Dims | None) -> Dims | None:
    if first is None or second is None:
        return None
    if not first or not second:
        return first or second
    if len(first) != len(second):
        return None
    return tuple(_joined(one, other) for one, other in zip(first, second, strict=True))


def _joined(one: ast.expr | None, other: ast.expr | None) -> ast.expr | None:
    if one is not None and _is_one(one):
        return other
    if other is not None and _is_one(other):
        return one
    return one or other


def _with_axes(node: ast.Subscript, inner: Dims | None) -> Dims | None:
    """The sizes after `[:, None]`."""
    parts = index_parts(node.slice)
    if inner is None or sum(is_whole_axis(part) for part in parts) != len(inner):
        return None
    left = iter(inner)
    return tuple(ast.Constant(1) if is_new_axis(part) else next(left) for part in parts)
