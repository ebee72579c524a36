"""A large result is judged block by block, and the verdict is the one on all of it."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.tensors import output_of
from pytorch_to_triton.worker.truth import blocks
from pytorch_to_triton.worker.truth.compare import Comparison

from .oracles import stated_truth

SHAPES = [(40, 50), (3, 700), (700, 3), (2000,), (4, 10, 50)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "WHOLE_ELEMENTS", 1000)
    monkeypatch.setattr(blocks, "BLOCK_ELEMENTS", 300)


def judged(candidate: torch.Tensor, right: torch.Tensor) -> dict[str, Any]:
    """The statistics of a result whose truth is `right`."""
    truth, call = stated_truth(right.float(), right), CallInputs({"x": right.float()}, {})
    (found,) = Comparison({"out": output_of(candidate)}, truth, call).statistics()["outputs"]
    result: dict[str, Any] = found
    return result


def right_one(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_blocks_hold_every_element_once_and_in_order(shape: tuple[int, ...]) -> None:
    whole = torch.arange(2**12)[: torch.Size(shape).numel()].view(shape)
    parts = [block["x"] for block in blocks.blocks({"x": whole})]
    assert len(parts) > 1
    assert max(part.numel() for part in parts) <= 300
    assert torch.cat([part.reshape(-1) for part in parts]).equal(whole.reshape(-1))


@pytest.mark.parametrize("shape", SHAPES)
def test_rounding_passes_in_all_blocks(shape: tuple[int, ...]) -> None:
    found = judged(right_one(shape).float(), right_one(shape))
    assert found["failing"] == 0
    assert found["elements"] == torch.Size(shape).numel()
    assert found["meets_strict"]


@pytest.mark.parametrize("shape", SHAPES)
def test_one_wrong_element_of_the_last_block_is_found_where_it_is(shape: tuple[int, ...]) -> None:
    wrong = right_one(shape).float()
    wrong.view(-1)[-1] += 1.0
    found = judged(wrong, right_one(shape))
    assert found["failing"] == 1
    assert found["diagnostics"]["first"] == [size - 1 for size in shape]
    assert found["candidate_error"] > found["allowed_error"]


def test_blocks_of_one_value_each_are_not_constant_together() -> None:
    steps = torch.arange(40, dtype=torch.float64).view(40, 1).expand(40, 50).contiguous()
    assert not judged(steps.float(), steps)["constant"]
    assert judged(torch.ones(40, 50), torch.ones(40, 50, dtype=torch.float64))["constant"]
