"""Whether kernels show what is known to be compiled wrongly. Source alone is looked at; nothing is run."""

import ast
from collections.abc import Callable, Iterator, Sequence

from pytorch_to_triton.hardware.miscompilations import Miscompilation, Pattern, concerning
from pytorch_to_triton.hardware.versions import Versions
from pytorch_to_triton.validate.host_code import functions, is_kernel, parse

Test = Callable[[ast.AST], bool]
LOADS = ("load", "load_tile")


def matching_miscompilations(source: str, versions: Versions) -> tuple[Miscompilation, ...]:
    """The known miscompilations that concern this machine and that a kernel of the file shows."""
    return shown_in(source, concerning(versions))


def shown_in(source: str, entries: Sequence[Miscompilation]) -> tuple[Miscompilation, ...]:
    """Those that a kernel of the file shows."""
    kernels = [function for function in functions(parse(source)) if is_kernel(function)]
    return tuple(entry for entry in entries if any(map(PATTERNS[entry.pattern], kernels)))


def register_operand(kernel: ast.AST) -> bool:
    """A tl.dot in a loop whose first operand is computed, and not a tile as it was loaded."""
    computed = {name for name, value in assignments(kernel) if not calls(*LOADS)(value)}
    first = [dot.args[0] for loop in loops(kernel) for dot in dots(loop) if dot.args]
    return any(not isinstance(operand, ast.Name) or operand.id in computed for operand in first)


def two_dots_into_one(kernel: ast.AST) -> bool:
    """Two tl.dot in one loop whose results have one name."""
    operands = [[n for n, value in assignments(loop) if holds(value, calls("dot"))] for loop in loops(kernel)]
    return any(len(set(names)) < len(names) for names in operands)


REDUCED_BY = {"sum": "add", "max": "maximum", "min": "minimum"}
"""What combines two elements where a tile is reduced."""


def two_reductions_of_a_loop(kernel: ast.AST) -> bool:
    """A loop that takes in, by another function, what tiles are reduced to as they were loaded."""
    tiles = frozenset(name for name, value in assignments(kernel) if calls(*LOADS)(without_cast(value)))
    for loop in loops(kernel):
        reduced = {name: by for name, value in assignments(loop) if (by := reduced_by(value, tiles))}
        for by, value in taken_in(loop):
            inner = reduced.get(value.id) if isinstance(value, ast.Name) else reduced_by(value, tiles)
            if inner and inner != by:
                return True
    return False


def reduced_by(value: ast.expr, tiles: frozenset[str]) -> str:
    """What combines two elements of a loaded tile, where it is reduced along another axis than its first."""
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    tile, others = without_cast(value.args[0]), value.args[1:]
    options = {keyword.arg: keyword.value for keyword in value.keywords}
    axis = options.get("axis", others[0] if others else None)
    is_loaded = calls(*LOADS)(tile) or (isinstance(tile, ast.Name) and tile.id in tiles)
    if not is_loaded or not (isinstance(axis, ast.Constant) and axis.value):
        return ""
    name = ast.unparse(value.func).split(".")[-1]
    if name == "reduce":
        combine = options.get("combine_fn", others[1] if len(others) > 1 else None)
        return ast.unparse(combine) if combine else ""
    return REDUCED_BY.get(name, "")


def without_cast(value: ast.expr) -> ast.expr:
    """The tensor of `tensor.to(tl.float32)`: where it is float32 already, nothing is left of that."""
    match value:
        case ast.Call(func=ast.Attribute(value=tensor, attr="to"), args=[ast.Attribute(attr="float32")]):
            return tensor
    return value


def taken_in(loop: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """By what function a loop combines a value with a new one, and the new one."""
    for node in ast.walk(loop):
        match node:
            case ast.AugAssign(op=op, value=value):
                yield type(op).__name__.lower(), value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(ast.Name(id=left), op, value)):
                if name == left:
                    yield type(op).__name__.lower(), value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=left), value])):
                if name == left:
                    yield ast.unparse(node.value.func).split(".")[-1], value  # type: ignore[attr-defined]


def remainder_of_index(kernel: ast.AST) -> bool:
    """A remainder or quotient of what is made from tl.arange."""
    indices = names_derived_from(kernel, calls("arange"))
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mod | ast.FloorDiv)
        and holds(node.left, calls("arange"), indices)
        for node in ast.walk(kernel)
    )


PATTERNS: dict[Pattern, Test] = {
    "register_operand": register_operand,
    "remainder_of_index": remainder_of_index,
    "two_dots_into_one": two_dots_into_one,
    "two_reductions_of_a_loop": two_reductions_of_a_loop,
}


def calls(*names: str) -> Test:
    """Whether a node is a call of a function or method with one of these names."""
    return lambda node: isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names


def dots(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and calls("dot")(node)]


def loops(kernel: ast.AST) -> list[ast.AST]:
    return [node for node in ast.walk(kernel) if isinstance(node, ast.For | ast.While)]


def assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Each name with a value that it is given, or that is added to it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name for target in targets for name in ast.walk(target)]
            yield from ((name.id, node.value) for name in names if isinstance(name, ast.Name))


def holds(node: ast.AST, is_origin: Test, names: frozenset[str] = frozenset()) -> bool:
    """Whether an origin or one of these names is in it."""
    parts = ast.walk(node)
    return any(is_origin(part) or (isinstance(part, ast.Name) and part.id in names) for part in parts)


def names_derived_from(kernel: ast.AST, is_origin: Test) -> frozenset[str]:
    """Names of values that are made from an origin, by way of any others."""
    names: frozenset[str] = frozenset()
    while further := {n for n, value in assignments(kernel) if holds(value, is_origin, names)} - names:
        names |= further
    return names
