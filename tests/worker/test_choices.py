"""What PyTorch leaves free is the candidate's to choose, and nothing else is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.calls.gradients import with_gradients
from pytorch_to_triton.worker.calls.tensors import output_of
from pytorch_to_triton.worker.truth.compare import statistics_of

from .oracles import CASE, SEED, oracle

X = torch.tensor([[3.0, 1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
Result = tuple[Tensor, Tensor]


def best_two(x: Tensor) -> Result:
    values, indices = x.topk(2)
    return values * 2, indices


def descending(x: Tensor) -> Result:
    values, indices = x.sort(descending=True)
    return values, indices.to(torch.int32)


def stably_descending(x: Tensor) -> Result:
    values, indices = x.sort(dim=-1, descending=True, stable=True)
    return values, indices


def gathered(x: Tensor, indices: list[list[int]], *, factor: float = 1.0) -> Result:
    chosen = torch.tensor(indices)
    return x.gather(-1, chosen) * factor, chosen


def wrong_elements(
    reference: Callable[[Tensor], tuple[Tensor, ...]], ours: tuple[Tensor, ...], folder: Path, x: Tensor = X
) -> int:
    outputs = {f"out[{place}]": output_of(value) for place, value in enumerate(ours)}
    truth = oracle(reference, {"x": x}, folder).truth(CASE, SEED)
    found = statistics_of(outputs, truth, CallInputs({"x": x}, {}))
    return sum(output["failing"] for output in found["outputs"])


@pytest.mark.parametrize("indices", [[[0, 2], [0, 1]], [[4, 0], [3, 1]], [[2, 4], [4, 3]]])
def test_any_of_equal_values_is_right(indices: list[list[int]], tmp_path: Path) -> None:
    assert wrong_elements(best_two, gathered(X, indices, factor=2.0), tmp_path) == 0


def test_equal_values_may_be_sorted_in_any_order_and_as_int32(tmp_path: Path) -> None:
    values, indices = gathered(X, [[4, 2, 0, 3, 1], [1, 0, 4, 3, 2]])
    assert wrong_elements(descending, (values, indices.to(torch.int32)), tmp_path) == 0
    swapped, places = gathered(X, [[4, 2, 0, 1, 3], [1, 0, 4, 3, 2]])
    assert wrong_elements(descending, (swapped, places.to(torch.int32)), tmp_path) > 0


def test_a_choice_shows_where_its_indices_were_divided(tmp_path: Path) -> None:
    """As beams and tokens: which of the scores is the finished one follows from the choice."""

    def beams(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, indices = x.topk(2)
        return values.masked_fill(indices % 3 == 1, -1e9), indices % 3, indices // 3

    def failing(indices: list[int]) -> int:
        places = torch.tensor([indices])
        values = x.gather(-1, places).masked_fill(places % 3 == 1, -1e9)
        return wrong_elements(beams, (values, places % 3, places // 3), tmp_path, x)

    x = torch.tensor([[1.0, 5.0, 1.0, 1.0, 5.0, 5.0]])
    assert [failing(pair) for pair in ([1, 4], [4, 5], [5, 1])] == [0, 0, 0]
    assert failing([4, 3]) > 0
    assert failing([4, 4]) > 0


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("select", [torch.median, torch.nanmedian, lambda x, **how: x.kthvalue(3, **how)])
def test_any_of_equal_medians_is_right(select: Any, keepdim: bool, tmp_path: Path) -> None:
    def chosen(x: Tensor) -> Result:
        values, indices = select(x, dim=-1, keepdim=keepdim)
        return values, indices

    def ours(indices: list[list[int]]) -> Result:
        values, places = gathered(X, indices)
        return (values, places) if keepdim else (values[:, 0], places[:, 0])

    for place in (0, 2, 4):
        assert wrong_elements(chosen, ours([[place], [4 - place]]), tmp_path) == 0
    assert wrong_elements(chosen, ours([[1], [0]]), tmp_path) > 0


def test_a_stable_sort_leaves_nothing_free(tmp_path: Path) -> None:
    ours = gathered(X, [[4, 2, 0, 3, 1], [0, 1, 2, 3, 4]])
    assert wrong_elements(stably_descending, ours, tmp_path) > 0


@pytest.mark.parametrize(
    "indices",
    [[[0, 0], [0, 1]], [[0, 3], [0, 1]], [[0, -1], [0, 1]], [[0, 5], [0, 1]]],
    ids=["twice the same", "a smaller value", "counted from the end", "outside"],
)
def test_what_is_no_choice_of_pytorch_s_is_wrong(indices: list[list[int]], tmp_path: Path) -> None:
    values = torch.tensor([[6.0, 6.0], [0.0, 0.0]])
    assert wrong_elements(best_two, (values, torch.tensor(indices)), tmp_path) > 0


def test_a_choice_that_no_result_shows_is_the_first_of_equals(tmp_path: Path) -> None:
    """As of groups of which members are chosen: the sums below say which three columns they are of."""
    length = next(n for n in range(3, 200) if torch.zeros(1, n).topk(3).indices.tolist() != [[0, 1, 2]])
    numbers = torch.arange(length, dtype=torch.float32)

    def sums(x: Tensor) -> Result:
        chosen = torch.zeros_like(x).scatter(1, x.topk(3, sorted=False).indices, 1.0)
        return (chosen * numbers).sum(-1), chosen

    def failing(columns: list[int]) -> int:
        chosen = torch.zeros(1, length).index_fill(1, torch.tensor(columns), 1.0)
        return wrong_elements(sums, ((chosen * numbers).sum(-1), chosen), tmp_path, torch.zeros(1, length))

    assert failing([0, 1, 2]) == 0
    assert failing([0, 1]) > 0
    assert failing([0, 1, 2, 3]) > 0


def test_gradients_follow_the_choice(tmp_path: Path) -> None:
    cotangents = {"out[0]": torch.tensor([[1.0, 2.0], [3.0, 4.0]])}
    call = CallInputs({"x": X.clone()}, {}, cotangents)

    def last_two(inputs: CallInputs) -> Any:
        return gathered(inputs.arguments["x"], [[4, 2], [4, 3]], factor=2.0)

    outputs = {path: output_of(value) for path, value in with_gradients(last_two, call).items()}
    truth = oracle(best_two, {"x": X}, tmp_path, cotangents).truth(CASE, SEED)
    found = statistics_of(outputs, truth, CallInputs({"x": X}, {}, cotangents))
    assert {output["path"]: output["failing"] for output in found["outputs"]} == dict.fromkeys(outputs, 0)
