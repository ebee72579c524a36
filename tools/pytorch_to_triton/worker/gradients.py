"""Calling a target so that its gradients are outputs too.

The backward pass starts from given cotangents and ends at every floating tensor of the call.
"""

from collections.abc import Callable
from typing import Any

import torch

from .exchange import Call
from .tensors import leaves

GRADIENT_OF = "gradient of "
"""Begins the path of a gradient: `gradient of x`."""


class NoGradient(Exception):
    """No output depends on any input as far as autograd knows."""


def with_gradients(target: Callable[[Call], Any], call: Call) -> dict[str, Any]:
    """The target's outputs by path, and `gradient of NAME` for each floating tensor that has one.

    The cotangents of `call` are cast to their output's dtype. Raises NoGradient where autograd lost track:
    no floating output has a history.
    """
    inputs = {name: tensor for name, tensor in call.tensors().items() if tensor.is_floating_point()}
    for tensor in inputs.values():
        tensor.requires_grad_()
    outputs = dict(leaves(target(call)))
    tracked = {path: call.cotangents[path] for path in outputs if is_tracked(outputs[path], path, call)}
    if not tracked:
        raise NoGradient("no output has a grad_fn: the backward pass has nothing to start from")
    starts = [cotangent.to(outputs[path].dtype) for path, cotangent in tracked.items()]
    ends = list(inputs.values())
    gradients = torch.autograd.grad(
        [outputs[path] for path in tracked], ends, starts, allow_unused=True, materialize_grads=False
    )
    named = zip(inputs, gradients, strict=True)
    return {**outputs, **{f"{GRADIENT_OF}{name}": g for name, g in named if g is not None}}


def is_tracked(output: Any, path: str, call: Call) -> bool:
    return isinstance(output, torch.Tensor) and output.requires_grad and path in call.cotangents
