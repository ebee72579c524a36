"""Launches whose every tensor is one that no iteration changes, or the loop's own row of one."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.movement import bound_in, escapes, names_in
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
_RUN = """
def run(x):
    out = torch.empty_like(x)
    rows, n = x.shape
    for row in {}:
        kernel[(1,)]({}, n, B=1024)
    return out
"""
BAD = (_KERNEL + _RUN.format("range(rows)", "x[row], out[row]"),)
GOOD = (
    # Each step needs the one before.
    _KERNEL + _RUN.format("range(1, rows)", "out[row - 1], out[row]"),
    _KERNEL + _RUN.format("range(rows)", "x[row], out"),
)


@kernel_rule("medium", "performance", BAD, GOOD)
def launch_in_loop(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel is launched for each row or batch in a Python loop.

    A launch costs some microseconds on the CPU, and a kernel that works on one row fills a small part of
    the GPU. The rows do not depend on each other, so they can run at once.

    Fix: launch once and give the grid an axis for them: tl.program_id then takes the place of the loop's
    variable.
    """
    written = {access.pointer for access in kernel.accesses if access.writes and access.pointer}
    if not written:
        return
    for launch in kernel.launches:
        loops = launch.flow.loops(launch.call)
        loop = loops[0] if loops else None
        if not isinstance(loop, ast.For) or is_trial(kernel.file, launch.function):
            continue
        if _counts_rows(loop, launch) and _is_independent(loop, kernel, launch, written):
            rows = ast.unparse(loop.iter)
            yield Fault(
                launch.call,
                f"{kernel.node.name} is launched once for each of {rows}; every launch costs microseconds "
                "and fills a small part of the GPU.",
                f"Launch it once with a grid axis for {ast.unparse(loop.target)}, and pass the stride "
                "between rows.",
            )


def _counts_rows(loop: ast.For, launch: LaunchSite) -> bool:
    """`for row in range(x.shape[0])`"""
    match loop:
        case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"), args=[end])):
            match end:
                case ast.Call(func=ast.Name(id="len"), args=[ast.Name()]):
                    return True
            return size_of(end, launch) is not None
    return False


def _is_independent(loop: ast.For, kernel: SourceKernel, launch: LaunchSite, written: set[str]) -> bool:
    """Whether the iterations could run in any order: each writes its own row, and reads no other's."""
    if any(
        isinstance(node, ast.If | ast.While | ast.Break | ast.For)
        for one in loop.body
        for node in ast.walk(one)
    ):
        return False
    row = ast.unparse(loop.target)
    given = launch.given(kernel)
    outputs = [given[name] for name in written if name in given]
    tensors = {_row_of(value, row) for value in outputs}
    if len(outputs) != len(written) or None in tensors or any(escapes(kernel, name) for name in given):
        return False
    others = [value for name, value in given.items() if name not in written]
    changed = {str(tensor) for tensor in tensors} | (bound_in(*loop.body) - {row})
    return not any(names_in(value) & changed and _row_of(value, row) is None for value in others)


def _row_of(value: ast.expr, row: str) -> str | None:
    """x of `x[row]` and `x[row, :]`."""
    match value:
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
            return name if isinstance(first, ast.Name) and first.id == row else None
        case ast.Call(func=ast.Attribute(value=owner, attr="contiguous"), args=[]):
            return _row_of(owner, row)
    return None
