"""Over which sizes the blocks of a kernel walk, and what keeps sizes that do not fit away from it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pytorch_to_triton.audit.analysis.addresses import (
    grid_of,
    parameters_for,
    rounded_up,
    rounded_up_division,
)
from pytorch_to_triton.audit.call_arguments import factors
from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

_DEEPEST = 4


@dataclass(frozen=True, eq=False)
class Cover:
    """A size that blocks of some length cover, the last of them in part."""

    size: ast.expr
    """In the launching function."""
    launch: LaunchSite
    is_whole: bool
    """One block holds all: it is as long as the next power of two."""


def values_passed(
    name: str, kernel: SourceKernel, deepest: int = _DEEPEST
) -> Iterator[tuple[LaunchSite, ast.expr]]:
    """What launches of the file pass for a parameter, also of a function that kernels call."""
    for launch in kernel.launches:
        if (value := launch.given.get(name)) is not None:
            yield launch, value
    if kernel.launches or deepest <= 0 or name not in kernel.parameters:
        return
    for caller, _, value in kernel.passed(name):
        if isinstance(value, ast.Name) and value.id in caller.parameters:
            yield from values_passed(value.id, caller, deepest - 1)


def covers(length: ast.expr, access: ast.Call, address: ast.expr, kernel: SourceKernel) -> Iterator[Cover]:
    """The sizes that blocks of a length cover where an access stands; none where that is unknown."""
    stepped = [
        size
        for loop in kernel.loops(access)
        if _moves_with(loop, address, kernel) and (size := _size_walked(loop, length, kernel))
    ]
    for size in stepped:
        for launch, value in values_passed(size.id, kernel):
            yield Cover(value, launch, is_whole=False)
    if stepped or not isinstance(length, ast.Name):
        return
    for launch in kernel.launches:
        if (whole := _held_whole(length.id, kernel, launch)) is not None:
            yield Cover(whole, launch, is_whole=True)
        elif _is_placed_by_program(length, address, kernel):
            for tiled in _sizes_tiled(length.id, kernel, launch):
                yield Cover(tiled, launch, is_whole=False)


def _size_walked(loop: ast.For | ast.While, length: ast.expr, kernel: SourceKernel) -> ast.Name | None:
    """The parameter that a loop walks over in steps of a length.

    n of `range(0, n, BLOCK)`, of `range(tl.cdiv(n, BLOCK))`, and of `while k < n` where the loop adds to k.
    """
    if isinstance(loop, ast.While):
        return _until(loop, length, kernel)
    source = kernel.operation(loop.iter)
    if source is None or source.name not in ("range", "static_range") or not source.operands:
        return None
    end = source.operands[0] if len(source.operands) == 1 else source.operands[1]
    if len(source.operands) == 3 and _uses(source.operands[2], length, kernel):
        return _parameter(end, kernel)
    # K of `tl.cdiv(K, BLOCK)` and `(K + BLOCK - 1) // BLOCK`.
    division = rounded_up_division(kernel.resolved(end))
    is_own = division and _uses(division.block, length, kernel)
    return _parameter(division.size, kernel) if division and is_own else None


def _until(loop: ast.While, length: ast.expr, kernel: SourceKernel) -> ast.Name | None:
    """n of `while k < n`, where the loop adds the length to k."""
    match loop.test:
        case ast.Compare(left=ast.Name(id=counter), ops=[ast.Lt()], comparators=[end]):
            steps = (node for node in ast.walk(loop) if isinstance(node, ast.AugAssign))
            for step in steps:
                is_counter = isinstance(step.target, ast.Name) and step.target.id == counter
                if is_counter and _uses(step.value, length, kernel):
                    return _parameter(end, kernel)
    return None


def _moves_with(loop: ast.For | ast.While, address: ast.expr, kernel: SourceKernel) -> bool:
    """Whether an address is made from what the loop counts, or from a name that the loop adds to."""
    names = kernel.names(address)
    target = ast.walk(loop.target) if isinstance(loop, ast.For) else ()
    counted = {node.id for node in target if isinstance(node, ast.Name)}
    steps = (node.target for node in ast.walk(loop) if isinstance(node, ast.AugAssign))
    assigned = (
        target
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and _is_moved(node.value, target.id, kernel)
    )
    moved = {target.id for target in (*steps, *assigned) if isinstance(target, ast.Name)}
    return bool(names & (counted | moved))


def _is_moved(value: ast.expr, name: str, kernel: SourceKernel) -> bool:
    """`ptrs + BLOCK` and tl.advance(block, ...), of the name itself."""
    match value:
        case ast.BinOp(left=ast.Name(id=own), op=ast.Add()):
            return own == name
        case ast.Call(args=[ast.Name(id=own), *_]):
            return own == name and kernel.is_a(value, "advance")
    return False


def _uses(step: ast.expr, length: ast.expr, kernel: SourceKernel) -> bool:
    """Whether a step is the length, or made from it and nothing but factors."""
    if ast.unparse(kernel.resolved(step)) == ast.unparse(length):
        return True
    return isinstance(length, ast.Name) and length.id in kernel.names(step)


def _parameter(size: ast.expr, kernel: SourceKernel) -> ast.Name | None:
    size = kernel.bare(size)
    return size if isinstance(size, ast.Name) and size.id in kernel.parameters else None


def _held_whole(length: str, kernel: SourceKernel, launch: LaunchSite) -> ast.expr | None:
    """n where a block is the next power of two of n long, by the launch or by triton.heuristics."""
    given = launch.given.get(length)
    if given is not None:
        return _next_power(launch.flow.resolved(given), launch)
    match kernel.decorators.get("triton.heuristics"):
        case ast.Call(args=[ast.Dict(keys=keys, values=rules)]):
            named = {ast.unparse(key): rule for key, rule in zip(keys, rules, strict=True) if key}
            match named.get(repr(length)):
                case ast.Lambda(body=body):
                    # `triton.next_power_of_2(args["n"])`
                    match _next_power(body, launch):
                        case ast.Subscript(slice=ast.Constant(value=str(name))):
                            return launch.given.get(name)
    return None


def _next_power(value: ast.expr, launch: LaunchSite) -> ast.expr | None:
    match value:
        case ast.Call(func=function, args=[size]) if (
            launch.flow.scope.path(function) == "triton.next_power_of_2"
            or ast.unparse(function) == "next_power_of_2"
        ):
            return size
        case ast.BinOp(
            left=ast.Constant(value=1),
            op=ast.LShift(),
            right=ast.Call(
                func=ast.Attribute(
                    value=ast.BinOp(left=size, op=ast.Sub(), right=ast.Constant(value=1)), attr="bit_length"
                )
            ),
        ):
            return size
        case ast.Call(func=ast.Name(id="max"), args=[one, other]):
            return _next_power(launch.flow.resolved(one), launch) or _next_power(
                launch.flow.resolved(other), launch
            )
    return None


def _is_placed_by_program(length: ast.Name, address: ast.expr, kernel: SourceKernel) -> bool:
    """Whether an address holds `program * BLOCK`; where a loop around it starts or ends does not count."""
    made_from = kernel.origins(address, stop=lambda node: kernel.is_a(node, "range", "static_range"))
    # A block's factor is a stride.
    return any(
        ast.unparse(side) == length.id and {"program_id", "arange"} & kernel.made_by(factor) == {"program_id"}
        for node in made_from
        for side, factor in factors(node)
    )


def _sizes_tiled(length: str, kernel: SourceKernel, launch: LaunchSite) -> Iterator[ast.expr]:
    """The sizes that the grid divides by the block, rounded up."""
    for element in grid_of(launch) or ():
        for node in launch.flow.origins(element):
            division = rounded_up(node, launch) if isinstance(node, ast.Call | ast.BinOp) else None
            if division and length in parameters_for(division.block, launch):
                yield division.size


_ASSERTS = ("static_assert", "device_assert", "assume")
_OF_LAYOUT = frozenset({"ndim", "dim", "dtype", "stride", "device", "type"})
"""What a tensor has beside sizes."""
_ROUNDING = frozenset({"cdiv", "ceil", "next_power_of_2", "ceildiv", "ceil_div", "round_up", "align"})


def is_guarded(size: ast.expr, launch: LaunchSite, kernel: SourceKernel) -> bool:
    """Whether a launch may be reached only with sizes that fit the blocks.

    The launching function asks whether the size divides, or a function that launches nothing does, or the
    kernel itself asserts it.
    """
    if any(_asks(asserted.call) for asserted in kernel.calls(*_ASSERTS)):
        return True
    named = launch.flow.names(size)
    if any(launch.flow.names(test) & named for test in _tests_in(launch.function) if _asks(test)):
        return True
    return any(_asks(test) for _, test in _tests_elsewhere(kernel.file))


def is_limited(size: ast.expr, launch: LaunchSite, kernel: SourceKernel) -> bool:
    """Whether anything may keep large sizes away: a comparison, a call that decides, an assertion."""
    if any(kernel.calls(*_ASSERTS)):
        return True
    flow = launch.flow
    tests = [one for one in _tests_in(launch.function) if flow.names(one) & flow.names(size)]
    if any(_compares(test, launch) for test in tests):
        return True
    return any(
        isinstance(node, ast.Compare) and _limits(node)
        for function, test in _tests_elsewhere(kernel.file)
        if function.name != "reference"
        for node in ast.walk(test)
    )


def is_padded(value: ast.expr, launch: LaunchSite) -> bool:
    """Whether a size is rounded up, or a tensor is padded, before it is passed."""
    for node in launch.flow.origins(value):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
                name in _ROUNDING or "pad" in name.lower()
            ):
                return True
            case ast.Name(id=name) if "pad" in name.lower() or "aligned" in name.lower():
                return True
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if any(
                isinstance(side, ast.BinOp) and isinstance(side.op, ast.FloorDiv) for side in (left, right)
            ):
                return True
    return False


def is_tested(launch: LaunchSite) -> bool:
    """Whether the launching function compares sizes with more than 0 and 1, or asks a function about them."""
    return any(
        _mentions_size(test, launch) and _compares(test, launch) for test in _tests_in(launch.function)
    )


def _compares(test: ast.expr, launch: LaunchSite) -> bool:
    """Whether a test sets a limit, or asks a function that may."""
    for node in launch.flow.origins(test):
        match node:
            case ast.Compare() if _limits(node):
                return True
            case ast.Call(func=ast.Name(id=name)) if name not in ("len", "int", "isinstance", "max", "min"):
                return True
    return False


def _limits(compare: ast.Compare) -> bool:
    """Whether a comparison may bound a size: not `n == 0`, `n > 0`, `x.ndim == 2` and `x.stride(1) == 1`."""
    for op, other in zip(compare.ops, compare.comparators, strict=True):
        if isinstance(op, ast.Is | ast.IsNot):
            continue
        words = {node.attr for node in ast.walk(compare.left) if isinstance(node, ast.Attribute)}
        if isinstance(op, ast.Eq | ast.NotEq) and words & _OF_LAYOUT:
            continue
        if not (isinstance(other, ast.Constant) and other.value in (0, 1)):
            return True
    return False


def _tests_in(function: Function | None) -> Iterator[ast.expr]:
    """What it asserts, branches on and refuses."""
    for node in own_nodes(function.body) if function else ():
        match node:
            case ast.Assert(test=test) | ast.If(test=test) | ast.IfExp(test=test):
                yield test
            case ast.Call(func=ast.Attribute(attr="_check" | "check"), args=[test, *_]):
                yield test


def _asks(test: ast.AST) -> bool:
    """Whether a test is about what divides a size, powers of two, or a choice of literal sizes."""
    for node in ast.walk(test):
        match node:
            case ast.BinOp(op=ast.Mod() | ast.BitAnd()):
                return True
            case ast.Compare(
                ops=[ast.In() | ast.NotIn()], comparators=[ast.Tuple() | ast.List() | ast.Set()]
            ):
                return True
            case ast.Compare() if any(
                isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.FloorDiv)
                for inner in ast.walk(node)
            ):
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) if any(
                word in name.lower() for word in ("power_of_2", "pow2", "divis", "multiple", "aligned")
            ):
                return True
            case ast.Name(id=name) if name.isupper() and len(name) > 1:
                # A set of sizes that the file names.
                if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn):
                    return True
    return False


def _mentions_size(test: ast.expr, launch: LaunchSite) -> bool:
    """Whether a test is made from a size: `x.numel() <= 8192`, `n == 0` of an n that is one."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "numel", "nelement")
        for node in launch.flow.origins(test)
    ) or any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
        for node in ast.walk(test)
    )


@lru_cache(maxsize=16)
def _tests_elsewhere(file: SourceFile) -> tuple[tuple[Function, ast.expr], ...]:
    """The tests in functions that launch no kernel: checks, and callers that decide what is called."""
    own = {launch.function for launch in file.launches} | {kernel.node for kernel in file.kernels}
    others = (function for function, _ in file.functions if function not in own)
    return tuple((function, test) for function in others for test in _tests_in(function))
