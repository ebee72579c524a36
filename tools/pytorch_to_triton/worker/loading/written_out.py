"""Tensors that a kernel makes by itself: few numbers, or whole ones in even steps."""

import torch
from torch.utils._python_dispatch import _disable_current_modes

LARGEST = 16
"""So many numbers are written out one by one; of more, only those in even steps are known."""


def is_in_even_steps(tensor: torch.Tensor) -> bool:
    """Whether it holds positions, which nobody sets to anything else."""
    with _disable_current_modes():  # It is asked among fake tensors as well, which have no values.
        return even_steps(tensor.flatten()) is not None


def has_few_numbers(flat: torch.Tensor) -> bool:
    """Whether all of them can be written as literals."""
    return 0 < flat.numel() <= LARGEST and bool(torch.isfinite(flat).all())


def even_steps(flat: torch.Tensor) -> tuple[int, int, int] | None:
    """Start, end and step of whole numbers in even steps."""
    if flat.dtype == torch.bool or flat.numel() < 2 or not bool(torch.isfinite(flat).all()):
        return None
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    end = start + step * flat.numel()
    even = step != 0 and torch.equal(flat, torch.arange(start, end, step, dtype=flat.dtype))
    return (start, end, step) if even else None
