"""Whole numbers that PyTorch gives on a GPU are right on a CPU too, and no others."""

from pathlib import Path

import torch
from torch import Tensor

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.tensors import output_of
from pytorch_to_triton.worker.truth.compare import statistics_of

from .oracles import CASE, SEED, oracle

X = torch.tensor([3 / 128, 3 / 64, 0.0])
"""The first lies half way to the largest: 127.5 of 255 steps, or a little less."""


def steps(x: Tensor) -> Tensor:
    return (x / (x.amax() / 255)).round().to(torch.uint8)


def by_reciprocal(x: Tensor, *, half: int) -> Tensor:
    scale = x.amax() * torch.tensor(255.0).reciprocal()
    return (x / scale).round().to(torch.uint8) + torch.tensor([half, 0, 0], dtype=torch.uint8)


def failing(ours: Tensor, folder: Path) -> int:
    truth = oracle(steps, {"x": X}, folder).truth(CASE, SEED)
    found = statistics_of({"out": output_of(ours)}, truth, CallInputs({"x": X}, {}))
    return int(found["outputs"][0]["failing"])


def test_a_division_by_a_number_may_be_a_product_with_its_reciprocal(tmp_path: Path) -> None:
    assert not torch.equal(by_reciprocal(X, half=0), steps(X))
    assert failing(by_reciprocal(X, half=0), tmp_path) == 0
    assert failing(by_reciprocal(X, half=2), tmp_path) == 1
