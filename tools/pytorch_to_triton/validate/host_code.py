"""What a candidate's source says of its calls: its kernels, and the sizes at which it takes another way.

Nothing is run. Kernels and code in other files are not looked at.
"""

import ast
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in

LEAST, MOST = 16, 2**24
"""Other numbers are hardly sizes at which code takes another way."""
_ARITHMETIC = {
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LARGEST_EXPONENT = 64
MOST_SWITCHES = 8
"""At most so many sizes at which the candidate's own code takes another way are tried."""
TILES = 3
"""An odd count, and more than one."""
MOST_NUMBERS, LARGEST_NUMBER = 12, 1024
"""Of those that are written in a reference: larger ones stand in for infinity, or are sizes."""
Functions = list[ast.FunctionDef]
Switch = tuple[int, str]
"""A size past which the candidate takes another way, and the declared dimension that it may be a size of."""


def kernels_in(source: str) -> frozenset[str]:
    """The kernels that code outside of kernels names: what only kernels call is a part of them."""
    tree = parse(source)
    kernels = kernels_of(tree)
    inside = set(map(id, nodes_in(kernels)))
    named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in inside}
    return frozenset(named.intersection(kernel.name for kernel in kernels))


def switches_in(source: str, declaration: Declaration) -> tuple[Switch, ...]:
    """The sizes that the code compares with, in kernels and around them, the smaller ones first; each with
    each dimension that may pass it.

    Where the code only refuses what is beyond, there is no other way, and where it compares each lane of a
    block, that is a mask.
    """
    tree = parse(source)
    defined, numbers = functions(tree), constants(tree)
    shapes, meant = dims_in(tree, declaration)
    lanes = lanes_in(defined)
    dims_by_size: dict[int, dict[str, None]] = {}
    for compared, size in comparisons(defined, numbers):
        read = shape_read(compared, shapes) or dims_of(compared, meant)
        dims = [dim for dim in read if dim in declaration.dims]
        if LEAST <= size <= MOST and dims and not holds_lanes(compared, lanes):
            dims_by_size.setdefault(size, {}).update(dict.fromkeys(dims))
    for block, dim in passed(loop_ends(kernels_of(tree), largest_blocks(tree, numbers)), meant, declaration):
        dims_by_size.setdefault(block, {})[dim] = None
    return tuple((size, dim) for size, dims in sorted(dims_by_size.items()) for dim in dims)


def groups_in(source: str, declaration: Declaration) -> tuple[Switch, ...]:
    """The sizes that whole groups of programs compute; past them, others compute what is left."""
    tree = parse(source)
    _, meant = dims_in(tree, declaration)
    ends = group_ends(kernels_of(tree), largest_blocks(tree, constants(tree)))
    return tuple(sorted({*passed(ends, meant, declaration)}))


def multiples_in(source: str, declaration: Declaration) -> tuple[Switch, ...]:
    """The sizes of a few whole tiles, wherever the code divides a dimension by a number: `N % 128 == 0`."""
    tree = parse(source)
    defined, numbers = functions(tree), constants(tree)
    shapes, meant = dims_in(tree, declaration)
    blocks, lanes = {**largest_blocks(tree, numbers), **numbers}, lanes_in(defined)
    found = set[Switch]()
    for node in nodes_in(defined):
        match node:
            case ast.BinOp(left=left, op=ast.Mod() | ast.FloorDiv(), right=right) if not holds_lanes(
                left, lanes
            ):
                size = TILES * (number_of(right, blocks) or 0)
                read = shape_read(left, shapes) or dims_of(left, meant)
                if TILES * LEAST <= size <= MOST:
                    found.update((size, dim) for dim in read if dim in declaration.dims)
    return tuple(sorted(found))


def numbers_in(source: str, name: str) -> tuple[float, ...]:
    """The numbers that a function or a class writes out, without their signs, the floats first."""
    nodes = ast.walk(parse(source))
    named = (n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == name)
    written = (n.value for n in nodes_in(named) if isinstance(n, ast.Constant) and n.value is not True)
    numbers = [n for n in written if isinstance(n, int | float) and 0 < n <= LARGEST_NUMBER]
    return tuple(dict.fromkeys(sorted(numbers, key=lambda number: isinstance(number, int))))[:MOST_NUMBERS]


def dims_in(
    tree: ast.Module, declaration: Declaration
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The declared shapes of tensors, and the dimensions behind variables."""
    shapes = {name: tensor.shape for name, tensor in declaration.tensors().items()}
    return shapes, dims_by_name(functions(tree), shapes, declaration.dims)


def passed(
    ends: Iterable[tuple[ast.expr, int]], meant: Mapping[str, Collection[str]], declaration: Declaration
) -> Iterator[Switch]:
    """Each size of an end that no declared size is past, with the longest of the dimensions behind it: what
    ends a loop or a group grows with each.
    """
    for end, size in ends:
        dims = [dim for dim in dims_of(end, meant) if dim in declaration.dims]
        longest = sorted(dims, key=lambda dim: max(declaration.dims[dim]))[-1:]
        yield from ((size, dim) for dim in longest if max(declaration.dims[dim]) <= size <= MOST)


def is_of_gradients(kernel: str) -> bool:
    """Whether a kernel's name says that it computes gradients."""
    return any(part in kernel for part in ("backward", "bwd", "grad"))


def parse(source: str) -> ast.Module:
    """Empty for what is not Python: that is said elsewhere."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def functions(tree: ast.AST) -> Functions:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def nodes_in(trees: Iterable[ast.AST]) -> Iterator[ast.AST]:
    return (node for tree in trees for node in ast.walk(tree))


def kernels_of(tree: ast.AST) -> Functions:
    """Those with a decorator that is triton.jit, or one of another language of kernels that is called so."""

    def is_jit(decorator: ast.expr) -> bool:
        return ast.unparse(decorator).partition("(")[0].split(".")[-1] == "jit"

    return [function for function in functions(tree) if any(map(is_jit, function.decorator_list))]


def constants(tree: ast.Module) -> dict[str, int]:
    """Numbers that have a name, of the module's own or in a function."""
    numbers: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if (number := number_of(value, numbers)) is not None:
                    numbers[name] = number
    return numbers


def number_of(node: ast.expr, sizes: Mapping[str, int]) -> int | None:
    """A whole number written out: `1024`, `2**20`, `4 * BLOCK`; of `65536 // x.element_size()` the most."""
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return -number
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.Call(func=ast.Attribute(attr="constexpr"), args=[value]):
            return number_of(value, sizes)
        case ast.Call(func=ast.Name(id="min"), args=args):
            return min((n for each in args if (n := number_of(each, sizes)) is not None), default=None)
        case ast.BinOp(left=left, op=op, right=right):
            first, second = number_of(left, sizes), number_of(right, sizes)
            if isinstance(op, ast.FloorDiv):
                return first if first is None or not second else first // second
            if type(op) not in _ARITHMETIC or first is None or second is None:
                return None
            if isinstance(op, ast.Pow | ast.LShift) and not (
                0 <= second <= _LARGEST_EXPONENT and first <= MOST
            ):
                return None
            return int(_ARITHMETIC[type(op)](first, second))
    return None


def refusals(defined: Functions) -> Iterator[ast.expr]:
    """The conditions under which the code only raises."""
    for node in nodes_in(defined):
        match node:
            case ast.If(test=test, body=[ast.Raise()], orelse=[]) | ast.Assert(test=test):
                yield test


def comparisons(defined: Functions, sizes: Mapping[str, int]) -> Iterator[tuple[ast.expr, int]]:
    """What is compared with which number, or bounded by it, but where that is refused."""
    refused = set(map(id, nodes_in(refusals(defined))))
    for node in nodes_in(defined):
        match node:
            case ast.Compare(left=first, ops=ops, comparators=others) if all(
                isinstance(op, _ORDERED) for op in ops
            ):
                sides = [first, *others]
            case ast.Call(func=ast.Name(id="min" | "max"), args=sides):
                pass
            case _:
                continue
        for left, right in pairwise(sides) if id(node) not in refused else ():
            numbers = number_of(left, sizes), number_of(right, sizes)
            if numbers[0] is None and numbers[1] is not None:
                yield left, numbers[1] * divisor_of(left, sizes)
            if numbers[1] is None and numbers[0] is not None:
                yield right, numbers[0] * divisor_of(right, sizes)


def divisor_of(node: ast.expr, sizes: Mapping[str, int]) -> int:
    """What a count of blocks, `cdiv(M, 64)` or `M // BLOCK`, is to be multiplied by to be a size again."""
    match node:
        case (
            ast.Call(func=ast.Attribute(attr="cdiv"), args=[_, divisor])
            | ast.BinOp(op=ast.FloorDiv(), right=divisor)
        ):
            return number_of(divisor, sizes) or 1
    return 1


def loop_ends(kernels: Functions, largest: Mapping[str, int]) -> Iterator[tuple[ast.expr, int]]:
    """Where a loop of a kernel ends, with twice the largest block that it goes on by: what a turn hands on
    to the next but one shows in the third.
    """
    for node in nodes_in(kernels):
        match node:
            case (
                ast.For(iter=ast.Call(args=[_, end, ast.Name(id=block), *_]))
                | ast.Call(func=ast.Attribute(attr="cdiv"), args=[end, ast.Name(id=block)])
            ) if block in largest:
                yield end, 2 * largest[block]


def group_ends(kernels: Functions, largest: Mapping[str, int]) -> Iterator[tuple[ast.expr, int]]:
    """What is divided into blocks that programs take in groups, with the size of the largest group."""
    nodes = list(nodes_in(kernels))
    divided: dict[str, tuple[ast.expr, int]] = {}
    for node in nodes:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=count)],
                value=ast.Call(func=ast.Attribute(attr="cdiv"), args=[end, ast.Name(id=block)]),
            ) if block in largest:
                divided[count] = end, largest[block]
    for node in nodes:
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(attr="minimum") | ast.Name(id="min"), args=[blocks, ast.Name(id=group)]
                )
                | ast.Call(func=ast.Attribute(attr="swizzle2d"), args=[_, _, blocks, _, ast.Name(id=group)])
            ) if group in largest:
                counts = (n.id for n in ast.walk(blocks) if isinstance(n, ast.Name) and n.id in divided)
                yield from ((end, block * largest[group]) for end, block in map(divided.__getitem__, counts))


def largest_blocks(tree: ast.Module, numbers: Mapping[str, int]) -> dict[str, int]:
    """What kernels are launched with by name, `BLOCK=1024`, and what they are tuned with."""
    largest: dict[str, int] = {}

    def note(name: object, value: ast.expr) -> None:
        if isinstance(name, str) and (number := number_of(value, numbers)) is not None:
            largest[name] = max(number, largest.get(name, number))

    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Subscript(), keywords=keywords):
                for keyword in keywords:
                    note(keyword.arg, keyword.value)
            case ast.Call(func=ast.Attribute(attr="Config"), args=[ast.Dict(keys=keys, values=values), *_]):
                for key, value in zip(keys, values, strict=True):
                    note(key.value if isinstance(key, ast.Constant) else None, value)
    return largest


def dims_by_name(
    defined: Functions, shapes: Mapping[str, tuple[str, ...]], dims: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The declared dimensions that variables hold, or are computed from: `n_rows, n_cols = x.shape`."""
    meant: dict[str, tuple[str, ...]] = {name: (name,) for name in dims}
    parameters = {f.name: [a.arg for a in (*f.args.posonlyargs, *f.args.args)] for f in defined}
    nodes = [node for node in nodes_in(defined) if isinstance(node, ast.Assign | ast.Call)]
    for _ in range(2):  # a function may stand above the one whose variables it is given
        for node in nodes:
            match node:
                case ast.Assign(targets=[target], value=value):
                    assign(target, value, shapes, meant)
                case (
                    ast.Call(func=ast.Name(id=called), args=given)
                    | ast.Call(func=ast.Subscript(value=ast.Name(id=called)), args=given)
                ) if called in parameters:
                    for name, value in zip(parameters[called], given, strict=False):
                        assign(ast.Name(name), value, shapes, meant)
    return meant


def lanes_in(defined: Functions) -> set[str]:
    """The variables that hold a number for each lane of a block."""
    lanes = set[str]()
    for node in nodes_in(defined):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if holds_lanes(value, lanes):
                lanes.add(name)
    return lanes


def holds_lanes(value: ast.expr, lanes: Collection[str]) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "arange")
        or (isinstance(node, ast.Name) and node.id in lanes)
        for node in ast.walk(value)
    )


def assign(
    target: ast.expr,
    value: ast.expr,
    shapes: Mapping[str, tuple[str, ...]],
    meant: dict[str, tuple[str, ...]],
) -> None:
    """Note what an assignment makes of its names."""
    match target, value:
        case ast.Tuple(elts=names), ast.Attribute(value=ast.Name(id=tensor), attr="shape") if len(
            shapes.get(tensor, ())
        ) == len(names):
            for name, text in zip(names, shapes[tensor], strict=True):
                if isinstance(name, ast.Name):
                    meant.setdefault(name.id, tuple(sorted(names_in(text))))
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for name, each in zip(names, values, strict=True):
                assign(name, each, shapes, meant)
        case ast.Name(id=name), _:
            read = shape_read(value, shapes) or dims_of(value, meant)
            if read:
                meant.setdefault(name, read)


def shape_read(value: ast.expr, shapes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The dimensions behind `x.shape[-1]`, `x.size(-1)` and `x.numel()`."""
    match value:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=tensor), attr="shape"), slice=at):
            place = number_of(at, {})
        case ast.Call(func=ast.Attribute(value=ast.Name(id=tensor), attr="size"), args=[at]):
            place = number_of(at, {})
        case ast.Call(func=ast.Attribute(value=ast.Name(id=tensor), attr="numel"), args=[]):
            return tuple(
                dict.fromkeys(name for text in shapes.get(tensor, ()) for name in sorted(names_in(text)))
            )
        case _:
            return ()
    shape = shapes.get(tensor, ())
    if place is None or not -len(shape) <= place < len(shape):
        return ()
    return tuple(sorted(names_in(shape[place])))


def dims_of(value: ast.expr, dims_by_name: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The dimensions of all variables in an expression."""
    names = (node.id for node in ast.walk(value) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(dim for name in names for dim in dims_by_name.get(name, ())))
