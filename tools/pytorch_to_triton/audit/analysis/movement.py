"""What a kernel moves: the terms of its addresses, what is a scalar, what a loop changes."""

import ast
from collections.abc import Iterator, Sequence
from itertools import takewhile

from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_TL = "triton.language."
_HIDDEN = frozenset({_TL + "debug_barrier", _TL + "inline_asm_elementwise", _TL + "make_tensor_descriptor"})
"""Calls that access memory out of sight, or wait for others that do."""
_BUILTINS = frozenset({"range", "min", "max", "float", "int"})


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


def accesses_in(kernel: SourceKernel, node: ast.AST) -> tuple[KernelAccess, ...]:
    """The accesses of a part of a kernel."""
    inside = {*ast.walk(node)}
    return tuple(access for access in kernel.accesses if access.call in inside)


def calls_unknown(kernel: SourceKernel, node: ast.AST) -> bool:
    """Whether a part of a kernel calls what may access memory out of sight, or wait for others that do.

    Functions of the file that access nothing themselves may be called.
    """
    return any(isinstance(call, ast.Call) and _is_unknown(call, kernel) for call in ast.walk(node))


def _is_unknown(call: ast.Call, kernel: SourceKernel) -> bool:
    path = kernel.scope.path(call.func)
    if path is not None:
        return path in _HIDDEN or not path.startswith("triton.")
    match call.func:
        case ast.Attribute(attr=method):
            return method not in ("to", "cast")
        case ast.Name(id=name) if name not in _BUILTINS:
            binding = kernel.scope.find(name)
            helpers = (one for one in kernel.file.kernels if binding and one.node is binding.node)
            helper = next((one for one in helpers if one is not kernel), None)
            return helper is None or bool(helper.accesses) or calls_unknown(helper, helper.node)
    return not isinstance(call.func, ast.Name)


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
