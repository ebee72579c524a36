"""Questions about addresses, masks and the programs of a launch: its grid, and what differs between them."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytorch_to_triton.audit.call_arguments import factors, literal_integer
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel


@dataclass(frozen=True, eq=False)
class MaskBound:
    """`offsets < size` or `offsets <= size`, a part of a mask."""

    comparison: ast.Compare
    offsets: ast.expr
    size: ast.expr
    inclusive: bool


def bounds(mask: ast.expr | None, kernel: SourceKernel) -> Iterator[MaskBound]:
    """The upper bounds that a mask sets; `n > offsets` is one, too."""
    for condition in conjuncts(mask, kernel) if mask else ():
        if not isinstance(condition, ast.Compare):
            continue
        sides = [condition.left, *condition.comparators]
        for left, op, right in zip(sides, condition.ops, sides[1:], strict=False):
            match op:
                case ast.Lt() | ast.LtE():
                    yield MaskBound(condition, left, right, inclusive=isinstance(op, ast.LtE))
                case ast.Gt() | ast.GtE():
                    yield MaskBound(condition, right, left, inclusive=isinstance(op, ast.GtE))


def all_bounds(kernel: SourceKernel) -> Iterator[tuple[KernelAccess, MaskBound]]:
    """Each access with each of its bounds."""
    return ((access, bound) for access in kernel.accesses for bound in bounds(access.mask, kernel))


def conjuncts(mask: ast.expr, kernel: SourceKernel) -> Iterator[ast.expr]:
    """`a`, `b` and `c` of `a & (b & c)`: the conditions that must all hold where the mask does."""
    match plain := kernel.bare(mask):
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield from (*conjuncts(left, kernel), *conjuncts(right, kernel))
        case ast.BoolOp(op=ast.And(), values=conditions):
            for condition in conditions:
                yield from conjuncts(condition, kernel)
        case _:
            yield plain


def addends(value: ast.expr, kernel: SourceKernel) -> list[ast.expr]:
    """The parts that a sum adds up, each without casts and new axes.

    Names are followed; what a loop adds to a pointer, as in `ptrs += BLOCK`, is left out.
    """
    plain = kernel.bare(value)
    match plain:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*addends(left, kernel), *addends(right, kernel)]
        case ast.Name():
            match kernel.starts(plain):
                case (ast.expr() as start,):
                    return addends(start, kernel)
    return [plain]


def block_start(part: ast.expr, kernel: SourceKernel) -> tuple[int, str] | None:
    """The axis and the block size of `tl.program_id(axis) * BLOCK`."""
    for program, length in factors(kernel.bare(part)):
        axis, block = program_axis(program, kernel), kernel.bare(length)
        if axis is not None and isinstance(block, ast.Name | ast.Constant):
            return axis, ast.unparse(block)
    return None


def program_axis(part: ast.expr, kernel: SourceKernel) -> int | None:
    """The axis of `tl.program_id(axis)`, where the part is nothing else."""
    call = kernel.operation(kernel.bare(part))
    return literal_integer(call.option(0, "axis")) if call and call.name == "program_id" else None


def range_length(part: ast.expr, kernel: SourceKernel) -> str | None:
    """`BLOCK` of `tl.arange(0, BLOCK)`, where the part is nothing else."""
    lanes = kernel.operation(kernel.bare(part))
    end = lanes.option(1, "end") if lanes and lanes.name == "arange" else None
    starts_at_zero = lanes is not None and literal_integer(lanes.option(0, "start")) == 0
    return ast.unparse(kernel.bare(end)) if end is not None and starts_at_zero else None


@dataclass(frozen=True)
class BlockWalk:
    """`tl.program_id(axis) * block + tl.arange(0, block)`, masked by a size."""

    axis: int
    block: str
    size: str
    """The parameter."""


def block_walks(kernel: SourceKernel) -> Iterator[BlockWalk]:
    """The sizes over which programs walk in blocks, as the masks of accesses show."""
    for _, bound in all_bounds(kernel):
        parts = addends(bound.offsets, kernel)
        starts = [start for part in parts if (start := block_start(part, kernel))]
        lengths = {length for part in parts if (length := range_length(part, kernel))}
        if len(parts) != 2 or len(starts) != 1 or lengths != {starts[0][1]}:
            continue
        axis, block = starts[0]
        if isinstance(bound.size, ast.Name) and block in kernel.constexprs:
            yield BlockWalk(axis, block, bound.size.id)


def may_be_block(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a block, or a function of the file's own may have made it one."""
    helpers = {one.name for one in kernel.file.kernels}
    return kernel.is_block(value) or any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in helpers
        for node in kernel.origins(value)
    )


@dataclass(frozen=True, eq=False)
class Division:
    """`size / block`, rounded up or down, as an element of a grid."""

    size: ast.expr
    block: ast.expr


def grid_of(launch: LaunchSite) -> tuple[ast.expr, ...] | None:
    """The elements of its grid, by a lambda or a function, too; None where they are not spelled out."""
    grid = launch.flow.resolved(launch.grid)
    match grid:
        case ast.Lambda(body=body):
            grid = body
        case ast.Name(id=name) if binding := launch.flow.scope.find(name):
            returns = [node for node in ast.walk(binding.node) if isinstance(node, ast.Return)]
            match binding.node:
                case ast.FunctionDef(body=[*_, ast.Return(value=ast.expr() as grid)]) if len(returns) == 1:
                    pass
    if not isinstance(grid, ast.Tuple | ast.List) or any(isinstance(one, ast.Starred) for one in grid.elts):
        return None
    return tuple(grid.elts)


def counts_blocks(element: ast.expr, block: str, launch: LaunchSite, size: ast.expr | None = None) -> bool:
    """Whether an element of a grid is a size, or this one, divided by a block and rounded up."""
    division = rounded_up(element, launch)
    if division is None or (size is not None and not alike(division.size, size, launch)):
        return False
    return block in parameters_for(division.block, launch)


def rounded_up(element: ast.expr, launch: LaunchSite) -> Division | None:
    """The division where an element of a grid is `triton.cdiv(size, block)` or is spelled out."""
    return rounded_up_division(launch.flow.resolved(element))


def rounded_up_division(value: ast.expr) -> Division | None:
    """The division of `cdiv(size, block)`, `(size + block - 1) // block` and `(size + 63) // 64`."""
    match value:
        case ast.Call(func=ast.Name(id="cdiv") | ast.Attribute(attr="cdiv"), args=[size, block]):
            return Division(size, block)
        case ast.BinOp(
            left=ast.BinOp(
                left=ast.BinOp(left=size, op=ast.Add(), right=added),
                op=ast.Sub(),
                right=ast.Constant(value=1),
            ),
            op=ast.FloorDiv(),
            right=block,
        ) if ast.unparse(added) == ast.unparse(block):
            return Division(size, block)
        case ast.BinOp(
            left=ast.BinOp(left=size, op=ast.Add(), right=ast.Constant(value=int(added))),
            op=ast.FloorDiv(),
            right=ast.Constant(value=int(block_size)) as block,
        ) if added == block_size - 1:
            return Division(size, block)
    return None


def rounded_down(element: ast.expr, launch: LaunchSite) -> Division | None:
    """The division where an element of a grid is `size // block`, or that but at least one program."""
    match _without_floor(launch.flow.resolved(element), launch):
        case ast.BinOp(
            left=ast.Name()
            | ast.Call()
            | ast.Subscript()
            | ast.Attribute()
            | ast.BinOp(op=ast.Mult()) as size,
            op=ast.FloorDiv(),
            right=block,
        ):
            return Division(size, block)
        case ast.Call(
            func=ast.Name(id="int" | "floor" | "trunc") | ast.Attribute(attr="floor" | "trunc"),
            args=[ast.BinOp(left=size, op=ast.Div(), right=block)],
        ):
            return Division(size, block)
    return None


def _without_floor(element: ast.expr, launch: LaunchSite) -> ast.expr:
    """n // B of `max(1, n // B)`, `n // B or 1`, `int(n // B)` and `n // B if n > B else 1`."""
    match element:
        case ast.Call(func=ast.Name(id="max"), args=[one, other], keywords=[]):
            pair = (one, other)
        case ast.BoolOp(op=ast.Or(), values=[one, other]) | ast.IfExp(body=one, orelse=other):
            pair = (one, other)
        case ast.Call(func=ast.Name(id="int"), args=[ast.BinOp(op=ast.FloorDiv()) as division]):
            return division
        case _:
            return element
    for least, rest in (pair, pair[::-1]):
        if literal_integer(launch.flow.resolved(least)) == 1:
            return _without_floor(launch.flow.resolved(rest), launch)
    return element


def parameters_for(block: ast.expr, launch: LaunchSite) -> frozenset[str]:
    """The tl.constexpr parameters that a size in a grid may be: `meta["BLOCK"]`, or what is passed alike."""
    match block:
        case ast.Subscript(slice=ast.Constant(value=str(name))) if name in launch.kernel.constexprs:
            return frozenset({name})
    given = ((name, launch.given[name]) for name in launch.kernel.constexprs & launch.given.keys())
    return frozenset(name for name, value in given if alike(value, block, launch))


def alike(one: ast.expr, other: ast.expr, launch: LaunchSite) -> bool:
    """Whether two expressions of a launching function are spelled alike, names followed."""
    first, second = launch.flow.resolved(one), launch.flow.resolved(other)
    return ast.unparse(first) == ast.unparse(second)


def program_axes(kernel: SourceKernel, *given: ast.AST) -> frozenset[int]:
    """The grid's axes whose program ids the values may be made from, loads at such places included."""
    made_from = kernel.origins(*given)
    return frozenset(axis for call, axis in program_ids(kernel) if axis is not None and call in made_from)


def is_opaque(kernel: SourceKernel, *given: ast.AST) -> bool:
    """Whether the values may differ between programs in unknown ways.

    That is what other functions return, what atomics return, and program ids of an axis that is not literal.
    """
    return any(
        isinstance(node, ast.Call) and _is_opaque_call(node, kernel) for node in kernel.origins(*given)
    )


@lru_cache(maxsize=256)
def shared_axes(access: KernelAccess, kernel: SourceKernel) -> frozenset[int]:
    """The grid's axes along which all programs certainly write to the same places, but other values.

    The value is made from such an axis's program id, or loaded by it, and neither the address nor the mask
    nor any condition of the kernel is.
    """
    if access.value is None or access.pointer is None:
        return frozenset()
    wide = wide_axes(kernel)
    tests = [node.test for node in kernel.nodes if isinstance(node, ast.If | ast.While | ast.IfExp)]
    loops = [loop.iter for loop in kernel.loops(access.call) if isinstance(loop, ast.For)]
    place = [access.address, *([access.mask] if access.mask else []), *tests, *loops]
    own = wide and wide & program_axes(kernel, access.value)
    free = own and own - program_axes(kernel, *place)
    return free if free and not is_opaque(kernel, *place) else frozenset()


def is_updated(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether the value that is written is made from what was loaded at the same place."""
    if access.value is None:
        return False
    loaded = [load for load in kernel.loads if load.pointer == access.pointer]
    made_from = kernel.origins(access.value)
    return any(one.call in made_from and kernel.same(one.address, access.address) for one in loaded)


def wide_axes(kernel: SourceKernel) -> frozenset[int]:
    """The axes along which every launch may have several programs; none where there is no launch."""
    axes = range(3) if kernel.launches else ()
    return frozenset(axis for axis in axes if all(is_wide(axis, launch) for launch in kernel.launches))


def is_wide(axis: int, launch: LaunchSite) -> bool:
    """Whether the grid is known to have this axis, and nothing says that it is 1 along it."""
    grid = grid_of(launch)
    if grid is None or axis >= len(grid):
        return False
    asserted = {ast.unparse(node.test) for node in launch.flow.nodes if isinstance(node, ast.Assert)}
    if (
        literal_integer(launch.flow.resolved(grid[axis])) == 1
        or f"{ast.unparse(grid[axis])} == 1" in asserted
    ):
        return False
    # A block of the next power of two covers all: there is one program.
    match division := rounded_up(grid[axis], launch):
        case Division(block=ast.Subscript(slice=ast.Constant(value=str(name))) as block):
            return not rounded_to_power([launch.options.get(name, block)], launch)
    return division is None or not rounded_to_power([division.block], launch)


def rounded_to_power(values: Sequence[ast.expr], launch: LaunchSite) -> bool:
    """Whether a value is the next power of two of a size: by Triton's function, or by its bit length."""
    return any(
        getattr(node, "attr", getattr(node, "id", "")) in ("next_power_of_2", "bit_length")
        for node in launch.flow.origins(*values)
    )


@lru_cache(maxsize=64)
def program_ids(kernel: SourceKernel) -> tuple[tuple[ast.Call, int | None], ...]:
    """Each tl.program_id call of a kernel with its axis."""
    return tuple((one.call, literal_integer(one.option(0, "axis"))) for one in kernel.calls("program_id"))


def _is_opaque_call(call: ast.Call, kernel: SourceKernel) -> bool:
    path, operation = kernel.scope.path(call.func), kernel.operation(call)
    if operation and operation.name == "program_id":
        return literal_integer(operation.option(0, "axis")) is None
    if path is None:
        # A method of a value, or a function of Python's own, gives what its operands give.
        match call.func:
            case ast.Attribute():
                return False
            case ast.Name(id=name):
                return kernel.scope.holder(name) is not None
        return True
    return operation is None or operation.name.startswith(("atomic_", "inline_asm"))
