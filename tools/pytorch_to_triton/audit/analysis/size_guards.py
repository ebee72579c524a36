"""What keeps sizes that do not fit away from a kernel: assertions, refusals, other branches, padding."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile, SourceKernel
from pytorch_to_triton.triton_api.name_scope import own_nodes

_ASSERTS = frozenset(f"triton.language.{name}" for name in ("static_assert", "device_assert", "assume"))
_ROUNDING = frozenset({"cdiv", "ceil", "next_power_of_2", "ceildiv", "ceil_div", "round_up", "align"})


def is_guarded(size: ast.expr, launch: LaunchSite, kernel: SourceKernel) -> bool:
    """Whether a launch may be reached only with sizes that fit the blocks.

    The launching function asks whether the size divides, or a function that launches nothing does, or the
    kernel itself asserts it.
    """
    if any(path in _ASSERTS and _asks(call) for path, call in kernel.calls()):
        return True
    named = launch.flow.names(size)
    if any(launch.flow.names(test) & named for test in _tests_in(launch.function) if _asks(test)):
        return True
    return any(_asks(test) for _, test in _tests_elsewhere(kernel.file))


def is_limited(size: ast.expr, launch: LaunchSite, kernel: SourceKernel) -> bool:
    """Whether anything may keep large sizes away: a comparison, a call that decides, an assertion."""
    if any(path in _ASSERTS for path, _ in kernel.calls()):
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
        if isinstance(op, ast.Eq | ast.NotEq) and not _is_of_shape(compare.left):
            continue
        if not (isinstance(other, ast.Constant) and other.value in (0, 1)):
            return True
    return False


def _is_of_shape(value: ast.expr) -> bool:
    """Whether it may be a size: not the number of axes, a dtype, a stride or a device."""
    words = {node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)}
    return not words & {"ndim", "dim", "dtype", "stride", "device", "type"}


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
