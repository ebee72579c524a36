"""Operators of whole rows as their statistics and what follows from those by element."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .graph_writer import Extent

Normalized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""The result, the mean, and 1 / the deviation."""


def normalized(x: torch.Tensor, dims: list[int], eps: float) -> Normalized:
    """x with mean 0 and variance 1 over dimensions; 16 bits are computed in float32."""
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    rstd = torch.rsqrt(centered.square().mean(dims, keepdim=True) + eps)
    return centered * rstd, mean, rstd


def affine(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    """x times the weight plus the bias, where there are any."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def layer_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> Normalized:
    """aten.native_layer_norm."""
    out, mean, rstd = normalized(x, list(range(x.dim() - len(shape), x.dim())), eps)
    return affine(out, weight, bias).to(x.dtype), mean, rstd


def group_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, *given: Any
) -> Normalized:
    """aten.native_group_norm, whose last arguments are sizes, the number of groups and eps."""
    batch, channels, inner, groups, eps = given
    grouped = x.reshape(batch, groups, channels // groups, inner)
    out, mean, rstd = normalized(grouped, [2, 3], eps)
    along = (channels, *(1,) * (x.dim() - 2))
    of_channels = (None if t is None else t.reshape(along) for t in (weight, bias))
    out = affine(out.reshape(x.shape), *of_channels).to(x.dtype)
    return out, mean.reshape(batch, groups), rstd.reshape(batch, groups)


LONG_ROW = 32768
"""Elements beyond which no program holds a row: its statistics take another pass to compute again."""


def softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:  # noqa: FBT001
    """aten._softmax."""
    shifted, total = of_rows(x, dim)
    return in_dtype_of(x, shifted.exp() / total, half_to_float=half_to_float)


def log_softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:  # noqa: FBT001
    """aten._log_softmax."""
    shifted, total = of_rows(x, dim)
    return in_dtype_of(x, shifted - total.log(), half_to_float=half_to_float)


def of_rows(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What is below each row's maximum, and the sum of its exponentials; 16 bits are computed in float32.

    A NaN shows in the sum: a maximum that ignores it is taken in the same pass.
    """
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    shifted = wide - torch.where(wide.isnan(), -torch.inf, wide).amax(dim, keepdim=True)
    return shifted, shifted.exp().sum(dim, keepdim=True)


def in_dtype_of(x: torch.Tensor, out: torch.Tensor, *, half_to_float: bool) -> torch.Tensor:
    return out if half_to_float else out.to(x.dtype)


def softmax_backward(grad: torch.Tensor, out: torch.Tensor, dim: int, dtype: torch.dtype) -> torch.Tensor:
    """aten._softmax_backward_data."""
    return (out * (grad - (grad * out).sum(dim, keepdim=True))).to(dtype)


def log_softmax_backward(grad: torch.Tensor, out: torch.Tensor, dim: int, dtype: torch.dtype) -> torch.Tensor:
    """aten._log_softmax_backward_data."""
    return (grad - out.exp() * grad.sum(dim, keepdim=True)).to(dtype)


SOFTMAXES: Mapping[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten._softmax.default: softmax,
    torch.ops.aten._log_softmax.default: log_softmax,
    torch.ops.aten._softmax_backward_data.default: softmax_backward,
    torch.ops.aten._log_softmax_backward_data.default: log_softmax_backward,
}
"""Of the tensors they take, the one before the dimension has its rows."""


def where_long(extent: Extent, taken_apart: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The decomposition for rows that are long; others are left to the operator."""

    def of_long_rows(*given: Any) -> torch.Tensor:
        x, dim = given[-3:-1]
        is_long = dim % x.dim() == x.dim() - 1 and extent(x.shape[-1]) > LONG_ROW
        return taken_apart(*given) if is_long else NotImplemented

    return of_long_rows


def by_statistics(extent: Extent) -> dict[Any, Callable[..., Any]]:
    """Norms, and softmaxes of rows that `extent` says are long, as statistics and what follows from them by
    element: a backward pass saves those alone."""
    norms: dict[Any, Callable[..., Any]] = {
        torch.ops.aten.native_layer_norm.default: layer_norm,
        torch.ops.aten.native_group_norm.default: group_norm,
    }
    return {**norms, **{op: where_long(extent, taken) for op, taken in SOFTMAXES.items()}}
