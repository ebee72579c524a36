"""What is drawn at random is what PyTorch would draw from the same seeds, element by element."""

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

X = torch.randn(3, 4, 5)


def test_dropout_keeps_what_the_reference_keeps() -> None:
    for x in (X, X.transpose(0, 2), X[0, 0, 0], X[:, :1]):
        agrees("aten.native_dropout.default", x, 0.25, True)
        for p in (0.75, 0.0, 1.0):
            agrees("aten.bernoulli.p", x, p)
    for p, train in ((0.0, True), (1.0, True), (0.5, False)):
        with pytest.raises(Refused, match=r"drops nothing|no number between"):
            lowered("aten.native_dropout.default", X, p, train)


def test_uniform_numbers_are_float32_of_any_shape() -> None:
    for shape in ([4, 3], [7], [], [2, 1, 5]):
        agrees("aten.rand.default", shape)
    agrees("aten.rand_like.default", X.transpose(0, 1))
    with pytest.raises(Refused, match="draws float64"):
        lowered("aten.rand.default", [3], dtype=torch.float64)
