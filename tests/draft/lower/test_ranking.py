"""The best few elements, sorted rows and medians are PyTorch's, with infinities, NaN and ties among them."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

INF, NAN = float("inf"), float("nan")
RANDOM = torch.Generator().manual_seed(0)
X = torch.randn(3, 9, 4, generator=RANDOM)
ODD = torch.tensor([[1.0, NAN, -INF, 3.0, INF], [-INF, 2.0, NAN, 0.0, -1.0]])
WHOLE = torch.tensor([[3, -7, 2**40, 0, 5], [1, 2, -(2**63), 4, 8]])
DISTINCT = torch.randperm(24, generator=RANDOM).view(4, 6)
NUMBER = torch.tensor(-2.5)


def with_ties() -> Iterator[torch.Tensor]:
    """Few values, with both zeros, infinities and NaN, in shapes with a size of 1 among them."""
    for shape in ((3, 9, 4), (2, 1, 3), (7,), (1,)):
        odd = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0])
        yield odd[torch.randint(0, len(odd), shape, generator=RANDOM)]
    yield torch.randint(-3, 3, (4, 5), generator=RANDOM)
    yield torch.rand(3, 5, generator=RANDOM) > 0.5


def test_the_best_elements_come_in_their_order_with_their_places() -> None:
    for largest in (True, False):
        for k in (1, 2, 6, 7, 9):
            agrees("aten.topk.default", X, k, 1, largest)
        agrees("aten.topk.default", X, 3, -1, largest)
        for x in (ODD, WHOLE):
            for k in (1, 3, 5):
                agrees("aten.topk.default", x, k, -1, largest)
    agrees("aten.topk.default", X[:, :1], 1, 1)
    agrees("aten.topk.default", NUMBER, 1)


def test_no_element_is_taken_twice_where_all_are_infinite() -> None:
    worst = {True: -INF, False: INF}
    for largest, value in worst.items():
        values, places = lowered("aten.topk.default", torch.full((2, 5), value), 4, -1, largest)
        assert np.array_equal(values, np.full((2, 4), value))
        assert [len({*row}) for row in places.tolist()] == [4, 4]
        assert places.max() < 5


def test_rows_are_sorted_stably_with_nan_as_the_largest() -> None:
    for x in with_ties():
        for dim in range(x.ndim):
            for descending in (False, True):
                agrees("aten.sort.stable", x, stable=True, dim=dim, descending=descending)
    agrees("aten.sort.default", X, 1, True)
    agrees("aten.sort.default", DISTINCT)
    agrees("aten.sort.default", NUMBER)


def test_an_element_of_a_rank_is_found_with_its_place() -> None:
    for x in (X, DISTINCT, X[:, :1]):
        for dim in (0, -1):
            for k in {1, x.shape[dim]}:
                agrees("aten.kthvalue.default", x, k, dim, keepdim=k == 1)
    agrees("aten.kthvalue.default", NUMBER, 1)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_a_median_is_the_lower_one_and_nan_wherever_pytorch_says_so(name: str) -> None:
    some_nan = torch.where(torch.rand(X.shape, generator=RANDOM) < 0.3, NAN, X)
    for x in (X, some_nan, DISTINCT, X[:, :1]):
        for keepdim in (False, True):
            agrees(f"aten.{name}.dim", x, 1, keepdim)
        agrees(f"aten.{name}.default", x)
    agrees(f"aten.{name}.default", torch.full((2, 4), NAN))
    agrees(f"aten.{name}.dim", torch.full((2, 1), NAN), 1)
    agrees(f"aten.{name}.dim", NUMBER, 0)
    agrees(f"aten.{name}.default", NUMBER)


def test_long_rows_are_left_to_pytorch_where_there_are_many() -> None:
    lowered("aten.kthvalue.default", torch.zeros(2, 100), 3)
    for op, arguments in (("sort", ()), ("topk", (7,)), ("kthvalue", (7,))):
        with pytest.raises(Refused, match="it sorts long rows"):
            lowered(f"aten.{op}.default", torch.zeros(2000, 100), *arguments)
