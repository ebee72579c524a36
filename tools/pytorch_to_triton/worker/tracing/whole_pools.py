"""Pools whose window is all that they slide over, as the reductions that they are.

The sizes of a window are whole numbers to torch.export: `F.avg_pool2d(x, x.shape[2:])` would fix them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn import functional

Pool = Callable[..., Any]
Reduction = Callable[[torch.Tensor, int], torch.Tensor]
AVERAGES = ("stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
MAXIMA = ("stride", "padding", "dilation", "ceil_mode", "return_indices")
"""The arguments behind the window, in their order."""
PLAIN = {"padding": 0, "divisor_override": None, "dilation": 1, "return_indices": False}
"""Those with which a window over everything is a reduction; the others make no difference to it."""


def mean(x: torch.Tensor, count: int) -> torch.Tensor:
    """Over the last dimensions, which become ones."""
    return x.mean([*range(-count, 0)], keepdim=True)


def maximum(x: torch.Tensor, count: int) -> torch.Tensor:
    """The same; gradients go to a single element, as those of a pool do."""
    values: torch.Tensor = x.flatten(-count).max(-1).values
    return values.reshape(*values.shape, *[1] * count)


def whole_pools() -> list[tuple[Any, str, Pool]]:
    """What replaces the pools of torch.nn.functional while a target is traced: owner, name, function."""
    return [
        (functional, name, over_all(getattr(functional, name), count, names, reduction))
        for count in (1, 2, 3)
        for name, names, reduction in (
            (f"avg_pool{count}d", AVERAGES, mean),
            (f"max_pool{count}d", MAXIMA, maximum),
        )
    ]


def over_all(pool: Pool, count: int, names: Sequence[str], reduction: Reduction) -> Pool:
    """`pool`, but `reduction` where the window is the last `count` dimensions."""

    def pooled(input: torch.Tensor, kernel_size: Any, *others: Any, **named: Any) -> Any:
        given = dict(zip(names, others, strict=False)) | named
        is_plain = all(given.get(name, value) == value for name, value in PLAIN.items())
        if is_plain and is_whole(input, kernel_size, count):
            return reduction(input, count)
        return pool(input, kernel_size, *others, **named)

    return pooled


def is_whole(x: torch.Tensor, window: Any, count: int) -> bool:
    """Whether a window with symbolic sizes is all of the last dimensions."""
    sizes = tuple(window) if isinstance(window, list | tuple) else (window,) * count
    pairs = zip(sizes, x.shape[-count:], strict=False)
    is_symbolic = len(sizes) == count and any(isinstance(size, torch.SymInt) for size in sizes)
    return is_symbolic and all(statically_known_true(size == n) for size, n in pairs)
