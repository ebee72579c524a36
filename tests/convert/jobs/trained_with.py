"""A drafted `run` with gradients, called in training: what comes out, or what it raises."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..loading.target_file import load_file


def work(report: Any, file: str) -> dict[str, Any]:
    """The file's `run(x, w)` takes x: [3, 9] and w: [9]."""
    module = load_file(Path(file))
    x, w = torch.randn(3, 9), torch.nn.Parameter(torch.randn(9))
    seen: dict[str, Any] = {}
    launched: list[str] = []
    for name in [name for name in vars(module) if name.endswith("_kernel")]:
        setattr(module, name, Noted(name, getattr(module, name), launched))

    def noted(ctx: Any, *given: Any) -> Any:
        launched.clear()
        found = original(ctx, *given)
        seen["backward launched"] = list(launched)
        seen["backward returned"] = [None if g is None else list(g.shape) for g in found]
        return found

    function = next(value for name, value in vars(module).items() if name.endswith("Function"))
    original = function.backward
    function.backward = staticmethod(noted)
    module.run(x, w).sum().backward()
    (expected,) = torch.autograd.grad(module.reference(x, w).sum(), w)
    with torch.no_grad():
        frozen = module.run(x, w)
    return {
        **seen,
        "the parameter's gradient is PyTorch's": torch.allclose(w.grad, expected, atol=1e-5),
        "a result under no_grad requires grad": frozen.requires_grad,
        "a second derivative": raised(lambda: twice(module.run(x, w), w)),
    }


class Noted:
    """A kernel that says when it is launched."""

    def __init__(self, name: str, kernel: Any, launched: list[str]) -> None:
        self.name, self.kernel, self.launched = name, kernel, launched

    def __getitem__(self, grid: Any) -> Callable[..., object]:
        self.launched.append(self.name)
        return self.kernel[grid]  # type: ignore[no-any-return]


def twice(result: torch.Tensor, w: torch.Tensor) -> None:
    (first,) = torch.autograd.grad(result.square().sum(), w, create_graph=True)
    first.sum().backward()


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ran"
