"""A launch passes the stride of one axis where the kernel walks along another.

The kernel's offsets are bound by the size of one axis and multiplied by the stride of a different one: it
reads the wrong elements, and leaves the tensor where the axes differ in size.

Fix: pass x.stride(i) for the offsets that run up to x.shape[i].
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import addends, bounds, program_axis
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.passed import Extent, size_of, stride_of
from pytorch_to_triton.audit.analysis.programs import grid_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

SEVERITY = "high"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, M, N, x_row_stride, x_col_stride, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    cols = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    ptrs = x_ptr + rows * x_row_stride + cols * x_col_stride
    x = tl.load(ptrs, mask=(rows < M) & (cols < N))
"""
_ROWS = """
@triton.jit
def kernel(x_ptr, N, stride, B: tl.constexpr):
    cols = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * stride + cols, mask=cols < N)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    M, N = x.shape
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    kernel[grid](x, M, N, x.stride(1), x.stride(0), B=64)
""",
    _KERNEL
    + """
def run(x, grid):
    kernel[grid](x, x.shape[0], x.shape[1], x.stride(0), x_col_stride=x.stride(0), B=64)
""",
    _ROWS
    + """
def run(x):
    x = x.contiguous()
    n_rows, n_cols = x.shape
    kernel[(n_rows,)](x, n_cols, x.stride(1), B=triton.next_power_of_2(n_cols))
""",
)
GOOD = (
    _KERNEL
    + """
def run(x, grid):
    M, N = x.shape
    kernel[grid](x, M, N, x.stride(0), x.stride(1), B=64)
""",
    # The transpose, as linear layers pass their weight.
    _KERNEL
    + """
def run(x, grid):
    N, M = x.shape
    kernel[grid](x, M, N, x.stride(1), x.stride(0), B=64)
""",
    _KERNEL
    + """
def run(x, grid):
    M, N = x.shape
    x = x.t()
    kernel[grid](x, M, N, x.stride(1), x.stride(0), B=64)
""",
    # A square one is as long one way as the other.
    _KERNEL
    + """
def run(x, grid):
    n = x.shape[0]
    kernel[grid](x, n, n, x.stride(1), x.stride(0), B=64)
""",
    _ROWS
    + """
def run(x):
    kernel[(x.shape[0],)](x, x.shape[-1], x.stride(-2), B=triton.next_power_of_2(x.shape[-1]))
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Strides of a tensor for offsets whose size is that of another axis of the same tensor."""
    found: set[ast.expr] = set()
    for launch in kernel.launches:
        for access in kernel.accesses:
            for parameter, given, size, stride in _mixed_up(access, kernel, launch):
                if given not in found:
                    found.add(given)
                    yield Fault(
                        given,
                        f"{parameter} gets {stride.tensor}'s stride along axis {stride.axis}, and the "
                        f"offsets that it is multiplied with run up to the size of axis {size.axis}.",
                        f"Pass {stride.tensor}.stride({size.axis}) for {parameter}.",
                        f"{stride.tensor}.stride({size.axis})",
                    )


def _mixed_up(
    access: KernelAccess, kernel: SourceKernel, launch: LaunchSite
) -> Iterator[tuple[str, ast.expr, Extent, Extent]]:
    given = launch.given(kernel)
    tensor = given.get(access.pointer or "")
    if not isinstance(tensor, ast.Name) or not _keeps_shape(tensor, launch):
        return
    for part in addends(access.address, kernel):
        for offsets, parameter in _products(part, kernel):
            passed = given.get(parameter)
            stride = stride_of(passed, launch) if passed is not None else None
            if passed is None or stride is None or stride.tensor != tensor.id:
                continue
            for size in _sizes(offsets, access, kernel, launch):
                if size.tensor == tensor.id and _differ(size, stride):
                    yield parameter, passed, size, stride


def _products(part: ast.expr, kernel: SourceKernel) -> Iterator[tuple[ast.expr, str]]:
    """The offsets and the stride of `offsets * stride`."""
    match part:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for offsets, stride in ((left, right), (right, left)):
                if isinstance(stride, ast.Name) and stride.id in kernel.parameters:
                    yield offsets, stride.id


def _sizes(
    offsets: ast.expr, access: KernelAccess, kernel: SourceKernel, launch: LaunchSite
) -> Iterator[Extent]:
    """The sizes of tensors that the offsets run up to, by the mask or by the grid."""
    known = values(kernel)
    given = launch.given(kernel)
    limits = list(bounds(access.mask, kernel))
    for bound in limits:
        shared = sum(ast.unparse(other.size) == ast.unparse(bound.size) for other in limits) > 1
        passed = given.get(bound.size.id) if isinstance(bound.size, ast.Name) else None
        if passed is None or shared or not known.same(known.bare(offsets), known.bare(bound.offsets)):
            continue
        alone = sum(ast.unparse(given[name]) == ast.unparse(passed) for name in given) == 1
        if alone and (size := size_of(passed, launch)):
            yield size
    axis = program_axis(offsets, kernel)
    grid = grid_of(launch) or ()
    if axis is not None and axis < len(grid) and (size := size_of(grid[axis], launch)):
        yield size


def _differ(size: Extent, stride: Extent) -> bool:
    """Whether they are of different axes, counted from the same end."""
    if size.axis is None or stride.axis is None:
        return False
    return size.axis != stride.axis and (size.axis < 0) == (stride.axis < 0)


def _keeps_shape(tensor: ast.Name, launch: LaunchSite) -> bool:
    """Whether the launching function never gives the name to a tensor of another shape."""
    bindings = launch.scope.bindings.get(tensor.id, ())
    return len(bindings) == 1 or all(
        isinstance(binding.node, ast.arg) or _is_contiguous(binding.value, tensor.id) for binding in bindings
    )


def _is_contiguous(value: ast.expr | None, name: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=own), attr="contiguous")):
            return own == name
    return False
