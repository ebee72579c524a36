"""What a kernel moves: the order of its accesses, what a loop changes, and offsets as sums of products."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_HIDDEN = ("debug_barrier", "inline_asm_elementwise", "make_tensor_descriptor")
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
    if operation := kernel.operation(call):
        return operation.name in _HIDDEN
    if path is not None:
        return not path.startswith("triton.")
    match call.func:
        case ast.Attribute(attr=method):
            return method not in ("to", "cast")
        case ast.Name(id=name) if name not in _BUILTINS:
            helper = kernel.file.kernel_named(name, kernel.scope)
            if helper is None or helper is kernel:
                return True
            return bool(helper.accesses) or calls_unknown(helper, helper.node)
    return not isinstance(call.func, ast.Name)


def escapes(kernel: SourceKernel, parameter: str) -> bool:
    """Whether a pointer may be accessed otherwise than by the kernel's `accesses`."""
    accesses = {access.call for access in kernel.accesses}
    calls = (node for node in kernel.nodes if isinstance(node, ast.Call))
    opaque = [one for one in calls if _is_unknown(one, kernel) or kernel.is_a(one, "make_block_ptr")]
    return any(access.pointer is None for access in kernel.accesses) or any(
        parameter in kernel.parameters_in(call, stop=accesses.__contains__) for call in opaque
    )


def statements_between(kernel: SourceKernel, first: ast.AST, second: ast.AST) -> Sequence[ast.stmt] | None:
    """The statements from one node's to another's, both included; None where they are not in one list so."""
    one, other = _path(kernel, first), _path(kernel, second)
    if not one or not other:
        return None
    (block, start), (same, end) = _place(kernel, one[-1]), _place(kernel, other[-1])
    return block[start : end + 1] if block is same and start <= end else None


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
    around = (node, *kernel.around(node))
    return [outer for outer in around if isinstance(outer, ast.stmt) and outer is not kernel.node][::-1]


def _place(kernel: SourceKernel, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    """The list of statements that one stands in, and where."""
    around = kernel.parents.get(statement)
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


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """A statement's lists of statements."""
    for _, field in ast.iter_fields(node):
        if isinstance(field, list) and field and isinstance(field[0], ast.stmt):
            yield field


Monomial = tuple[int, ...]
"""The keys of the factors, in order; () of the constant."""
Polynomial = Mapping[Monomial, int]
"""The products with their coefficients, none of them 0."""
_CLAMPS = ("maximum", "minimum")
_DEEPEST = 20
_MOST_TERMS = 64


def polynomial(value: ast.expr, kernel: SourceKernel, pointer: str | None = None) -> Polynomial | None:
    """The value as a sum of products, a pointer and clamps left out; None where it has too many."""
    return _polynomial(value, kernel, pointer, _DEEPEST)


def difference(one: Polynomial, other: Polynomial) -> Polynomial:
    """One less the other."""
    rest = Counter(one)
    rest.subtract(other)
    return _without_zeros(rest)


def _polynomial(
    value: ast.expr, kernel: SourceKernel, pointer: str | None, deepest: int
) -> Polynomial | None:
    value = kernel.bare(value)
    if (number := literal_integer(value)) is not None:
        return {(): number} if number else {}
    if isinstance(value, ast.Name) and value.id == pointer:
        return {}
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right) if deepest:
            one, other = (_polynomial(side, kernel, pointer, deepest - 1) for side in (left, right))
            return None if one is None or other is None else _combine(one, op, other)
    clamped = kernel.operation(value)
    if clamped and clamped.name in _CLAMPS and len(clamped.operands) == 2 and deepest:
        inner, limit = clamped.operands
        inner = limit if literal_integer(inner) is not None else inner
        return _polynomial(inner, kernel, pointer, deepest - 1)
    return {(kernel.key(value),): 1}


def _combine(one: Polynomial, op: ast.operator, other: Polynomial) -> Polynomial | None:
    if isinstance(op, ast.Sub):
        return difference(one, other)
    products: Counter[Monomial] = Counter()
    if isinstance(op, ast.Add):
        products.update(one)
        products.update(other)
    elif len(one) * len(other) > _MOST_TERMS:
        return None
    else:
        for first, many in one.items():
            for second, more in other.items():
                products[tuple(sorted(first + second))] += many * more
    return _without_zeros(products)


def _without_zeros(polynomial: Mapping[Monomial, int]) -> Polynomial:
    return {monomial: many for monomial, many in polynomial.items() if many}
