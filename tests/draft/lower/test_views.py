"""Views look at the same elements as PyTorch's."""

import pytest
import torch

from ..lowering import agrees

X = torch.randn(4, 6, 5)
CALLS = {
    "alias": ("aten.alias.default", X),
    "clone": ("aten.clone.default", X),
    "permute_copy": ("aten.permute_copy.default", X, [2, 0, 1]),
    "permute": ("aten.permute.default", X, [2, 0, 1]),
    "unsqueeze": ("aten.unsqueeze.default", X, -1),
    "squeeze": ("aten.squeeze.dims", X[:, :1], [1]),
    "expand": ("aten.expand.default", X[:, :1], [2, 4, 6, 5]),
    "slice": ("aten.slice.Tensor", X, 1, -5, 6, 2),
    "slice from before the start": ("aten.slice.Tensor", X, 2, -8, -1),
    "select": ("aten.select.int", X, 1, -2),
    "split": ("aten.split_with_sizes.default", X, [1, 2, 3], 1),
    "flip": ("aten.flip.default", X, [0, -1]),
    "view that merges": ("aten.view.default", X, [24, 5]),
    "view that splits": ("aten.view.default", X, [2, 2, 3, 10]),
    "view that does neither": ("aten.view.default", X, [8, 15]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_view_sees_what_pytorch_sees(name: str) -> None:
    agrees(*CALLS[name])
