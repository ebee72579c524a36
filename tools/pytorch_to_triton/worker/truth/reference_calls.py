"""How a reference is called: for how long it may run, and whether two of its runs take the same branches."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

LEAST_SECONDS = 10.0
"""Any call may take as long."""
TIMES_LONGEST = 10
"""And so many times what the longest has taken that returned: sizes and precisions differ."""
AGAIN_SECONDS = 0.5
"""After the limit it is raised again and again: a callback, or an `except Exception`, may swallow it."""
CLOSE = 1e-2
"""Relative: numbers that were read from tensors of two precisions; an eps for each dtype differs by more."""


class NotEnded(Exception):
    """A call of the reference has not returned within its limit."""


@dataclass
class CallLimit:
    """Learns from calls that return; the first one may take as long as its process lives."""

    longest_seconds: float | None = None
    """Of the calls that returned; None: none has."""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """One call. Raises NotEnded inside, between two steps of Python."""
        began = time.monotonic()
        if self.longest_seconds is None:
            yield
        else:
            with raised_after(max(LEAST_SECONDS, TIMES_LONGEST * self.longest_seconds)):
                yield
        self.longest_seconds = max(self.longest_seconds or 0.0, time.monotonic() - began)


@contextmanager
def raised_after(seconds: float) -> Iterator[None]:
    """Raises NotEnded in the block where that takes longer."""

    def end(signum: int, frame: Any) -> None:
        raise NotEnded(f"did not end within {seconds:.3g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
