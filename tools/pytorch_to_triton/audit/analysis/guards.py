"""What keeps sizes that do not fit away from a kernel: assertions, refusals, other branches, padding."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from pytorch_to_triton.api.scope import own_nodes
from pytorch_to_triton.audit.source import Function, Kernel, Launch, SourceFile

_ASSERTS = frozenset(f"triton.language.{name}" for name in ("static_assert", "device_assert", "assume"))
_ROUNDING = frozenset({"cdiv", "ceil", "next_power_of_2", "ceildiv", "ceil_div", "round_up", "align"})


def is_guarded(size: ast.expr, launch: Launch, kernel: Kernel) -> bool:
    """Whether a launch may be reached only with sizes that fit the blocks.

    The launching function asks whether the size divides, or a function that launches nothing does, or the
    kernel itself asserts it.
    """
    if any(path in _ASSERTS and _asks(call) for path, call in kernel.calls()):
        return True
    named = _names(size, launch)
    if any(_names(test, launch) & named for test in _tests_in(launch.function) if _asks(test)):
        return True
    return bool(_questions_elsewhere(kernel.file))


def is_padded(value: ast.expr, launch: Launch) -> bool:
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


def is_tested(launch: Launch) -> bool:
    """Whether the launching function tests or refuses sizes in any way."""
    return any(_mentions_size(test, launch) for test in _tests_in(launch.function))


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


def _names(value: ast.expr, launch: Launch) -> frozenset[str]:
    return frozenset(node.id for node in launch.flow.origins(value) if isinstance(node, ast.Name))


def _mentions_size(test: ast.expr, launch: Launch) -> bool:
    """Whether a test is made from a size: `x.numel() <= 8192`, `n == 0` of an n that is one."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "numel", "nelement")
        for node in launch.flow.origins(test)
    ) or any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
        for node in ast.walk(test)
    )


@lru_cache(maxsize=16)
def _questions_elsewhere(file: SourceFile) -> tuple[ast.expr, ...]:
    """What functions that launch no kernel ask of sizes: checks, and callers that decide what is called."""
    own = {launch.function for launch in file.launches} | {kernel.node for kernel in file.kernels}
    return tuple(
        test
        for function, _ in file.functions
        if function not in own
        for test in _tests_in(function)
        if _asks(test)
    )
