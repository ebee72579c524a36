"""Calling a target so that its gradients are outputs too.

The backward pass starts from given cotangents and ends at every floating tensor of the call by which it has a
gradient.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch.autograd.gradcheck import GradcheckError, gradcheck

from .exchange import CallInputs, map_tensors
from .tensors import leaves

T = TypeVar("T")
GRADIENT_OF = "gradient of "
"""Begins the path of a gradient: `gradient of x`."""

GRADCHECK_ELEMENTS = 64
"""Finite differences call the target twice for each."""
NONDETERMINISM = 1e-9
"""What a backward pass with atomics may differ from run to run, in float64."""


UNDIFFERENTIABLE = "is not differentiable with respect to argument"
"""What autograd says where an operator has no gradient by one of its tensors, such as weights of classes."""


class NoGradient(Exception):
    """Autograd sees no output that depends on an input."""


def with_gradients(target: Callable[[CallInputs], Any], call: CallInputs) -> dict[str, Any]:
    """The target's outputs by path, and `gradient of NAME` for each floating tensor that has one.

    Whether one of no elements has a gradient is nobody's concern: it is empty, or None where a branch on its
    size leaves the tensor out.

    The cotangents of `call` are cast to their output's dtype. Raises NoGradient where autograd lost track:
    no floating output has a history.
    """
    outputs, gradients = call_and_gradients(target, call)
    return {**outputs, **gradients()}


def gradients_apart(
    target: Callable[[CallInputs], Any],
    call: Callable[[], CallInputs],
    other: CallInputs,
    paths: Iterable[str],
) -> dict[str, Any]:
    """Those of the paths that are gradients, each asked for alone, as where other weights are frozen, and
    after a forward pass on other values, as in a second batch. `call` gives the call's inputs anew."""

    def gradient(path: str) -> Any:
        _, backward = call_and_gradients(target, call(), [path.removeprefix(GRADIENT_OF)])
        target(other)
        return backward().get(path)

    return {path: gradient(path) for path in paths if path.startswith(GRADIENT_OF)}


def call_and_gradients(
    target: Callable[[CallInputs], Any], call: CallInputs, names: Collection[str] | None = None
) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """The outputs of a call, and the backward pass that gives its gradients, or those by the tensors of these
    names alone; it can be run once.

    Raises NoGradient.
    """
    asked = call.tensors() if names is None else {name: call.tensors()[name] for name in names}
    inputs = {name: tensor for name, tensor in asked.items() if tensor.is_floating_point()}
    inputs, returned = differentiated(lambda: target(call), inputs)
    outputs = dict(leaves(returned))
    tracked = {path: call.cotangents[path] for path in outputs if is_tracked(outputs[path], path, call)}
    if not tracked:
        raise NoGradient("no output has a grad_fn: the backward pass has nothing to start from")
    starts = [cotangent.to(outputs[path].dtype) for path, cotangent in tracked.items()]

    def gradients() -> dict[str, Any]:
        gradients_of_leaves = torch.autograd.grad(
            [outputs[path] for path in tracked],
            list(inputs.values()),
            starts,
            allow_unused=True,
            materialize_grads=False,
        )
        named = zip(inputs, gradients_of_leaves, strict=True)
        return {
            f"{GRADIENT_OF}{name}": gradient
            for name, gradient in named
            if gradient is not None and gradient.numel()
        }

    return outputs, gradients


def differentiated(
    call: Callable[[], T], variables: Mapping[str, torch.Tensor]
) -> tuple[dict[str, torch.Tensor], T]:
    """The variables by which all operators of a call have a gradient, and what it returns; they alone require
    grad from then on."""

    def following(names: Collection[str]) -> T:
        for name, variable in variables.items():
            variable.requires_grad_(name in names)
        return call()

    def is_followed(name: str) -> bool:
        try:
            following([name])
        except RuntimeError as error:
            return UNDIFFERENTIABLE not in str(error)
        return True

    try:
        return dict(variables), following(variables)
    except RuntimeError as error:
        if UNDIFFERENTIABLE not in str(error):
            raise
    followed = {name: variable for name, variable in variables.items() if is_followed(name)}
    return followed, following(followed)


def is_tracked(output: Any, path: str, call: CallInputs) -> bool:
    return isinstance(output, torch.Tensor) and output.requires_grad and path in call.cotangents


def gradcheck_failure(target: Callable[[CallInputs], Any], call: CallInputs) -> str | None:
    """Why torch.autograd.gradcheck rejects the target: its gradients differ from finite differences.

    None where they agree, and where it cannot be applied: finite differences need float64, few elements, and
    values of ordinary size.
    """
    inputs = {name: t for name, t in call.tensors().items() if t.is_floating_point()}
    elements = sum(tensor.numel() for tensor in inputs.values())
    if not 0 < elements <= GRADCHECK_ELEMENTS or not all(map(is_ordinary, inputs.values())):
        return None

    def outputs(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arguments = dict(zip(inputs, values, strict=True))
        result = dict(leaves(target(map_tensors(call, lambda name, tensor: arguments.get(name, tensor)))))
        return tuple(leaf for path, leaf in result.items() if is_tracked(leaf, path, call))

    starts = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
    try:
        gradcheck(outputs, starts, nondet_tol=NONDETERMINISM)
    except GradcheckError as error:
        return str(error).partition("\n")[0]
    except (Exception, SystemExit) as error:
        return f"the candidate raised {type(error).__name__}: {error}"
    return None


def is_ordinary(tensor: torch.Tensor) -> bool:
    """float64, finite, and of a size to which a step of 1e-6 is neither lost nor large."""
    size = float(tensor.detach().abs().max()) if tensor.numel() else 1.0
    return tensor.dtype == torch.float64 and 1e-2 < size < 1e2
