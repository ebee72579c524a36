"""What is read by index is what PyTorch reads."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

X = torch.randn(4, 6, 5)
SQUARE = torch.randn(5, 5)
IDS = torch.tensor([[3, 0, 3], [1, 2, 0]])
BACK = torch.tensor([-1, 2, -4, 0])
COLUMN = torch.tensor([[1], [-3]])
LIMITS = torch.tensor([-1.0, 0.0, 0.5, 0.5, torch.inf])
CALLS: dict[str, tuple[Any, ...]] = {
    "embedding": ("aten.embedding.default", SQUARE, IDS, 1),
    "embedding of one token": ("aten.embedding.default", SQUARE, torch.tensor(4)),
    "index_select": ("aten.index_select.default", X, -2, torch.tensor([5, 0, 0])),
    "index_select by one number": ("aten.index_select.default", X, 1, torch.tensor(2)),
    "index_select by none": ("aten.index_select.default", X, 0, torch.tensor([], dtype=torch.int64)),
    "index_select by 32 bits": ("aten.index_select.default", X, 0, torch.tensor([2, 1], dtype=torch.int32)),
    "gather": ("aten.gather.default", X, 1, torch.randint(6, (4, 3, 5))),
    "gather from less": ("aten.gather.default", X, -1, torch.randint(5, (2, 6, 7))),
    "gather of a label": ("aten.gather.default", SQUARE, 1, torch.tensor([[4], [0], [2], [2], [1]])),
    "gather of booleans": ("aten.gather.default", SQUARE > 0, 0, torch.randint(5, (3, 4))),
    "gather from a number": ("aten.gather.default", torch.tensor(3.0), 0, torch.tensor(0)),
    "one index": ("aten.index.Tensor", X, [IDS]),
    "one index from the end": ("aten.index.Tensor", X, [None, BACK]),
    "two indices side by side": ("aten.index.Tensor", X, [None, COLUMN, BACK]),
    "two indices that meet": ("aten.index.Tensor", X, [BACK, None, BACK]),
    "all dimensions": ("aten.index.Tensor", X, [BACK, BACK, COLUMN]),
    "one number": ("aten.index.Tensor", X, [None, torch.tensor(-2)]),
    "buckets": ("aten.bucketize.Tensor", X, LIMITS),
    "buckets closed on the other side": (
        "aten.bucketize.Tensor",
        LIMITS.repeat(2, 1),
        LIMITS,
        {"right": True},
    ),
    "buckets of whole numbers": ("aten.bucketize.Tensor", IDS, torch.tensor([0, 1, 3]), {"out_int32": True}),
    "buckets of a number": ("aten.bucketize.Tensor", torch.tensor(0.5), LIMITS),
    "a place in each row": ("aten.searchsorted.Tensor", SQUARE.sort(-1)[0], SQUARE[:, :2], {"side": "right"}),
    "a place in the order that another tensor gives": (
        "aten.searchsorted.Tensor",
        torch.stack([SQUARE[:, 0], SQUARE[:, 1]]),
        SQUARE[:2, 2:],
        {"sorter": torch.stack([SQUARE[:, 0], SQUARE[:, 1]]).argsort(-1)},
    ),
    "each as often as said": (
        "aten.repeat_interleave.Tensor",
        torch.tensor([0, 1, 2, 3, 0, 2]),
        {"output_size": 8},
    ),
    "one as often as said": ("aten.repeat_interleave.Tensor", torch.tensor([3]), {"output_size": 3}),
    "a place in one row": ("aten.searchsorted.Tensor", LIMITS, SQUARE),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_gather_reads_what_pytorch_reads(name: str) -> None:
    *arguments, last = CALLS[name]
    keywords, arguments = (last, arguments) if isinstance(last, dict) else ({}, [*arguments, last])
    agrees(*arguments, **keywords)


def test_what_is_not_a_number_comes_after_all_limits() -> None:
    agrees("aten.bucketize.Tensor", torch.tensor([torch.nan, 0.2]), LIMITS)


def test_a_gather_by_a_mask_is_refused() -> None:
    with pytest.raises(Refused, match="how much a mask selects is only known from the data"):
        lowered("aten.index.Tensor", X, [X > 0])
