"""Forward, backward, or both: what lies between two events."""

from collections.abc import Callable
from typing import Any

import torch

from ..calls.exchange import CallInputs
from ..calls.gradients import call_and_gradients, with_gradients
from ..calls.tensors import leaves

Target = Callable[[CallInputs], Any]
Timed = Callable[[], dict[str, Any]]
"""Does the timed work; returns the results by path."""
Ready = Callable[[Target, CallInputs], Timed]
"""Does what comes before it."""


def forward(target: Target, call: CallInputs) -> Timed:
    """The call without gradients."""

    def timed() -> dict[str, Any]:
        with torch.no_grad():
            return dict(leaves(target(call)))

    return timed


def backward(target: Target, call: CallInputs) -> Timed:
    """The backward pass of a call that was made before."""
    outputs, gradients = call_and_gradients(target, call)
    return lambda: {**outputs, **gradients()}


def both(target: Target, call: CallInputs) -> Timed:
    """The call and its backward pass."""
    return lambda: with_gradients(target, call)


PASSES: dict[str, Ready] = {"forward": forward, "backward": backward, "both": both}
