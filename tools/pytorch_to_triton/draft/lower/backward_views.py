"""Gradients of what only looks at a part, and of pools, whose windows share what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pytorch_to_triton.draft.ir.indices import extent, minus, plus, quotient, times
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import Size, size
from pytorch_to_triton.draft.ir.values import Axis, Const, Index, Reduce, Value, op
from pytorch_to_triton.draft.lower.joins import with_diagonal, zeros
from pytorch_to_triton.draft.lower.row import Context, Refused, row
from pytorch_to_triton.draft.lower.scatters import with_selected, with_slice
from pytorch_to_triton.draft.lower.tensor import Tensor, guarded, position


@row("aten.slice_backward.default", arguments="grad_output input_sizes dim start end step")
def slice_backward(ctx: Context, grad_output: Tensor, dim: int, start: Any, step: int) -> Tensor:
    return with_slice(zeros(ctx, grad_output), grad_output, dim % len(ctx.shape), start, step)


@row("aten.select_backward.default", arguments="grad_output input_sizes dim index")
def select_backward(ctx: Context, grad_output: Tensor, dim: int, index: Any) -> Tensor:
    return with_selected(zeros(ctx, grad_output), grad_output, dim % len(ctx.shape), index)


@row("aten.diagonal_backward.default", arguments="grad_output input_sizes offset dim1 dim2")
def diagonal_backward(ctx: Context, grad_output: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return with_diagonal(zeros(ctx, grad_output), grad_output, offset, dim1, dim2)


@row(
    "aten.avg_pool2d_backward.default",
    arguments="grad_output input kernel_size stride padding ceil_mode count_include_pad divisor_override",
)
def avg_pool2d_backward(
    ctx: Context,
    grad_output: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    if ceil_mode:
        raise Refused("its windows may reach beyond the padding")
    kernel, steps, pads = (_pair(n) for n in (kernel_size, stride or kernel_size, padding))
    if divisor_override is None and not count_include_pad and any(pads):
        raise Refused("its windows count unlike many elements")
    dims = ctx.names.dims(ctx.shape)
    index = [position(d) for d in dims]
    windows = [
        _windows(ctx, index[at], grad_output.shape[at], sizes)
        for at, sizes in zip((-2, -1), zip(kernel, steps, pads, strict=True), strict=True)
    ]
    axes = tuple(a for _, _, several in windows for a in several)
    inside = reduce(lambda a, b: op("and", a, b), (covers for _, covers, _ in windows))
    grad = guarded(grad_output.at(*index[:-2], *(at for at, _, _ in windows)), inside)
    taken = op("where", inside, grad, 0.0)
    total = Reduce(SUM, (taken,), axes) if axes else taken
    return ctx.tensor(dims, op("div", total, float(divisor_override or kernel[0] * kernel[1])))


def _pair(given: Sequence[int]) -> tuple[int, int]:
    return (given[0], given[-1])


def _windows(
    ctx: Context, index: Value, count: Size, sizes: tuple[int, int, int]
) -> tuple[Value, Value, tuple[Axis, ...]]:
    """Windows that may cover an index: which, whether it does, over how many. Sizes: kernel, stride, pad."""
    kernel, stride, padding = sizes
    padded = plus(index, Const(padding))
    last = quotient(padded, size(stride))
    most = -(-kernel // stride)
    axes = ctx.dim("w", size(most))
    window = minus(last, Index(axes[0])) if axes else last
    reach = op("lt", minus(padded, times(window, size(stride))), kernel)
    within = op("and", op("ge", window, 0), op("lt", window, extent(count)))
    return window, op("and", within, reach), axes
