"""Launches that a finished function keeps are those of a call that allocates and launches, and nothing else.

Kernels stand in that compute with NumPy, which PyTorch does not see, as it sees no launch on a GPU.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch

from pytorch_to_triton.convert.finish.converted import split_kernel_file
from pytorch_to_triton.convert.finish.files import files
from pytorch_to_triton.convert.finish.kept_launches import keeps_launches

from .test_generated_source import recipe

KERNELS = '''"""f in Triton."""
import torch
import triton
import triton.language as tl

def reference(x, w, scale=2.0):
    return x * w * scale

def run(x, w, scale=2.0):
    x = x.contiguous()
    product = torch.empty_like(x)
    out = torch.empty(x.shape, dtype=x.dtype)
    multiply_kernel[(x.numel(),)](x, w, product, BLOCK=4)
    scale_kernel[(x.numel(),)](product, out, scale, BLOCK=4)
    return out
'''
NUMBERS = count()


class Kernel:
    """Launched as a Triton kernel is, and launched again as the compiled kernel that a launch returns."""

    def __init__(self, compute: Callable[..., None], *arg_names: str) -> None:
        self.compute, self.arg_names = compute, arg_names

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., "Kernel"]:
        def launch(*args: Any, **options: Any) -> Kernel:
            arrays = [arg.numpy() if isinstance(arg, torch.Tensor) else arg for arg in args]
            self.compute(*arrays[: len(self.arg_names) - 1])
            return self

        return launch


def multiply(x: Any, w: Any, product: Any) -> None:
    product[...] = x * w


def scale_by(product: Any, out: Any, scale: float) -> None:
    out[...] = product * scale


def finished(change: tuple[str, str] = ("", "")) -> dict[str, Any]:
    """The names of a finished file, a passage of whose kernel file is changed."""
    made = recipe(
        {"x": "float32[M, N]", "w": "float32[N]", "scale": 2.0},
        file=split_kernel_file(KERNELS.replace(*change)),
        drafted=True,
        module_name=f"kept_{next(NUMBERS)}",
    )
    assert keeps_launches(made)
    scope: dict[str, Any] = {"__name__": made.module_name}
    exec(files(made, "").texts[f"{made.module_name}.py"], scope)
    scope["multiply_kernel"] = Kernel(multiply, "x_ptr", "w_ptr", "product_ptr", "BLOCK")
    scope["scale_kernel"] = Kernel(scale_by, "product_ptr", "out_ptr", "scale", "BLOCK")
    return scope


def call(scope: dict[str, Any], x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """As the finished function calls on a GPU."""
    result: torch.Tensor = scope["launched"]("key", [x, w], lambda: scope["run"](x, w))
    return result


def is_kept(scope: dict[str, Any]) -> bool:
    return bool(scope["LAUNCHES"]["key"])


def test_the_launches_of_the_second_call_compute_later_ones() -> None:
    scope = finished()
    for number in range(5):
        if number == 2:
            assert is_kept(scope)
            scope["run"] = None
        x, w = torch.randn(3, 4), torch.randn(4)
        assert torch.equal(call(scope, x, w), x * w * 2.0)
    assert isinstance(scope["multiply_kernel"], Kernel)


@pytest.mark.parametrize(
    "change",
    [
        ("product = torch.empty_like(x)", "product = torch.zeros_like(x)"),
        ("product = torch.empty_like(x)", "product = torch.empty_like(x)\n    w = w + 0.0"),
        ("return out", "return out.t()"),
        ("return out", "return x * w * 2.0"),
        ("return out", "return out * 1.0 if out.sum().item() < 0 else out"),
    ],
)
def test_a_call_that_does_more_than_allocate_and_launch_is_made_as_it_is(change: tuple[str, str]) -> None:
    scope = finished(change)
    for _ in range(4):
        x, w = torch.randn(3, 4), torch.randn(4)
        assert call(scope, x, w).flatten().sort().values.equal((x * w * 2.0).flatten().sort().values)
    assert not is_kept(scope)


def test_a_call_whose_inputs_are_one_tensor_is_not_kept_for_two() -> None:
    scope = finished()
    x = torch.randn(4)
    for _ in range(3):
        assert torch.equal(call(scope, x, x), x * x * 2.0)
    w = torch.randn(4)
    assert torch.equal(call(scope, x, w), x * w * 2.0)
    assert not is_kept(scope)


def test_kernels_are_in_place_again_after_a_call_that_fails() -> None:
    scope = finished()
    call(scope, torch.ones(3, 4), torch.ones(4))
    kernel = scope["scale_kernel"]
    with pytest.raises(ValueError, match="broadcast"):
        call(scope, torch.ones(3, 4), torch.ones(3))
    assert scope["scale_kernel"] is kernel
    for _ in range(3):
        assert torch.equal(call(scope, torch.ones(3, 4), torch.ones(4)), torch.full((3, 4), 2.0))


def test_nothing_is_kept_without_a_gpu() -> None:
    scope = finished()
    assert scope["call_key"](torch.ones(3, 4), torch.ones(4), 2.0) is None


def test_what_anybody_wrote_or_what_is_tuned_as_it_runs_is_never_kept() -> None:
    tuned = "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef k(x):\n    pass\n\ndef run(x, w"
    inputs = {"x": "float32[M, N]", "w": "float32[N]", "scale": 2.0}
    assert not keeps_launches(recipe(inputs, file=split_kernel_file(KERNELS)))
    text = KERNELS.replace("def run(x, w", tuned)
    assert not keeps_launches(recipe(inputs, file=split_kernel_file(text), drafted=True))


def test_launches_that_return_no_compiled_kernel_are_not_kept() -> None:
    scope = finished()

    class Interpreted(Kernel):
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            launch = super().__getitem__(grid)
            return lambda *args, **options: launch(*args, **options) and None

    scope["scale_kernel"] = Interpreted(scale_by, "product_ptr", "out_ptr", "scale", "BLOCK")
    for _ in range(3):
        assert torch.equal(call(scope, torch.ones(3, 4), torch.ones(4)), torch.full((3, 4), 2.0))
    assert not is_kept(scope)
