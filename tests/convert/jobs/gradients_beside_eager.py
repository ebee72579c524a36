"""Results and gradients of drafted files beside those of the functions they were drafted from."""

from pathlib import Path
from typing import Any

import torch

from ..loading.target_file import load_file


def work(report: Any, functions: list[dict[str, Any]]) -> dict[str, str]:
    """What differs for each of the functions, which have a `name`, the path of the `source` with `f`, `files`
    with `run`, and `shapes` by input."""
    return {
        given["name"]: "; ".join(filter(None, map(different(given), given["files"]))) for given in functions
    }


def different(given: dict[str, Any]) -> Any:
    torch.manual_seed(3)
    tensors = {name: torch.randn(shape) for name, shape in given["shapes"].items()}
    expected = with_gradients(load_file(Path(given["source"])).f, tensors)

    def compared(file: str) -> str:
        try:
            torch.testing.assert_close(
                with_gradients(load_file(Path(file)).run, tensors), expected, rtol=2e-5, atol=2e-5
            )
        except Exception as problem:
            return f"{Path(file).name}: {problem}"
        return ""

    return compared


def with_gradients(function: Any, tensors: dict[str, torch.Tensor]) -> list[Any]:
    torch.manual_seed(5)
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    found = function(**leaves)
    results = list(found) if isinstance(found, tuple) else [found]
    differentiable = [r for r in results if r.requires_grad]
    grads = torch.autograd.grad(
        differentiable, leaves.values(), [torch.randn_like(r) for r in differentiable], allow_unused=True
    )
    zeros = (
        torch.zeros_like(leaf) if g is None else g for g, leaf in zip(grads, leaves.values(), strict=True)
    )
    return [*results, *zeros]
