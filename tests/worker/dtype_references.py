"""References that look at dtypes, each with what it computes at a dtype, written by hand in float64.

A reference gets x: [7, 16] of the dtype and w: [16], float32. Its formula gets both in float64 and the dtype.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

HALF = torch.float16


@dataclass(frozen=True)
class Row:
    """A reference and its formula."""

    reference: Callable[..., Any] | nn.Module
    formula: Callable[[Tensor, Tensor, torch.dtype], Tensor]


def clamps_float16(x: Tensor, w: Tensor) -> Tensor:
    h = x * 3
    if h.dtype == torch.float16:
        h = h.clamp(-2, 2)
    return h + 1


def masks_with_the_lowest(x: Tensor, w: Tensor) -> Tensor:
    lowest = torch.finfo(x.dtype).min
    return x.masked_fill(x < 0, lowest) / 4


def wide_only_when_half(x: Tensor, w: Tensor) -> Tensor:
    wide = x.to(torch.float32) if x.dtype == HALF else x
    return wide.exp() * (2 if wide.dtype == torch.float32 else 4)


def follows_the_default(x: Tensor, w: Tensor) -> Tensor:
    return x + 1 if torch.get_default_dtype() == torch.float32 else x - 1


def promoted(x: Tensor, w: Tensor) -> Tensor:
    common = torch.promote_types(x.dtype, w.dtype)
    return x.to(common) * (2 if common != x.dtype else 1)


def floating_or_not(x: Tensor, w: Tensor) -> Tensor:
    counts = (x > 0).sum(-1, keepdim=True)
    return x * counts if not counts.is_floating_point() and torch.is_floating_point(x) else x


def by_result_type(x: Tensor, w: Tensor) -> Tensor:
    wide = torch.result_type(x, w) != x.dtype
    return (x + w).to(x.dtype) * (3 if wide else 1)


def like_autocast(x: Tensor, w: Tensor) -> Tensor:
    def lower(t: Tensor) -> Tensor:
        return t.to(x.dtype) if t.dtype != x.dtype else t

    y = lower(w) * x
    return y + 1 if y.dtype == x.dtype and x.element_size() == 2 else y


def by_name(x: Tensor, w: Tensor) -> Tensor:
    return x.tanh() if "16" in str(x.dtype) else x.sigmoid()


def promotion_of_a_product(x: Tensor, w: Tensor) -> Tensor:
    product = x * w
    return product + (1 if product.dtype == x.dtype else 2)


def into_an_empty_one(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    out[:, ::2] = x[:, ::2].float() * 2
    out[:, 1::2] = 5.0 if out.dtype == torch.bfloat16 else 7.0
    return out


def adds_a_short_mask(x: Tensor, w: Tensor) -> Tensor:
    mask = torch.zeros(16, dtype=x.dtype)
    mask[8:] = torch.finfo(mask.dtype).min
    return torch.softmax(x + mask, dim=-1, dtype=torch.float32).to(x.dtype)


def in_inference_mode(x: Tensor, w: Tensor) -> Tensor:
    with torch.inference_mode():
        wide = x.to(torch.float32)
        return functional.softmax(wide, -1) if wide is not x else functional.softmax(-x, -1)


def of_numbers(x: Tensor, w: Tensor) -> Tensor:
    steps = torch.arange(16) / 3
    return steps + x if steps.dtype == x.dtype else steps * x


class ByBuffer(nn.Module):
    """Looks at a buffer's dtype, which follows the input's."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((16,), 1.5))
        self.bias = nn.Parameter(torch.linspace(0, 1, 16))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        assert isinstance(self.scale, Tensor)
        y = x * self.scale
        return y + self.bias if self.scale.dtype == torch.float16 else y - 3


def softmax(x: Tensor) -> Tensor:
    e = (x - x.max(-1, keepdim=True).values).exp()
    return e / e.sum(-1, keepdim=True)


def filled(x: Tensor, value: float) -> Tensor:
    doubled = 2 * x
    doubled[:, 1::2] = value
    return doubled


def half(dtype: torch.dtype) -> bool:
    return dtype == torch.float16


def short(dtype: torch.dtype) -> bool:
    return dtype != torch.float32


def bias(dtype: torch.dtype) -> Tensor:
    return torch.linspace(0, 1, 16).to(dtype).double()


ROWS = [
    Row(clamps_float16, lambda x, w, d: (3 * x).clamp(-2, 2) + 1 if half(d) else 3 * x + 1),
    Row(masks_with_the_lowest, lambda x, w, d: x.where(x >= 0, torch.finfo(d).min) / 4),
    Row(wide_only_when_half, lambda x, w, d: x.exp() * (4 if d == torch.bfloat16 else 2)),
    Row(follows_the_default, lambda x, w, d: x + 1),
    Row(promoted, lambda x, w, d: 2 * x if short(d) else x),
    Row(floating_or_not, lambda x, w, d: x * (x > 0).sum(-1, keepdim=True)),
    Row(by_result_type, lambda x, w, d: (x + w) * (3 if short(d) else 1)),
    Row(like_autocast, lambda x, w, d: w * x + 1 if short(d) else w * x),
    Row(by_name, lambda x, w, d: x.tanh() if short(d) else 1 / (1 + (-x).exp())),
    Row(promotion_of_a_product, lambda x, w, d: x * w + (2 if short(d) else 1)),
    Row(into_an_empty_one, lambda x, w, d: filled(x, 5.0 if d == torch.bfloat16 else 7.0)),
    Row(adds_a_short_mask, lambda x, w, d: torch.cat([softmax(x[:, :8]), torch.zeros(7, 8)], -1)),
    Row(in_inference_mode, lambda x, w, d: softmax(x if short(d) else -x)),
    Row(of_numbers, lambda x, w, d: torch.arange(16.0).double() / 3 * x if short(d)
        else torch.arange(16.0).double() / 3 + x),
    Row(ByBuffer(), lambda x, w, d: 1.5 * x + bias(d) if half(d) else 1.5 * x - 3),
]  # fmt: skip
