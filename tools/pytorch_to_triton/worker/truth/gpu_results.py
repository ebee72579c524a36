"""What PyTorch's kernels for GPUs give where those for CPUs give something else.

Floats that no integer holds are cast otherwise, and a division by a number is a product with its reciprocal,
which errs by one rounding more.
"""

from collections.abc import Mapping
from typing import Any

import torch

from ..dispatch import DispatchMode, arguments_by_name

BY_WAY_OF = {torch.int64: torch.int64, torch.uint8: torch.int64}
"""The integers that a cast limits values to; others are 32 bits wide, of which short ones keep the lowest."""


class GpuResults(DispatchMode):
    """Inside, casts of floats to integers, and divisions by numbers, give what they do on GPUs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.matters = False
        """Whether one gave something else than on a CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name not in ("_to_copy", "div"):
            return result
        given = arguments_by_name(func, args, kwargs or {})
        there = cast(given["self"], result) if name == "_to_copy" else divided(given, result)
        self.matters |= not torch.equal(there, result)
        return there


def cast(values: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Limited to what the integers of the result hold, with NaN as 0."""
    if result.dtype not in INTEGERS or not values.is_floating_point():
        return result
    return limits(values, BY_WAY_OF.get(result.dtype, torch.int32)).to(result.dtype)


def divided(given: Mapping[str, Any], result: torch.Tensor) -> torch.Tensor:
    """A product with the reciprocal of a number, in float32 for shorter dtypes."""
    values, by = given["self"], given["other"]
    if given.get("rounding_mode") or not isinstance(by, int | float) or not result.is_floating_point():
        return result
    wide = torch.promote_types(result.dtype, torch.float32)
    product: torch.Tensor = values.to(wide) * torch.tensor(by, dtype=wide).reciprocal()
    return product.to(result.dtype)


INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def limits(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The values as integers, the largest and the smallest in place of those that are beyond them."""
    ends = torch.iinfo(dtype)
    known = torch.where(values.isnan(), 0.0, values.double())
    inside = (known > ends.min) & (known < ends.max)
    whole = torch.where(inside, known, 0.0).to(dtype)
    beyond = torch.where(known >= ends.max, ends.max, ends.min).to(dtype)
    return torch.where(inside, whole, beyond)
