"""The effect of rounding inside the reference: each inexact operator's result is moved by one rounding error.

Monte Carlo arithmetic (Parker, UCLA CSD-970002, 1997) with one sample. Moving the inputs alone shows nothing
of a value that is clamped and then meets its own mean, where every kernel still rounds the mean.
"""

import random
from typing import Any

import torch

from ..dispatch import DispatchMode

EXACT = frozenset(
    {
        "abs", "alias", "amax", "amin", "any", "arange", "argmax", "argmin", "as_strided",
        "bitwise_and", "bitwise_not", "bitwise_or", "cat", "ceil", "clamp", "clamp_max", "clamp_min",
        "clone", "copy_", "detach", "empty", "empty_like", "eq", "expand", "fill_", "flip", "floor",
        "full", "full_like", "gather", "ge", "gt", "hardtanh", "index", "index_select", "le",
        "lift_fresh", "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "max", "maximum",
        "min", "minimum", "ne", "neg", "new_empty", "new_full", "new_ones", "new_zeros", "ones",
        "ones_like", "permute", "relu", "repeat", "round", "select", "sign", "slice", "sort", "split",
        "split_with_sizes", "squeeze", "stack", "t", "threshold", "topk", "transpose", "tril", "triu",
        "trunc", "unbind", "unfold", "unsqueeze", "view", "where", "zeros", "zeros_like",
        "_local_scalar_dense", "_reshape_alias", "_to_copy", "_unsafe_view",
    }
)  # fmt: skip
"""Operators that pick, move or compare values and so round nothing."""


SUMS = frozenset({"sum", "mean"})
TERMS = 8
"""A sum of n terms in lanes errs by about eps * n / sqrt(lanes) of a term; kernels have 32 lanes and more."""


class Rounding(DispatchMode):
    """Inside, floating results of all other operators are moved by up to `eps` of themselves."""

    def __init__(self, eps: float, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.eps = eps
        self.random = random.Random(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in EXACT or returns_arguments(func):
            return result
        if isinstance(result, tuple):
            return (self.moved(result[0]), *result[1:])
        if name in SUMS and args[0].is_floating_point():
            # A sum errs with its terms, which may be far larger than what is left of them.
            terms = func(args[0].abs(), *args[1:], **(kwargs or {}))
            return self.moved(result) + self.moved(terms / TERMS) - terms / TERMS
        return self.moved(result)

    def moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        # Half of the error is the same for the whole tensor: an approximate division errs one way.
        lean = self.random.choice((-0.5, 0.5))
        generator = torch.Generator(device=value.device).manual_seed(self.random.getrandbits(62))
        steps = torch.rand(value.shape, generator=generator, device=value.device, dtype=torch.float64)
        return value * (1 + self.eps * (lean + steps - 0.5)).to(value.dtype)


def returns_arguments(func: Any) -> bool:
    """Whether the operator returns views of its arguments, or the arguments that it wrote to."""
    return any(result.alias_info is not None for result in func._schema.returns)
