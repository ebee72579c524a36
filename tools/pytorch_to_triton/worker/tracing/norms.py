"""Norms as statistics and what follows from them by element: a backward pass saves those alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

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


NORMS: Mapping[Any, Callable[..., Normalized]] = {
    torch.ops.aten.native_layer_norm.default: layer_norm,
    torch.ops.aten.native_group_norm.default: group_norm,
}
