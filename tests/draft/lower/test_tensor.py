"""Tensors that see the same axes in different places."""

from typing import Any

import numpy as np
import pytest

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.lower.row import ROWS, Context, load_rows
from pytorch_to_triton.draft.lower.tensor import Names, source

from ..lowering import computed

load_rows()
VECTOR = np.arange(4.0)
SQUARE = np.arange(9.0).reshape(3, 3)


def call(names: Names, op: str, *args: Any, shape: tuple[int, ...] = ()) -> Any:
    context = Context(names, tuple(map(sizes.size, shape)), "float32", "out")
    return ROWS[op].lowered(context, args, {})


def test_a_column_less_a_row_of_one_vector_is_all_differences() -> None:
    names = Names()
    x = source(names, "x", [sizes.size(4)], "float32")
    column, line = (call(names, "aten.unsqueeze.default", x, dim) for dim in (1, 0))
    found = Context(names, (), "float32", "out").pointwise("sub", column, line)
    np.testing.assert_array_equal(computed(found, {"x": VECTOR}), VECTOR[:, None] - VECTOR[None, :])


@pytest.mark.parametrize("dim", [0, 1])
def test_a_matrix_is_joined_with_its_own_transpose(dim: int) -> None:
    names = Names()
    x = source(names, "x", [sizes.size(3)] * 2, "float32")
    shape = (6, 3) if dim == 0 else (3, 6)
    turned = call(names, "aten.permute.default", x, [1, 0])
    found = call(names, "aten.cat.default", [x, turned], dim, shape=shape)
    np.testing.assert_array_equal(computed(found, {"x": SQUARE}), np.concatenate([SQUARE, SQUARE.T], dim))


def test_a_vector_indexed_by_its_own_positions_twice_is_a_matrix() -> None:
    names = Names()
    x = source(names, "x", [sizes.size(3)] * 2, "float32")
    i = source(names, "i", [sizes.size(3)], "int64")
    column, line = (call(names, "aten.unsqueeze.default", i, dim) for dim in (1, 0))
    found = call(names, "aten.index.Tensor", x, [column, line])
    order = np.array([2, -3, 1])
    np.testing.assert_array_equal(
        computed(found, {"x": SQUARE, "i": order}), SQUARE[order[:, None], order[None, :]]
    )
    rows = call(names, "aten.select.int", call(names, "aten.expand.default", i, [3, 3], shape=(3, 3)), 0, 0)
    found = call(names, "aten.index.Tensor", x, [None, rows])
    np.testing.assert_array_equal(computed(found, {"x": SQUARE, "i": order}), SQUARE[:, order])
