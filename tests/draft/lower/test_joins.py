"""Joined, repeated and diagonal tensors are PyTorch's."""

import pytest
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Load, walk
from pytorch_to_triton.draft.lower.joins import cat
from pytorch_to_triton.draft.lower.row import Context
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, source

from ..lowering import agrees

X = torch.randn(4, 6, 5)
Y = torch.randn(3, 4)
SQUARE = torch.randn(4, 4)
WHOLE = torch.arange(12).reshape(3, 4)
CALLS = {
    "cat": ("aten.cat.default", [X, X[:1], X[:2] * 2]),
    "cat of the last dimension": ("aten.cat.default", [Y, Y[:, :1], Y[:, :1] + 1, Y], -1),
    "cat of one": ("aten.cat.default", [X], 1),
    "cat with nothing": ("aten.cat.default", [torch.tensor([]), Y, Y[:0], Y]),
    "cat of nothing": ("aten.cat.default", [torch.tensor([]), torch.tensor([])]),
    "cat of transposes": ("aten.cat.default", [SQUARE, SQUARE.t()], 1),
    "cat of kinds": ("aten.cat.default", [Y, WHOLE, WHOLE > 3]),
    "cat of widths": ("aten.cat.default", [WHOLE.int(), WHOLE, WHOLE > 3]),
    "cat of booleans": ("aten.cat.default", [WHOLE > 3, WHOLE < 2], 1),
    "roll": ("aten.roll.default", X, [2, -1], [0, 2]),
    "roll round and round": ("aten.roll.default", X, [-13, 11], [1, -1]),
    "roll all": ("aten.roll.default", X, [7]),
    "roll nothing": ("aten.roll.default", Y[:0], [1], [0]),
    "repeat": ("aten.repeat.default", Y, [2, 1, 3]),
    "repeat to nothing": ("aten.repeat.default", Y, [0, 2]),
    "diagonal": ("aten.diagonal.default", X, 1, 0, 2),
    "diagonal below": ("aten.diagonal.default", X, -2, 1, -1),
    "diagonal in a corner": ("aten.diagonal.default", Y, 3),
    "diagonal_scatter": ("aten.diagonal_scatter.default", X, X[:, :, 0].t() * 2, -1, 2, 0),
    "unfold": ("aten.unfold.default", X, 1, 3, 2),
    "unfold into one": ("aten.unfold.default", X, -1, 5, 1),
    "unfold by ones": ("aten.unfold.default", Y, 0, 1, 1),
    "unfold of a number": ("aten.unfold.default", torch.tensor(2.0), 0, 1, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_join_is_pytorchs(name: str) -> None:
    agrees(*CALLS[name])


def test_each_part_of_a_cat_is_read_only_where_it_lies() -> None:
    names = Names()
    parts = [source(names, name, [sizes.symbol(name.upper()), sizes.size(3)], "float32") for name in "abc"]
    context = Context(names, (sizes.size("A + B + C"), sizes.size(3)), "float32", "out")
    found = cat(context, parts)
    assert isinstance(found, Tensor)
    assert all(v.where is not None for v in walk(found.value) if isinstance(v, Load))
