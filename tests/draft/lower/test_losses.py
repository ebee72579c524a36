"""Losses agree with PyTorch's for every reduction, with weights, smoothing and ignored targets."""

from typing import Any

import torch

from ..lowering import agrees

G = torch.Generator().manual_seed(0)
X, Y = torch.randn(4, 5, generator=G), torch.randn(4, 5, generator=G)
P, Q = torch.rand(4, 5, generator=G), torch.rand(4, 5, generator=G)
SIGNS = torch.sign(Y)
LOGITS, PIXELS = torch.randn(3, 5, generator=G), torch.randn(2, 5, 3, 4, generator=G)
TARGET = torch.tensor([4, -100, 0])
PIXEL_TARGET = torch.randint(0, 5, (2, 3, 4), generator=G)
WEIGHT = torch.rand(5, generator=G)


def holds(op: str, *args: Any, **kwargs: Any) -> None:
    """For every reduction."""
    for reduction in (0, 1, 2):
        agrees(op, *args, reduction=reduction, **kwargs)


def test_distances_are_weighed_as_asked() -> None:
    holds("aten.mse_loss.default", X, Y)
    holds("aten.l1_loss.default", X, Y)
    for size in (0.3, 1.0, 2.0):
        holds("aten.huber_loss.default", X, Y, delta=size)
        holds("aten.smooth_l1_loss.default", X, Y, beta=size)
    holds("aten.smooth_l1_loss.default", X, Y, beta=0.0)
    holds("aten.mse_loss.default", X[0, 0], Y[0, 0])


def test_margins_are_kept() -> None:
    holds("aten.soft_margin_loss.default", X, SIGNS)
    holds("aten.margin_ranking_loss.default", X, Y, SIGNS)
    holds("aten.margin_ranking_loss.default", X, Y, SIGNS, margin=0.5)
    holds("aten.hinge_embedding_loss.default", X, SIGNS, margin=0.7)
    for power in (1, 2):
        for weight in (None, WEIGHT):
            holds("aten.multi_margin_loss.default", X, torch.tensor([0, 4, 2, 2]), power, 0.8, weight)
    holds("aten.multi_margin_loss.default", X[0], torch.tensor(3))


def test_probabilities_are_compared() -> None:
    zeros = torch.tensor([0.0, 1.0, 0.0, 1.0])
    holds("aten.kl_div.default", P.log(), Q)
    holds("aten.kl_div.default", P.log(), Q.log(), log_target=True)
    holds("aten.kl_div.default", X[0, :4], zeros)
    for weight in (None, WEIGHT):
        holds("aten.binary_cross_entropy.default", P, Q, weight)
        holds("aten.binary_cross_entropy_with_logits.default", X, Q, weight)
        holds("aten.binary_cross_entropy_with_logits.default", X * 50, Q, weight, WEIGHT + 1)
    holds("aten.binary_cross_entropy.default", zeros, zeros.flip(0))


def test_classes_are_looked_up_but_where_they_are_ignored() -> None:
    for x, target in ((LOGITS, TARGET), (LOGITS[0], TARGET[0]), (PIXELS, PIXEL_TARGET)):
        for weight in (None, WEIGHT):
            for ignored in (-100, 2):
                found = target.where(target != -100, ignored)
                holds("aten.nll_loss_nd.default", x, found, weight, ignore_index=ignored)
                for smoothing in (0.0, 0.1):
                    keywords = {"ignore_index": ignored, "label_smoothing": smoothing}
                    holds("aten.cross_entropy_loss.default", x, found, weight, **keywords)
    for reduction in (0, 1, 2):
        agrees("aten.nll_loss_forward.default", LOGITS, TARGET, WEIGHT, reduction, -100)
        agrees("aten.nll_loss2d_forward.default", PIXELS, PIXEL_TARGET, None, reduction, 2)


def test_cross_entropy_takes_probabilities() -> None:
    for x in (LOGITS, PIXELS, LOGITS[0]):
        share = torch.softmax(torch.randn(x.shape, generator=G), 0)
        for weight in (None, WEIGHT):
            for smoothing in (0.0, 0.2):
                holds("aten.cross_entropy_loss.default", x, share, weight, label_smoothing=smoothing)
