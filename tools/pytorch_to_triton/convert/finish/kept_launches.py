"""Launches that are kept: what a call allocates and launches is noted once, and done again for calls like it.

Without it, a call at small sizes waits for checks and for Triton's own dispatch: beside an H200 a launch took
12.9 microseconds, and the compiled kernel launched directly 7.7 (torch 2.11, Triton 3.6).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pytorch_to_triton.benchmark.tuning.freeze import autotuned_kernels
from pytorch_to_triton.convert.finish.recipe import Recipe, received
from pytorch_to_triton.inputs.input_spec import PackedSpec

IMPORTS = (
    "import operator",
    "import threading",
    "from torch.utils._python_dispatch import TorchDispatchMode",
)
SETTINGS = ("torch.backends.cuda.matmul.fp32_precision", "torch.backends.cudnn.conv.fp32_precision")
"""What a kernel's constants may depend on beside the call, where its file asks for it."""


def keeps_launches(recipe: Recipe) -> bool:
    """Whether its `run` depends on nothing but the call: a draft without choices at run time."""
    plain = not any(isinstance(spec, PackedSpec) for spec in recipe.inputs.values()) and not recipe.written
    returns = recipe.structure in ("single", "tuple", "list")
    return bool(
        recipe.drafted and returns and plain and recipe.tensors and not autotuned_kernels(recipe.text)
    )


def content(recipe: Recipe, names: Mapping[str, str]) -> Mapping[str, object]:
    """What the template says of one function; `names` is what its own functions are called."""
    tensors = [tensor.name for tensor in recipe.tensors]
    trained = [tensor.name for tensor in recipe.tensors if tensor.has_gradient]
    kernels = launched_kernels(recipe.text)
    return {
        **names,
        "recipe": recipe,
        "parameters": received(recipe.parameters),
        "names": tensors,
        "types": "{" + ", ".join(f"type({name})" for name in tensors) + "}",
        "trained": " or ".join(f"{name}.requires_grad" for name in trained) or "False",
        "kernels": "".join(f'"{kernel}", ' for kernel in kernels).rstrip(" "),
        "dependencies": ", ".join(dependencies(recipe)),
    }


def dependencies(recipe: Recipe) -> list[str]:
    """Expressions whose values tell apart calls whose launches may differ."""
    tensors = {tensor.name for tensor in recipe.tensors}
    of_settings = [setting for setting in SETTINGS if setting.rpartition(".")[0] in recipe.text]
    # Where the elements of a tensor lie is known: one after the other.
    of_tensor = "{0}.shape, {0}.dtype, {0}.get_device(), {0}.data_ptr() % 16"
    return [
        *(of_tensor.format(name) if name in tensors else f"repr({name})" for name in recipe.arguments),
        *of_settings,
    ]


def launched_kernels(text: str) -> list[str]:
    """The names in `NAME[grid](...)`, in their order."""
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    launches = (f.value for f in calls if isinstance(f, ast.Subscript) and isinstance(f.value, ast.Name))
    return list(dict.fromkeys(name.id for name in launches))
