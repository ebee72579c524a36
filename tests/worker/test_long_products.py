"""Sums of many products in float32: term by term is honest, shortened factors and lost terms are not."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.tensors import output_of
from pytorch_to_triton.worker.truth.compare import statistics_of
from pytorch_to_triton.worker.truth.oracle import Truth

from .oracles import stated_truth, truth_of

TERMS = 4096
SIDE = 16
POSITIONS = 256


def operands() -> tuple[Tensor, Tensor]:
    """Two factors, [SIDE, TERMS] and [TERMS, SIDE], float32."""
    generator = torch.Generator().manual_seed(5)
    return torch.randn(SIDE, TERMS, generator=generator), torch.randn(TERMS, SIDE, generator=generator)


@cache
def summed(how: str) -> Tensor:
    """The product of both factors, as a tile adds it up: as it is, `shortened` or `incomplete`."""
    a, b = operands()
    if how == "shortened":
        return one_after_the_other(as_tf32(a), as_tf32(b))
    return one_after_the_other(a[:, :-1], b[:-1]) if how == "incomplete" else one_after_the_other(a, b)


def one_after_the_other(a: Tensor, b: Tensor) -> Tensor:
    """`a @ b`, as a tile adds it up: term by term, in the dtype of `a`."""
    total = torch.zeros(a.shape[0], b.shape[1])
    for term in range(a.shape[1]):
        total = torch.addcmul(total, a[:, term, None], b[None, term])
    return total


def as_tf32(values: Tensor) -> Tensor:
    """Rounded to ten bits of mantissa."""
    return ((values.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def linear(a: Tensor, b: Tensor) -> Tensor:
    return F.linear(a, b.t(), torch.zeros(SIDE))


def as_convolution(a: Tensor, b: Tensor) -> Tensor:
    return F.conv1d(b.t()[:, :, None], a[:, :, None])[:, :, 0].t()


def as_transposed_convolution(a: Tensor, b: Tensor) -> Tensor:
    return F.conv_transpose1d(b.t()[:, :, None], a.t()[:, :, None])[:, :, 0].t()


def activated(a: Tensor, b: Tensor) -> Tensor:
    return F.gelu(a @ b)


PRODUCTS = [product, linear, as_convolution, as_transposed_convolution]


def failing_products(reference: Callable[..., Tensor], folder: Path, *products: Tensor) -> list[int]:
    """How many elements of each fail, as results of the reference for both operands."""
    arguments = dict(zip("ab", operands(), strict=True))
    truth = truth_of(reference, arguments, folder)
    return [failing({"out": each}, truth, arguments) for each in products]


def failing(candidate: Mapping[str, Tensor], truth: Truth, arguments: Mapping[str, Any]) -> int:
    """How many of the candidate's elements fail."""
    outputs = {path: output_of(value) for path, value in candidate.items()}
    found = statistics_of(outputs, truth, CallInputs(dict(arguments), {}))
    return sum(output["failing"] for output in found["outputs"])


@pytest.mark.parametrize("reference", PRODUCTS)
def test_a_long_sum_may_err_as_float32_errs_term_by_term(
    reference: Callable[..., Tensor], tmp_path: Path
) -> None:
    products = map(summed, ("as it is", "shortened", "incomplete"))
    right, shortened, incomplete = failing_products(reference, tmp_path, *products)
    assert right == 0
    assert min(shortened, incomplete) > SIDE


def test_terms_of_one_sign_err_more_and_may(tmp_path: Path) -> None:
    a, b = (operand.abs() for operand in operands())
    arguments = {"a": a, "b": b}
    truth = truth_of(product, arguments, tmp_path)
    assert failing({"out": one_after_the_other(a, b)}, truth, arguments) == 0
    assert failing({"out": one_after_the_other(a[:, :-1], b[:-1])}, truth, arguments) > SIDE


def test_what_follows_a_long_sum_inherits_its_errors(tmp_path: Path) -> None:
    products = (F.gelu(summed(how)) for how in ("as it is", "shortened"))
    right, shortened = failing_products(activated, tmp_path, *products)
    assert right == 0
    assert shortened > SIDE


def test_gradients_of_a_convolution_are_long_sums_too(tmp_path: Path) -> None:
    def convolved(x: Tensor, weight: Tensor) -> Tensor:
        return F.conv1d(x, weight)

    a, b = operands()
    x = a[:, None, :POSITIONS].contiguous()
    weight = b[:1].t()[:, :, None].contiguous()
    arguments = {"x": x, "weight": weight}
    upstream = torch.randn(SIDE, SIDE, POSITIONS, generator=torch.Generator().manual_seed(6))
    truth = truth_of(convolved, arguments, tmp_path, {"out": upstream})
    flat = upstream.transpose(0, 1).reshape(SIDE, -1)
    right = {
        "out": F.conv1d(x, weight),
        "gradient of x": (upstream * weight[:, 0]).sum(1, keepdim=True),
    }
    positions = x.reshape(-1, 1)
    of_weight = {"gradient of weight": one_after_the_other(flat, positions)[:, :, None]}
    rounded = {"gradient of weight": one_after_the_other(as_tf32(flat), as_tf32(positions))[:, :, None]}
    assert set(truth.precise) == {*right, *of_weight}
    assert failing({**right, **of_weight}, truth, arguments) == 0
    assert failing({**right, **rounded}, truth, arguments) > 0


@pytest.mark.parametrize("found_by", ["sample", "rounding"])
def test_a_rounding_error_that_one_sample_missed_by_chance_is_found_by_others(found_by: str) -> None:
    generator = torch.Generator().manual_seed(8)
    exact = torch.randn(64, 64, generator=generator, dtype=torch.float64)
    ill = exact.clone()
    ill[3] += 4e-6
    truth = stated_truth(exact.float(), exact, **{found_by: ill})
    arguments = {"x": exact.float()}
    near, elsewhere = exact.float(), exact.float()
    near[3] += 4e-6
    elsewhere[4] += 4e-6
    assert failing({"out": near}, truth, arguments) == 0
    assert failing({"out": elsewhere}, truth, arguments) > 32


def test_gradients_of_a_norm_s_weights_are_sums_over_all_rows(tmp_path: Path) -> None:
    def normalised(x: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (SIDE,), None, bias)

    a, _ = operands()
    x, bias = a.view(-1, SIDE)[:2048], torch.zeros(SIDE)
    upstream = torch.randn(x.shape, generator=torch.Generator().manual_seed(6))
    arguments = {"x": x, "bias": bias}
    truth = truth_of(normalised, arguments, tmp_path, {"out": upstream})
    exact = {path: leaf.tensor.float() for path, leaf in truth.precise.items() if leaf.tensor is not None}
    rows = torch.ones(1, len(x))
    summed = {**exact, "gradient of bias": one_after_the_other(rows, upstream)[0]}
    short = {**exact, "gradient of bias": one_after_the_other(rows[:, :-1], upstream[:-1])[0]}
    assert failing(summed, truth, arguments) == 0
    assert failing(short, truth, arguments) > 0
