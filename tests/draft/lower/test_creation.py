"""Tensors made from nothing hold what PyTorch's hold."""

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

X = torch.randn(3, 4, 5)
WHOLE = torch.tensor([[0, 2, 1], [4, 3, 0]])
DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)


def test_constants_have_every_shape_and_dtype() -> None:
    for dtype in DTYPES:
        agrees("aten.full.default", [3, 1, 2], 1, dtype=dtype)
        agrees("aten.full_like.default", X, 2.0, dtype=dtype)
        agrees("aten.scalar_tensor.default", 1, dtype=dtype)
    agrees("aten.full.default", [2], -1.5)
    agrees("aten.full.default", [], True)
    agrees("aten.full_like.default", X, float("-inf"))
    with pytest.raises(Refused, match="complex64"):
        lowered("aten.full.default", [2], 0, dtype=torch.complex64)


def test_what_is_undefined_is_zero() -> None:
    """PyTorch's memory holds anything: of that, the shape and the dtype are compared."""
    (found,) = lowered("aten.empty.memory_format", [2, 3], dtype=torch.int32)
    assert found.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_ranges_start_and_step_as_asked() -> None:
    agrees("aten.arange.start_step", 0, 7)
    agrees("aten.arange.start_step", 0, 1, dtype=torch.float32)
    agrees("aten.arange.start_step", 10, -3, -2)
    agrees("aten.arange.start_step", 0.5, 3, 0.25)


def test_triangles_are_cut_where_asked() -> None:
    for name in ("tril", "triu"):
        for diagonal in (0, 1, -1, 3, -4, 9):
            for x in (X, WHOLE, X[0] > 0, X[:, :1]):
                agrees(f"aten.{name}.default", x, diagonal)


def test_the_places_of_triangles_are_listed_row_by_row() -> None:
    for size in (1, 2, 3, 27, 200):
        for offset in (0, 1, 2):
            agrees("aten.tril_indices.default", size, size, -offset)
            agrees("aten.triu_indices.default", size, size, offset, dtype=torch.int32)
    with pytest.raises(Refused, match="cut off"):
        lowered("aten.tril_indices.default", 4, 4, 1)
    with pytest.raises(Refused, match="cut off"):
        lowered("aten.triu_indices.default", 4, 5, 0)


def test_one_hot_marks_the_class() -> None:
    agrees("aten.one_hot.default", WHOLE, 5)
    agrees("aten.one_hot.default", torch.zeros(3, dtype=torch.int64), 1)
    with pytest.raises(Refused, match="depends on the values"):
        lowered("aten.one_hot.default", WHOLE)
