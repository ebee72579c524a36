"""Rounding inside the reference: which results move, and how far."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from pytorch_to_triton.worker.truth.nearby import Rounding

EPS = 2.0**-23


def test_a_value_that_meets_its_own_mean_is_off_by_the_mean_s_rounding() -> None:
    ones = torch.ones(8, 64, dtype=torch.float64)
    with Rounding(EPS, seed=1):
        rest = ones - ones.mean(dim=0)
    assert 0 < float(rest.abs().max()) <= 2 * EPS


@pytest.mark.parametrize(
    "normalize",
    [
        lambda x, weight: F.layer_norm(x, [64], weight[:1].expand(64)),
        lambda x, weight: F.group_norm(x.view(2, 4, 64), 4, weight[:4]).view(8, 64),
        lambda x, weight: F.group_norm(x.view(1, 16, 32), 8, weight[:16]).view(8, 64),
        lambda x, weight: F.batch_norm(x.T, None, None, weight[:8], training=True).T,
        lambda x, weight: F.instance_norm(x[None], weight=weight[:8])[0],
    ],
    ids=["layer", "group", "group of two channels", "batch", "instance"],
)
def test_a_normalized_row_is_off_by_its_mean_s_rounding_also_in_its_sum(
    normalize: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    equal, weight = torch.full((8, 64), 8.3, dtype=torch.float64), torch.full((64,), 2.0, dtype=torch.float64)
    with Rounding(EPS, seed=1):
        total = normalize(equal, weight).sum(dim=1)
    by_mean = 64 * EPS * 8.3 * 2.0 / 1e-5**0.5
    assert by_mean / 100 < float(total.abs().max()) <= 1.01 * by_mean


def test_a_normalization_by_running_statistics_rounds_no_mean() -> None:
    x, mean, var = (torch.full(s, 8.3, dtype=torch.float64) for s in [(8, 64), (64,), (64,)])
    with Rounding(EPS, seed=1):
        rest = F.batch_norm(x, mean, var)
    assert float(rest.abs().max()) < 1e-12


@pytest.mark.parametrize("pick", [torch.amax, torch.amin])
def test_picking_a_value_rounds_nothing(pick: Callable[..., torch.Tensor]) -> None:
    values = torch.randn(8, 64, dtype=torch.float64)
    with Rounding(EPS, seed=1):
        picked = pick(values, dim=1)
        size = torch.where(values > 0, values, -values)
    assert torch.equal(picked, pick(values, dim=1))
    assert torch.equal(size, values.abs())


def test_whole_numbers_stay_as_they_are() -> None:
    with Rounding(EPS, seed=1):
        total = torch.arange(10).sum()
    assert int(total) == 45


def test_what_is_written_through_a_view_arrives() -> None:
    with Rounding(EPS, seed=1):
        square = torch.zeros(4, 4, dtype=torch.float64)
        square.diagonal().fill_(3.0)
        total = torch.empty(4, dtype=torch.float64)
        torch.add(square[0], 1.0, out=total)
    assert square.trace() == 12
    assert total.tolist() == [4, 1, 1, 1]


def test_operands_that_are_computed_are_rounded_to_the_short_dtype_and_inputs_are_not() -> None:
    torch.manual_seed(5)
    x, y = (torch.randn(16, 16).half().double() for _ in range(2))
    half = torch.finfo(torch.float16).eps
    with Rounding(EPS, 1, torch.float16):
        of_inputs = (x * (1 + EPS)) @ y
        of_computed = x.sigmoid() @ y
    terms = x.abs() @ y.abs()
    assert float(((of_inputs - x @ y).abs() / terms).max()) < 16 * EPS
    off = (of_computed - x.sigmoid() @ y).abs() / (x.sigmoid() @ y.abs())
    assert half / 16 < float(off.max()) < half
