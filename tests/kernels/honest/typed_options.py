"""Honest: a dataclass, an enum, a namedtuple, logging and warnings around an ordinary kernel."""

import enum
import logging
import warnings
from collections import namedtuple
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "activation": 2, "slope": 0.1}
DIMS = {"M": [1, 7], "N": [1, 64, 100, 300]}

logger = logging.getLogger(__name__)
Grid = namedtuple("Grid", ["rows", "tiles"])


class Activation(enum.IntEnum):
    NONE = 0
    SILU = 1
    LEAKY_RELU = 2


@dataclass(frozen=True)
class Plan:
    """How [n_rows, n_cols] elements are spread over programs."""

    n_rows: int
    n_cols: int

    def __post_init__(self) -> None:
        if self.n_cols > 1 << 20:
            warnings.warn(f"rows of {self.n_cols} elements make many programs", stacklevel=3)

    @property
    def block(self) -> int:
        return max(1, min(1024, triton.next_power_of_2(self.n_cols)))

    @property
    def grid(self) -> Grid:
        return Grid(self.n_rows, triton.cdiv(self.n_cols, self.block))


def reference(x: torch.Tensor, activation: int, slope: float) -> torch.Tensor:
    """x: [M, N]; activation: 0 none, 1 SiLU, 2 leaky ReLU of the slope. Returns [M, N] in x's dtype."""
    if activation == Activation.SILU:
        return torch.nn.functional.silu(x)
    if activation == Activation.LEAKY_RELU:
        return torch.nn.functional.leaky_relu(x, slope)
    return x.clone()


@triton.jit
def activation_kernel(
    x_ptr, out_ptr, n_cols, slope, x_row_stride, x_col_stride, ACTIVATION: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Program (row, tile) handles BLOCK_N columns of a row. ACTIVATION: an Activation as a number."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    if ACTIVATION == 1:
        x = x / (1.0 + tl.exp(-x))
    elif ACTIVATION == 2:
        x = tl.where(x < 0, x * slope, x)
    tl.store(out_ptr + row * n_cols + cols, x, mask=mask)


def run(x: torch.Tensor, activation: int, slope: float) -> torch.Tensor:
    """x: [M, N], any strides; activation as in `reference`. Returns [M, N], contiguous, in x's dtype."""
    chosen = Activation(activation)
    plan = Plan(*x.shape)
    logger.debug("%s over %s: blocks of %d", chosen.name, plan.grid, plan.block)
    out = torch.empty((plan.n_rows, plan.n_cols), dtype=x.dtype, device=x.device)
    if out.numel() > 0:
        sizes = (plan.n_cols, slope, *x.stride())
        activation_kernel[plan.grid](x, out, *sizes, ACTIVATION=chosen.value, BLOCK_N=plan.block)
    return out
