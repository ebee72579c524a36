"""PyTorch's own check of the operators that reference kernels register, and of gradients through them.

python check_operator.py FILE...
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.validate.cases import build_plan
from pytorch_to_triton.validate.plan import CaseSizeLimits
from pytorch_to_triton.worker.calls.generate import generate_arguments
from pytorch_to_triton.worker.calls.tensors import leaves
from pytorch_to_triton.worker.interpreter import install
from pytorch_to_triton.worker.loading.target import load
from reference_benchmarks.kernel_index import page_of

LIMIT_ELEMENTS = 2**11


def main(path: Path) -> None:
    """Raises where an operator is registered wrongly, or `run` does not compile."""
    contents = load({"path": path, "name": None}, "candidate").contents
    arguments = arguments_of(contents, differentiable=page_of(path).differentiable)
    calls = Calls()
    check_without_gradient(contents.run, arguments)
    # Where nothing is traced, a kernel may leave its operator out for speed.
    with calls, every_tensor_traced(contents.run.__globals__):
        results = called(contents.run, arguments)
        check_without_gradient(contents.run, arguments)
    assert calls.made, "run calls no operator of reference_kernels"
    for (name, actual), (_, expected) in zip(called(contents.run, arguments), results, strict=True):
        torch.testing.assert_close(actual, expected, msg=lambda text, name=name: f"{name}: {text}")
    for operator, args, kwargs in calls.made:
        torch.library.opcheck(operator, args, kwargs)
    compiled = torch.compile(contents.run, fullgraph=True, backend="aot_eager")
    for (name, actual), (_, expected) in zip(called(compiled, arguments), results, strict=True):
        torch.testing.assert_close(actual, expected, msg=lambda text, name=name: f"{name}: {text}")
    print(path.stem, [str(operator) for operator, _, _ in calls.made], flush=True)


@contextmanager
def every_tensor_traced(names: dict[str, Any]) -> Iterator[None]:
    """Replaces the question of a kernel's file whether it is traced, which not all of them ask."""
    asked = names.get("is_traced")
    names["is_traced"] = lambda x: True
    yield
    names["is_traced"] = asked


def called(run: Callable[..., Any], arguments: Mapping[str, Any]) -> list[tuple[str, torch.Tensor]]:
    """The results by path, and the gradients of all inputs that have one, of ones at all results."""
    results = list(leaves(run(**arguments)))
    inputs = [value for value in arguments.values() if isinstance(value, torch.Tensor)]
    given = [value for _, value in results if value.requires_grad]
    if not given:
        return results
    wanted = [value for value in inputs if value.requires_grad]
    gradients = torch.autograd.grad(given, wanted, [torch.ones_like(one) for one in given], allow_unused=True)
    found = [(f"gradient {number}", one) for number, one in enumerate(gradients) if one is not None]
    return [*results, *found]


def check_without_gradient(run: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raises where an input has a gradient, though none arrives at a result; zeros will do."""
    for position, _ in enumerate(leaves(run(**arguments))):
        _, result = list(leaves(run(**arguments)))[position]
        wanted = [v for v in arguments.values() if isinstance(v, torch.Tensor) and v.requires_grad]
        if result.requires_grad:
            ended = Ended.apply(result)
            for gradient in torch.autograd.grad(ended.sum(), wanted, allow_unused=True):
                assert gradient is None or not gradient.any()


class Ended(torch.autograd.Function):
    """The same values, through which no gradient goes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> None:
        return None


class Calls(torch.utils._python_dispatch.TorchDispatchMode):
    """The calls of operators that the file registers, each operator once, inputs as they were given."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "reference_kernels" and func not in [operator for operator, _, _ in self.made]:
            # Gradients of gradients are nobody's.
            keep = not func.name().endswith("backward")
            self.made.append((func, copied(args, keep), copied(kwargs or {}, keep)))
        return func(*args, **(kwargs or {}))


def copied(value: Any, keep_requires_grad: bool) -> Any:
    """Copies of the arguments, as leaves of a graph."""
    return torch.utils._pytree.tree_map_only(
        torch.Tensor,
        lambda tensor: tensor.detach().clone().requires_grad_(keep_requires_grad and tensor.requires_grad),
        value,
    )


def arguments_of(contents: Any, *, differentiable: bool) -> dict[str, Any]:
    """Those of the first small case that the file declares, in float32."""
    declaration = parse_declaration(contents.INPUTS, contents.DIMS, getattr(contents, "REQUIRES", []))
    cases = build_plan(declaration, CaseSizeLimits(LIMIT_ELEMENTS, 0)).in_order()
    case = max(cases[:4], key=lambda case: sum(case.dims.values()))
    arguments = generate_arguments(case.model_dump(mode="json"), seed=1)
    for value in arguments.values():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and differentiable:
            value.requires_grad_()
    return arguments


if __name__ == "__main__":
    install()
    for file in sys.argv[1:]:
        main(Path(file))
