"""Floats that no integer holds, cast to integers: PyTorch's kernels for CPUs and for GPUs differ."""

from typing import Any

import torch

from ..dispatch import DispatchMode, arguments_by_name

BY_WAY_OF = {torch.int64: torch.int64, torch.uint8: torch.int64}
"""The integers that a cast limits values to; others are 32 bits wide, of which short ones keep the lowest."""


class GpuCasts(DispatchMode):
    """Inside, floats are cast to integers as GPUs do: limited to what these hold, with NaN as 0."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.matters = False
        """Whether a cast gave something else than on a CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ != "_to_copy" or result.dtype not in INTEGERS:
            return result
        values = arguments_by_name(func, args, kwargs or {})["self"]
        if not values.is_floating_point():
            return result
        limited = limits(values, BY_WAY_OF.get(result.dtype, torch.int32)).to(result.dtype)
        self.matters |= not torch.equal(limited, result)
        return limited


INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def limits(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The values as integers, the largest and the smallest in place of those that are beyond them."""
    ends = torch.iinfo(dtype)
    known = torch.where(values.isnan(), 0.0, values.double())
    inside = (known > ends.min) & (known < ends.max)
    whole = torch.where(inside, known, 0.0).to(dtype)
    beyond = torch.where(known >= ends.max, ends.max, ends.min).to(dtype)
    return torch.where(inside, whole, beyond)
