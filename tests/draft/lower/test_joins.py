"""Joined, repeated and diagonal tensors are PyTorch's."""

import pytest
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Load, walk
from pytorch_to_triton.draft.lower.joins import cat
from pytorch_to_triton.draft.lower.row import ROWS, Context, Refused
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
    "stack": ("aten.stack.default", [Y, Y + 1, Y + 2], 1),
    "stack at the end": ("aten.stack.default", [Y, -Y], -1),
    "stack of one": ("aten.stack.default", [Y]),
    "roll": ("aten.roll.default", X, [2, -1], [0, 2]),
    "roll round and round": ("aten.roll.default", X, [-13, 11], [1, -1]),
    "roll all": ("aten.roll.default", X, [7]),
    "roll nothing": ("aten.roll.default", Y[:0], [1], [0]),
    "repeat": ("aten.repeat.default", Y, [2, 1, 3]),
    "repeat to nothing": ("aten.repeat.default", Y, [0, 2]),
    "repeat_interleave": ("aten.repeat_interleave.self_int", Y, 3, 0),
    "repeat_interleave of all": ("aten.repeat_interleave.self_int", Y, 2),
    "unbind": ("aten.unbind.int", X, -1),
    "split": ("aten.split.Tensor", X, 4, 1),
    "split evenly": ("aten.split.Tensor", X, 2),
    "split of little": ("aten.split.Tensor", Y, 10, 1),
    "diagonal": ("aten.diagonal.default", X, 1, 0, 2),
    "diagonal below": ("aten.diagonal.default", X, -2, 1, -1),
    "diagonal in a corner": ("aten.diagonal.default", Y, 3),
    "diag_embed": ("aten.diag_embed.default", Y),
    "diag_embed above": ("aten.diag_embed.default", Y, 2, 0, 1),
    "diag_embed below": ("aten.diag_embed.default", WHOLE, -1, 2, 0),
    "diagonal_scatter": ("aten.diagonal_scatter.default", X, X[:, :, 0].t() * 2, -1, 2, 0),
    "unfold": ("aten.unfold.default", X, 1, 3, 2),
    "unfold into one": ("aten.unfold.default", X, -1, 5, 1),
    "unfold by ones": ("aten.unfold.default", Y, 0, 1, 1),
    "unfold of a number": ("aten.unfold.default", torch.tensor(2.0), 0, 1, 1),
    "expand_as": ("aten.expand_as.default", Y[:1], X[:, :3, :4]),
    "broadcast_to": ("aten.broadcast_to.default", Y, [2, 3, 4]),
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


@pytest.mark.parametrize("op", ["unbind.int", "split.Tensor"])
def test_as_many_parts_as_the_sizes_say_are_refused(op: str) -> None:
    x = source(Names(), "x", [sizes.symbol("N")], "float32")
    arguments = [2] if op == "split.Tensor" else []
    with pytest.raises(Refused, match="depends on the sizes"):
        ROWS[f"aten.{op}"].lowered(Context(Names(), (), "", "out"), (x, *arguments), {})


def test_thirds_of_a_size_are_three_parts() -> None:
    x = source(Names(), "x", [sizes.size("3*H")], "float32")
    parts = ROWS["aten.split.Tensor"].lowered(Context(Names(), (), "", "out"), (x, sizes.symbol("H")), {})
    assert isinstance(parts, tuple)
    assert [p.shape for p in parts] == [(sizes.symbol("H"),)] * 3
