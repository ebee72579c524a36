"""The best few elements are PyTorch's, with infinities, NaN and ties among them."""

import numpy as np
import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

INF, NAN = float("inf"), float("nan")
X = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(0))
ODD = torch.tensor([[1.0, NAN, -INF, 3.0, INF], [-INF, 2.0, NAN, 0.0, -1.0]])
WHOLE = torch.tensor([[3, -7, 2**40, 0, 5], [1, 2, -(2**63), 4, 8]])


def test_the_best_elements_come_in_their_order_with_their_places() -> None:
    for largest in (True, False):
        for k in (1, 2, 6):
            agrees("aten.topk.default", X, k, 1, largest)
        agrees("aten.topk.default", X, 3, -1, largest)
        for x in (ODD, WHOLE):
            for k in (1, 3, 5):
                agrees("aten.topk.default", x, k, -1, largest)
    agrees("aten.topk.default", X[:, :1], 1, 1)
    agrees("aten.topk.default", torch.tensor(-2.5), 1)


def test_no_element_is_taken_twice_where_all_are_infinite() -> None:
    worst = {True: -INF, False: INF}
    for largest, value in worst.items():
        values, places = lowered("aten.topk.default", torch.full((2, 5), value), 4, -1, largest)
        assert np.array_equal(values, np.full((2, 4), value))
        assert [len({*row}) for row in places.tolist()] == [4, 4]
        assert places.max() < 5


def test_many_elements_are_left_to_pytorch() -> None:
    with pytest.raises(Refused, match="more than 6 elements"):
        lowered("aten.topk.default", X, 7, 1)
