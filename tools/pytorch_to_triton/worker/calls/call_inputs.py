"""What a case calls its target with: arguments, state, the gradients that a backward pass starts from."""

from collections.abc import Mapping
from typing import Any

import torch

from ..jobs.describe import named_inputs
from ..loading.target import Loaded, keyword
from ..truth.oracle import Outputs
from .exchange import AFTER_THE_CALL
from .generate import draw_arguments, generator, signed
from .gradients import GRADIENT_OF


def drawn(reference: Loaded, case: dict[str, Any]) -> dict[str, Any]:
    """The case's arguments on the CPU: drawn here, or by the file's inputs(**dims) or get_inputs()."""
    if case["arguments"]:
        return draw_arguments(case, case["seed"])
    torch.manual_seed(generator(case["seed"], case["name"]).initial_seed())
    contents = reference.contents
    if not hasattr(contents, "inputs"):
        return named_inputs(reference) if hasattr(contents, "get_inputs") else {}
    given = contents.inputs(**case["dims"])
    named = given if isinstance(given, Mapping) else zip(reference.parameters, given, strict=False)
    return dict(named)


def drawn_cotangents(outputs: Outputs, seed: int) -> dict[str, torch.Tensor]:
    """For each floating output a random gradient to start the backward pass from."""
    floating = {
        path: output.tensor
        for path, output in outputs.items()
        if output.tensor is not None
        and output.tensor.is_floating_point()
        and not path.endswith(AFTER_THE_CALL)
    }
    return {
        path: signed(tuple(tensor.shape), torch.float32, generator(seed, GRADIENT_OF, path)).to(tensor.dtype)
        for path, tensor in floating.items()
    }


def trained(reference: Loaded) -> set[str]:
    """The names of a module's state that are parameters, not buffers."""
    return (
        set()
        if reference.module is None
        else {keyword(key) for key, _ in reference.module.named_parameters()}
    )
