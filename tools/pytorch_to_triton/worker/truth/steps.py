"""The torch functions that a reference calls: whether two of its runs take the same branches."""

import math
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CLOSE = 1e-2
"""Relative: numbers that were read from tensors of two precisions; an eps for each dtype differs by more."""


class Steps(TorchFunctionMode):
    """Inside, each call of a torch function is recorded: its name, its numbers, the shapes of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", str(func))
        if name != "__get__":
            self.taken.append((name, describe_value(args), describe_value(kwargs or {}), shapes(result)))
        return result


def describe_value(value: Any) -> Any:
    """The value without what differs between precisions: numbers in tensors, and dtypes."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    if isinstance(value, list | tuple):
        return tuple(map(describe_value, value))
    if isinstance(value, dict):
        return tuple((key, describe_value(item)) for key, item in value.items())
    return value if isinstance(value, bool | int | float | str) else type(value).__name__


def shapes(result: Any) -> list[tuple[int, ...]]:
    """Of the tensors that a function returned; numbers and addresses are left out."""
    items = result if isinstance(result, list | tuple) else [result]
    return [tuple(item.shape) for item in items if isinstance(item, torch.Tensor)]


def same_steps(ours: Any, theirs: Any) -> bool:
    """Whether two records agree, numbers up to rounding."""
    if isinstance(ours, tuple | list) and isinstance(theirs, tuple | list):
        return len(ours) == len(theirs) and all(map(same_steps, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=CLOSE) or (math.isnan(ours) and math.isnan(theirs))
    return bool(ours == theirs)
