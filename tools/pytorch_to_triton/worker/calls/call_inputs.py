"""What a case calls its target with: arguments, state, the gradients that a backward pass starts from."""

from collections.abc import Mapping
from typing import Any

import torch

from ..loading.packing import unpacked
from ..loading.target import Loaded
from ..random_numbers import seed_random_numbers
from .exchange import AFTER_THE_CALL
from .generate import generate_arguments, generator, laid_out, perturbed_state, signed
from .gradients import GRADIENT_OF
from .tensors import Outputs


def generated_arguments(reference: Loaded, case: Mapping[str, Any], device: str = "cpu") -> dict[str, Any]:
    """The case's arguments: by its specs, on the device, or by the file's inputs(**dims) or get_inputs()."""
    if case["arguments"]:
        return generate_arguments(case, case["seed"], device)
    seed_random_numbers(generator(case["seed"], case["name"]).initial_seed())
    contents = reference.contents
    if not hasattr(contents, "inputs"):
        return named_inputs(reference) if hasattr(contents, "get_inputs") else {}
    return made_inputs(reference, case["dims"])


def made_inputs(loaded: Loaded, dims: Mapping[str, int]) -> dict[str, Any]:
    """What the file's inputs() returns at these dims, as arguments by name."""
    return unpacked_inputs(loaded, loaded.contents.inputs(**dims))


def named_inputs(loaded: Loaded) -> dict[str, Any]:
    """get_inputs() as arguments by name: its own keys, else forward's parameters in order.

    Raises ValueError where it returns more values than forward takes.
    """
    return unpacked_inputs(loaded, loaded.contents.get_inputs())


def unpacked_inputs(loaded: Loaded, inputs: Any) -> dict[str, Any]:
    """The arguments that a file generates, each tensor and constant by a name of its own."""
    if not isinstance(inputs, Mapping):
        try:
            inputs = loaded.signature.bind_partial(*inputs).arguments
        except TypeError as error:
            raise ValueError(
                f"it returns {len(inputs)} values, but `{loaded.name}` takes "
                f"{', '.join(loaded.parameters) or 'none'}"
            ) from error
    return unpacked(inputs, vars(loaded.contents), loaded.variadic)


def generated_state(reference: Loaded, seed: int) -> dict[str, torch.Tensor]:
    """The state that both sides are called with: the reference's, moved off its initial values.

    What no state_dict has stays: a candidate may compute it for itself.
    """
    state = reference.state
    perturbed = perturbed_state(state, parameter_names(reference), seed)
    return {**perturbed, **{name: state[name] for name in reference.unsaved}}


def generated_cotangents(
    outputs: Outputs, seed: int, device: str = "cpu", *, layout: str = "contiguous"
) -> dict[str, torch.Tensor]:
    """For each floating output a random gradient to start the backward pass from, on the device.

    That of a number is 1 in half of the calls, as `loss.backward()` starts: kernels may have a way for it.
    """
    tensors = {path: output.tensor for path, output in outputs.items() if not path.endswith(AFTER_THE_CALL)}
    cotangents = {}
    for path, tensor in tensors.items():
        if tensor is not None and tensor.is_floating_point():
            random = generator(seed, GRADIENT_OF, path, device=device)
            values = signed(tuple(tensor.shape), torch.float32, random)
            if tensor.ndim == 0 and bool(torch.rand((), generator=random, device=device) < 0.5):
                values = torch.ones_like(values)
            cotangents[path] = laid_out(values.to(tensor.dtype), layout)
    return cotangents


def layout_of_gradients(case: Mapping[str, Any]) -> str:
    """That of the first tensor: backward passes meet any, such as the expanded gradient of a sum."""
    return next((argument["layout"] for argument in case["arguments"] if argument["form"] == "tensor"), "")


def numbers_among(case: Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers that are among the values of its tensors, rounded to their dtypes."""
    tensors = (argument for argument in case["arguments"] if argument.get("among"))
    rounded = (torch.tensor(tensor["among"]).to(getattr(torch, tensor["dtype"])) for tensor in tensors)
    return tuple(number for numbers in rounded for number in numbers.tolist())


def parameter_names(reference: Loaded) -> set[str]:
    """The names of a module's state that are parameters, not buffers."""
    trained = {key for key, _ in reference.module.named_parameters()} if reference.module else set()
    return {name for name, key in reference.state_keys.items() if key in trained}
