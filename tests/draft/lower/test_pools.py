"""Pools are PyTorch's, with all of their options."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Buffer, Cluster, Store
from pytorch_to_triton.draft.lower.row import Context, Refused
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, source
from pytorch_to_triton.draft.lower.windows import max_pool

from ..evaluate import evaluate
from ..lowering import agrees, lowered

IMAGES = {1: torch.randn(2, 3, 11), 2: torch.randn(2, 3, 7, 9), 3: torch.randn(1, 2, 5, 6, 7)}
MOVES: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 2},
    "overlapping": {"kernel_size": 3, "stride": 1},
    "padded": {"kernel_size": 3, "stride": 2, "padding": 1},
    "of one element": {"kernel_size": 1, "stride": 2},
    "rounded up": {"kernel_size": 2, "stride": 2, "ceil_mode": True},
    "padded and rounded up": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    "rounded up, but not into the padding": {"kernel_size": 2, "stride": 3, "padding": 1, "ceil_mode": True},
}
NOT_FINITE = torch.tensor([[1.0, torch.nan, 2, 3, -torch.inf, -torch.inf, -torch.inf, 5, torch.inf]])


def for_all(rank: int, moves: dict[str, Any]) -> dict[str, Any]:
    """The options with a number for each dimension."""
    return {k: [v] * rank if type(v) is int and k != "divisor_override" else v for k, v in moves.items()}


@pytest.mark.parametrize("rank", IMAGES)
@pytest.mark.parametrize("name", MOVES)
def test_a_maximum_and_its_place_are_pytorchs(rank: int, name: str) -> None:
    options = for_all(rank, MOVES[name])
    agrees(f"aten.max_pool{rank}d.default", IMAGES[rank], **options)
    if rank > 1:
        agrees(f"aten.max_pool{rank}d_with_indices.default", IMAGES[rank], **options)


@pytest.mark.parametrize("rank", IMAGES)
@pytest.mark.parametrize("counts_padding", [False, True])
@pytest.mark.parametrize("name", MOVES)
def test_a_mean_is_pytorchs(rank: int, name: str, counts_padding: bool) -> None:
    options = for_all(rank, MOVES[name])
    agrees(f"aten.avg_pool{rank}d.default", IMAGES[rank], count_include_pad=counts_padding, **options)


def test_the_divisor_of_a_mean_may_be_given() -> None:
    agrees("aten.avg_pool2d.default", IMAGES[2], [3, 2], [2, 1], [1, 0], divisor_override=5)
    agrees("aten.avg_pool3d.default", IMAGES[3], [3, 2, 1], [1, 2, 1], divisor_override=7)


def test_dilated_windows_skip_elements() -> None:
    agrees("aten.max_pool2d_with_indices.default", IMAGES[2], [3, 2], [1, 2], [1, 0], [2, 3])
    agrees("aten.max_pool1d.default", IMAGES[1], [3], [2], [1], [2], ceil_mode=True)


@pytest.mark.parametrize("padding", [0, 1])
def test_nan_wins_and_infinity_is_a_number(padding: int) -> None:
    rows = NOT_FINITE[None]
    agrees("aten.max_pool2d_with_indices.default", rows, [1, 3], [1, 1], [0, padding])
    agrees("aten.adaptive_max_pool1d.default", NOT_FINITE, [4])


def test_the_first_of_equal_elements_is_the_largest() -> None:
    agrees("aten.max_pool2d_with_indices.default", torch.zeros(1, 1, 5, 5), [3, 3], [2, 2], [1, 1])


def test_of_several_nan_the_last_is_the_largest() -> None:
    image = torch.arange(25.0).reshape(1, 5, 5)
    image[0, 1:4, 2:4] = math.nan
    agrees("aten.max_pool2d_with_indices.default", image, [3, 3], [2, 2], [1, 1])
    agrees("aten.adaptive_max_pool2d.default", image, [2, 2])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_whole_numbers_have_a_maximum(dtype: torch.dtype) -> None:
    low = torch.iinfo(dtype).min
    agrees(
        "aten.max_pool2d_with_indices.default",
        torch.full((1, 5, 5), low, dtype=dtype),
        [3, 3],
        [2, 2],
        [1, 1],
    )
    agrees("aten.max_pool2d.default", torch.arange(25).reshape(1, 5, 5).to(dtype), [3, 3], [2, 2], [1, 1])


def test_a_mean_of_whole_numbers_stays_with_pytorch() -> None:
    with pytest.raises(Refused, match="whole numbers"):
        lowered("aten.avg_pool2d.default", torch.ones(1, 4, 4, dtype=torch.int64), [2, 2])


@pytest.mark.parametrize("size", [(1, 1), (7, 9), (3, 3), (2, 5), (5, 4), (10, 4)])
def test_windows_are_as_even_as_can_be(size: tuple[int, int]) -> None:
    for operator in ("adaptive_avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"):
        agrees(f"aten.{operator}.default", IMAGES[2], list(size))


def test_adaptive_windows_have_one_or_three_dimensions_too() -> None:
    agrees("aten.adaptive_avg_pool1d.default", IMAGES[1], [4])
    agrees("aten.adaptive_max_pool1d.default", IMAGES[1], [3])
    agrees("aten.adaptive_avg_pool3d.default", IMAGES[3], [2, 3, 4])
    agrees("aten._adaptive_avg_pool3d.default", IMAGES[3], [1, 6, 1])
    agrees("aten.adaptive_max_pool3d.default", IMAGES[3], [3, 1, 3])


def test_one_image_needs_no_batch() -> None:
    agrees("aten.max_pool2d.default", IMAGES[2][0], [2, 2])
    agrees("aten.avg_pool1d.default", IMAGES[1][0], [3], [2], [1])
    agrees("aten.adaptive_avg_pool2d.default", IMAGES[2][0], [2, 2])


def test_a_padded_window_may_look_at_gathered_elements() -> None:
    names = Names()
    table = source(names, "table", (sizes.size(6),), "float32")
    ids = source(names, "ids", (sizes.size(1), sizes.size(5)), "int64")
    gathered = Tensor(ids.dims, table.at(ids.value), "float32")
    shape = (sizes.size(1), sizes.size(5))
    found = max_pool(Context(names, shape, "float32", "out"), gathered, [3], [1], [1])
    assert isinstance(found, Tensor)
    arrays = {"table": np.arange(6.0) ** 2, "ids": np.array([[4, 1, 0, 2, 5]])}
    store = Store(Buffer("out", shape, "float32"), found.indices, found.value)
    evaluate(Cluster("one", (store,)), arrays, {})
    assert arrays["out"].tolist() == [[16, 16, 4, 25, 25]]
