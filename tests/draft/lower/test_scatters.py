"""What is written into a tensor lies where PyTorch writes it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Buffer, Const, Reduce, walk
from pytorch_to_triton.draft.lower.row import ROWS, Context, Refused
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, loaded, position, source

from ..lowering import agrees, computed, lowered

X = torch.randn(4, 6, 5)
Y = torch.randn(3, 4)
WHOLE = torch.arange(12).reshape(3, 4)
IDS = torch.randint(6, (4, 9, 5))
FEWER = torch.randint(6, (2, 3, 4))
SOURCE = torch.randn(4, 9, 5)
BACK = torch.tensor([-1, 2, -4, 2])
COLUMN = torch.tensor([[1], [-3]])
ROW = torch.tensor([0, 2, 2])
NONE = torch.tensor([], dtype=torch.int64)
NAN = torch.tensor([[float("nan"), 1.0, -2.0]])
TRIANGLES: dict[str, Any] = {"tril": (5, 5, -1), "triu": (5, 5, 2)}
CALLS: dict[str, tuple[Any, ...]] = {
    "copy": ("aten.copy.default", X, Y[0, :1]),
    "copy to whole numbers": ("aten.copy.default", WHOLE, Y * 9),
    "slice_scatter": ("aten.slice_scatter.default", X, X[:, :2] * 2, 1, 3, 5),
    "slice_scatter to the end": ("aten.slice_scatter.default", X, X[:, :2] * 2, 1, -2, 2**63 - 1),
    "slice_scatter of all": ("aten.slice_scatter.default", X, X * 2, 0, 0, 2**63 - 1),
    "slice_scatter of nothing": ("aten.slice_scatter.default", X, X[:0], 0, 3, 2),
    "slice_scatter by steps": ("aten.slice_scatter.default", X, X[:, :3] * 2, 1, 0, 5, 2),
    "slice_scatter by steps from later": ("aten.slice_scatter.default", X, X[:, :2] * 2, 1, 1, 6, 3),
    "slice_scatter from before the start": ("aten.slice_scatter.default", X, X[:3] * 2, 0, -9, 3),
    "masked_scatter": ("aten.masked_scatter.default", X, X > 0, SOURCE),
    "masked_scatter of whole numbers": ("aten.masked_scatter.default", WHOLE, WHOLE % 2 == 0, WHOLE * 9),
    "masked_scatter of booleans": ("aten.masked_scatter.default", WHOLE > 4, WHOLE % 2 == 0, WHOLE > 2),
    "masked_scatter by rows": ("aten.masked_scatter.default", X, X[:, :1, :1] > 0, torch.randn(500)),
    "scatter a number": ("aten.scatter.value", X, 1, IDS[:, :3], 7),
    "scatter a number in a corner": ("aten.scatter.value", WHOLE, -1, torch.tensor([[3, 0]]), 70),
    "scatter into booleans": ("aten.scatter.value", WHOLE > 4, 0, torch.tensor([[0, 0]]), 1),
    "scatter a column": ("aten.scatter.src", X, 2, IDS[:, :6, :1] % 5, SOURCE),
    "scatter_add": ("aten.scatter_add.default", X, 1, IDS, SOURCE),
    "scatter_add in a corner": ("aten.scatter_add.default", X, 1, FEWER, SOURCE),
    "scatter_add of nothing": ("aten.scatter_add.default", X, 1, IDS[:, :0], SOURCE),
    "scatter_add of whole numbers": ("aten.scatter_add.default", WHOLE, 1, WHOLE % 4, WHOLE),
    "scatter_add of itself": ("aten.scatter_add.default", WHOLE[:, :3], 0, WHOLE[:, :3] % 3, WHOLE[:, :3]),
    "the sum": ("aten.scatter_reduce.two", X, 1, IDS, SOURCE, "sum"),
    "the product": ("aten.scatter_reduce.two", X, 1, FEWER, SOURCE, "prod"),
    "the largest": ("aten.scatter_reduce.two", X, 1, IDS, SOURCE, "amax"),
    "the smallest, with NaN": (
        "aten.scatter_reduce.two",
        Y[:, :2],
        1,
        torch.tensor([[1, 0, 1]]),
        NAN,
        "amin",
    ),
    "the largest whole number": ("aten.scatter_reduce.two", WHOLE, 1, WHOLE % 4, -WHOLE, "amax"),
    "the mean": ("aten.scatter_reduce.two", X, 1, IDS, SOURCE, "mean"),
    "index_reduce": ("aten.index_reduce.default", X, -1, BACK % 5, X[..., :4], "amin"),
    "index_reduce by the mean": ("aten.index_reduce.default", X, 1, ROW, X[:, 3:], "mean"),
    "index_reduce of a number": (
        "aten.index_reduce.default",
        torch.tensor(2.0),
        0,
        torch.tensor([0]),
        torch.tensor(3.0),
        "prod",
    ),
    "a number at a mask": ("aten.index_put.default", X, [X > 0], torch.tensor(2.0)),
    "a row at a mask": ("aten.index_put.default", X, [X[..., 0] > 0], X[0, 0]),
    "a number at a mask in the middle": (
        "aten.index_put.default",
        X,
        [None, X[0, :, 0] > 0],
        torch.tensor([2.0]),
    ),
    "columns at a mask": ("aten.index_put.default", X, [None, X[0, :, 0] > 0], X[:, :1, :1]),
    "a number added at a mask": ("aten.index_put.default", X, [X > 0], torch.tensor(2.0), True),
    "a number at indices": ("aten.index_put.default", X, [BACK, None, BACK], torch.tensor(2.0)),
    "a row at indices": ("aten.index_put.default", X, [None, ROW], X[0, 0]),
    "a row at one index": ("aten.index_put.default", X, [None, torch.tensor(-2)], X[:, 0] * 2),
    "a row at an index of one": ("aten.index_put.default", X, [torch.tensor([2])], X[:1] * 2),
    "rows added at indices": ("aten.index_put.default", X, [None, ROW], X[:, :3], True),
    "numbers added at pairs": ("aten.index_put.default", X, [BACK, None, BACK], X[:, :, 0], True),
    "numbers added at a grid": ("aten.index_put.default", X, [None, COLUMN, BACK], X[:, :2, :4], True),
    "whole numbers added": ("aten.index_put.default", WHOLE, [ROW], WHOLE, True),
    "added by itself": ("aten.index_put.default", ROW, [ROW], ROW, True),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_scatter_writes_what_pytorch_writes(name: str) -> None:
    agrees(*CALLS[name])


def test_a_scatter_leaves_out_the_elements_own_value() -> None:
    for how in ("sum", "prod", "amax", "amin"):
        agrees("aten.scatter_reduce.two", X, 1, FEWER, SOURCE, how, include_self=False)
    for how in ("prod", "amax", "mean"):
        agrees("aten.index_reduce.default", X, 1, ROW, X[:, 3:], how, include_self=False)


MANY = torch.arange(4097)
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "two values for one element": (("aten.scatter.src", X, 1, IDS, SOURCE), "which of two values stays"),
    "rows for one row": (("aten.index_put.default", X, [ROW], X[:3]), "which of two values stays"),
    "many to many": (("aten.index_put.default", MANY, [MANY], MANY, True), "it scatters$"),
    "values by a mask": (
        ("aten.index_put.default", MANY, [MANY > 60], MANY[61:]),
        "only known from the mask",
    ),
    "a mean of whole numbers": (
        ("aten.scatter_reduce.two", WHOLE, 1, WHOLE % 4, WHOLE, "mean"),
        "it scatters by the mean of whole numbers",
    ),
    "booleans": (("aten.index_put.default", MANY[:3] > 0, [ROW], ROW > 0, True), "adds up booleans"),
    "a number": (("aten.scatter.value", torch.tensor(1), 0, torch.tensor([0]), 2), "into a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_element_could_find_soon_is_refused(name: str) -> None:
    call, why = REFUSED[name]
    with pytest.raises(Refused, match=why):
        lowered(*call)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("rest", ["one place", "some places", "the same place"])
def test_nobody_searches_along_a_dimension_that_is_counted_through(rest: str, accumulate: bool) -> None:
    """As of `x[torch.arange(M), labels] = values`: there are more rows than an element would look among."""
    rows, many = torch.arange(70), torch.randint(0, 9, (70, 2))
    many[:, 1] = (many[:, 0] + 4) % 9  # No place is written to twice.
    given, x = [rows, many[:, 0]], torch.randn(70, 9)
    values = torch.randn(70)
    if rest == "some places":
        given, values = [rows[:, None], many], torch.tensor(2.0)
    elif rest == "the same place":
        given, x = [rows, rows], torch.randn(70, 70)
    names, arrays = Names(), {"x": x.numpy(), "values": values.numpy(), "columns": many.numpy()}
    dims = names.dims([sizes.size(70)])
    made = Tensor(dims, position(dims[0]), "int64")
    counted = loaded(Buffer("rows", made.shape, "int64"), made.dims)
    into, source_, columns = (
        source(names, n, list(map(sizes.size, a.shape)), str(a.dtype)) for n, a in arrays.items()
    )
    first = replace(columns, dims=columns.dims[:1], value=columns.at(*columns.indices[:1], Const(0)))
    wide = replace(counted, dims=(*counted.dims, ()))
    indices = {
        "one place": [counted, first],
        "some places": [wide, columns],
        "the same place": [counted, counted],
    }[rest]
    context = Context(names, into.shape, "float32", "out", made={"rows": made})
    put = ROWS["aten.index_put.default"].lowered(context, [into, indices, source_, accumulate], {})
    assert isinstance(put, Tensor)
    assert not any(isinstance(v, Reduce) for v in walk(put.value))
    expected = x.index_put(tuple(given), values, accumulate)
    found = computed(put, {**arrays, "rows": rows.numpy()})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", TRIANGLES)
def test_nobody_searches_for_the_places_of_a_triangle(name: str, accumulate: bool) -> None:
    given = getattr(torch, f"{name}_indices")(*TRIANGLES[name])
    x, values = torch.randn(3, 5, 5, 2), torch.randn(3, given.shape[1], 2)
    names = Names()
    context = Context(names, tuple(map(sizes.size, given.shape)), "int64", "indices")
    made = ROWS[f"aten.{name}_indices.default"].lowered(context, TRIANGLES[name], {})
    assert isinstance(made, Tensor)
    held = loaded(Buffer("indices", made.shape, "int64"), made.dims)
    pairs = [replace(held, dims=held.dims[1:], value=held.at(Const(i), *held.indices[1:])) for i in (0, 1)]
    into, source_ = (
        source(names, n, list(map(sizes.size, t.shape)), "float32")
        for n, t in {"x": x, "values": values}.items()
    )
    context = Context(names, into.shape, "float32", "out", made={"indices": made})
    put = ROWS["aten.index_put.default"].lowered(context, [into, [None, *pairs], source_, accumulate], {})
    assert isinstance(put, Tensor)
    assert not any(isinstance(v, Reduce) or v == held.value for v in walk(put.value))
    expected = x.index_put((torch.arange(3)[:, None], *given), values, accumulate)
    found = computed(put, {"x": x.numpy(), "values": values.numpy()})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
