"""Entries that may come in any order are compared as a whole, and nothing else of them is free."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.tensors import output_of
from pytorch_to_triton.worker.truth.compare import statistics_of
from pytorch_to_triton.worker.truth.order import ComparisonUnusable, in_one_order, refuse_unusable
from pytorch_to_triton.worker.wire.comparison import Unordered

from .oracles import CASE, SEED, oracle

X = torch.tensor([[3.0, 1.0, 3.0, 2.0, 3.0], [0.5, 4.0, 0.25, 9.0, 0.0]])
PAIRS = (Unordered(results=("out[0]", "out[1]")),)
Result = tuple[Tensor, ...]


def best_two(x: Tensor) -> Result:
    values, indices = x.topk(2)
    return indices, values.exp()


def boxes(x: Tensor) -> Result:
    return x[:, :4].reshape(1, 2, 4), x.sum(-1)[None]


def taken(indices: list[list[int]]) -> Result:
    chosen = torch.tensor(indices)
    return chosen, X.gather(-1, chosen).exp()


def failing(
    ours: Result,
    folder: Path,
    unordered: tuple[Unordered, ...] = PAIRS,
    reference: Callable[[Tensor], Result] = best_two,
) -> int:
    outputs = {f"out[{place}]": output_of(value) for place, value in enumerate(ours)}
    free = dataclasses.replace(oracle(reference, {"x": X}, folder), unordered=unordered)
    found = statistics_of(outputs, free.truth(CASE, SEED), CallInputs({"x": X}, {}))
    return sum(output["failing"] for output in found["outputs"])


def test_pairs_in_another_order_are_right_where_that_is_declared(tmp_path: Path) -> None:
    swapped = taken([[2, 0], [1, 3]])
    assert failing(swapped, tmp_path) == 0
    assert failing(swapped, tmp_path, ()) > 0


def test_another_of_equal_values_is_right_in_any_order_too(tmp_path: Path) -> None:
    assert failing(taken([[4, 2], [1, 3]]), tmp_path) == 0


@pytest.mark.parametrize("row", [[3, 3], [1, 0], [3, 4]], ids=["twice", "another", "a smaller one"])
def test_other_members_are_wrong(row: list[int], tmp_path: Path) -> None:
    assert failing(taken([[0, 2], row]), tmp_path) > 0


def test_pairs_that_are_torn_apart_are_wrong(tmp_path: Path) -> None:
    indices, weights = taken([[0, 2], [1, 3]])
    assert failing((indices, weights.flip(-1)), tmp_path) > 0
    alone = (Unordered(results=("out[0]",)), Unordered(results=("out[1]",)))
    assert failing((indices, weights.flip(-1)), tmp_path, alone) == 0


def test_an_entry_of_several_numbers_stays_together(tmp_path: Path) -> None:
    free = (Unordered(results=("out[0]", "out[1]"), dim=1),)
    values, sums = boxes(X)
    assert failing((values.flip(1), sums.flip(1)), tmp_path, free, boxes) == 0
    assert failing((values.flip(1), sums), tmp_path, free, boxes) > 0
    mixed = torch.cat([values[..., :2].flip(1), values[..., 2:]], dim=-1)
    assert failing((mixed, sums), tmp_path, free, boxes) > 0


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.complex64, torch.bool, torch.bfloat16])
def test_values_of_every_kind_are_put_into_one_order(dtype: torch.dtype) -> None:
    outputs = {"out": output_of(torch.tensor([[1.0, 0.0], [0.0, 1.0]]).to(dtype))}
    ordered = in_one_order(outputs, [Unordered(results=("out",))])["out"].tensor
    assert ordered is not None
    assert ordered.to(torch.complex64).real.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_empty_results_have_no_order(tmp_path: Path) -> None:
    empty = lambda x: (x[:0], x.sum(-1)[:0])  # noqa: E731
    empty.__name__ = "empty"
    free = (Unordered(results=("out[0]", "out[1]"), dim=0),)
    assert failing(empty(X), tmp_path, free, empty) == 0


@pytest.mark.parametrize(
    ("free", "problem"),
    [
        (Unordered(results=("out[0]", "out[2]")), r"names out\[2\], and the results are out\[0\], out\[1\]"),
        (Unordered(results=("out[0]",), dim=3), "as many entries in each result"),
        (Unordered(results=("out[0]", "out[1]"), dim=0), "as many entries in each result"),
    ],
)
def test_a_comparison_that_does_not_fit_the_results_is_refused(free: Unordered, problem: str) -> None:
    outputs = {"out[0]": output_of(torch.ones(2, 3)), "out[1]": output_of(torch.ones(5, 3))}
    with pytest.raises(ComparisonUnusable, match=problem):
        refuse_unusable([free], outputs)
