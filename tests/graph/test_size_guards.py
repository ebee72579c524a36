"""Which sizes a trace holds for: what the function asks of them, not what torch asks to compare strides."""

import pytest

from pytorch_to_triton.worker.tracing.size_guards import POINTS, SIZES, sampled

from .conftest import TracingText

pytestmark = pytest.mark.anyio

HEAD = """import torch

INPUTS = {"x": "float32[M, N]", "row": "float32[N]", "index": "int64[M, N] in 0..M"}
DIMS = {"M": [3], "N": [2, 9]}


def f(x, row, index):
    """
# The next token's score, differences of neighbours, and halves of a row.
PARTS = """half, scores = x.shape[-1] // 2, x[:, :-1].log_softmax(0)
    return (
        torch.gather(scores, 0, index[:, 1:]).sum(1),
        row[1:] - row[:-1],
        (x[:, 1:] - x[:, :-1]).softmax(-1),
        x[:, :half].log_softmax(0),
        x[:, half:].log_softmax(0),
        x[None, :, :half].sigmoid().sum(-1) + x[None, :, half:].sum(-1),
    )
"""
ASKED = {
    "return x[:, :5].softmax(-1)": ("N >= 5",),
    "return row[1:][:4] * 2.0": ("N >= 5",),
    "return x[:, -x.shape[0] :].sum(1)": ("M <= N",),
    "return x[: x.shape[1]].sum(1)": ("N > M",),
    "return x.exp() if x.shape[1] // 2 > 1 else x * 2.0": ("N // 2 > 1",),
    "return x.exp() if x.shape[1] > 7 else x * 2.0": ("N > 7",),
    "return x.exp() if x.shape[1] == 1 else x * 2.0": ("N != 1",),
    "return x.exp() if x.shape[0] < 2 or x.shape[1] > 0 else x * 2.0": ("M >= 2",),
}


RANKS = {
    "x.squeeze()": ("M != 1", "N != 1"),
    "x[:, None].squeeze(1) * 2.0": (),
    "x.squeeze(0).exp()": ("M != 1",),
    "torch.nn.functional.max_pool2d(x[None], 2).squeeze()": ("M // 2 != 1", "N // 2 != 1"),
}


async def test_a_part_of_a_dim_may_have_one_element(traced: TracingText) -> None:
    found = await traced(HEAD.replace("float32", "float32|bfloat16", 1) + PARTS)
    assert found.graph.guards == ()
    assert found.branches == ()


@pytest.mark.parametrize("body", ASKED)
async def test_what_the_function_asks_of_a_size_stays(body: str, traced: TracingText) -> None:
    found = await traced(f"{HEAD}{body}\n")
    assert found.graph.guards == ASKED[body]


@pytest.mark.parametrize("view", ["4, N // 4).sum(-1)", "N // 4, 4).sum(1)"])
async def test_a_function_of_multiples_and_of_a_larger_dim_is_traced_at_such_sizes(
    view: str, traced: TracingText
) -> None:
    head = HEAD.replace('"M": [3], "N": [2, 9]', '"M": [1, 5], "N": [8, 32]')
    quarters = f"N = x.shape[1]\n    y = x.view(len(x), {view}"
    body = f"{quarters}\n    return y * x[:, x.shape[1] - len(x), None]"
    found = await traced(f"{head}{body}\n")
    assert [g for g in found.graph.guards if " == " in g] == ["N % 4 == 0"]
    assert "-M + N >= 0" in found.graph.guards


@pytest.mark.parametrize("body", RANKS)
async def test_sizes_that_squeeze_would_drop_are_not_one(body: str, traced: TracingText) -> None:
    found = await traced(f"{HEAD}return {body}\n")
    assert found.graph.guards == RANKS[body]


def test_conditions_on_many_sizes_are_compared_at_as_many_points_as_those_on_few() -> None:
    for count in (3, 9):
        points = list(sampled(count))
        assert len(points) <= 2 * POINTS
        assert len(set(points)) == len(points)
        assert all({point[place] for point in points} == set(SIZES) for place in range(count))
