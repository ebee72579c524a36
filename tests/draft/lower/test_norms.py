"""Softmaxes and normalizations give what PyTorch gives, with every statistic that they return."""

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

INF, NAN = float("inf"), float("nan")
G = torch.Generator().manual_seed(0)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=G)


X = randn(2, 6, 5)
IMAGE = randn(2, 6, 3, 5)
ODD = torch.tensor([[1.0, NAN, 3.0], [-INF, 2.0, 1.0], [-INF, -INF, -INF], [1e4, -1e4, 1e4], [INF, 1.0, 0.0]])
W, B, MEAN = randn(6), randn(6), randn(6)
VAR = randn(6).abs() + 0.5
LAST, LAST_BIAS = randn(5), randn(5)


def test_softmaxes_survive_infinities_along_every_dimension() -> None:
    for dim in (0, 1, -1):
        for x in (X, IMAGE):
            agrees("aten.softmax.int", x, dim)
            agrees("aten._softmax.default", x, dim, False)
            agrees("aten.log_softmax.int", x, dim)
            agrees("aten._log_softmax.default", x, dim, False)
    for x in (ODD, torch.tensor(2.0), X[:, :, :1]):
        agrees("aten.softmax.int", x, -1)
        agrees("aten.log_softmax.int", x, -1)
    agrees("aten.softmax.int", torch.tensor([[1, 2, 3]]), -1, torch.float32)


def test_layer_and_rms_norms_take_weights_and_any_eps() -> None:
    for shape, weight, bias in (
        ([5], LAST, LAST_BIAS),
        ([5], None, None),
        ([5], LAST, None),
        ([6, 5], X[0], X[1]),
    ):
        agrees("aten.native_layer_norm.default", X, shape, weight, bias, 1e-5)
        agrees("aten.layer_norm.default", X, shape, weight, bias, 1e-3)
        agrees("aten.rms_norm.default", X, shape, weight, 1e-3)
    agrees("aten.rms_norm.default", X * 1e-4, [5])


def test_group_norms_split_the_channels() -> None:
    for groups in (1, 2, 3, 6):
        for x in (X, IMAGE):
            agrees("aten.group_norm.default", x, groups, W, B)
            agrees("aten.native_group_norm.default", x, W, None, 2, 6, x[0, 0].numel(), groups, 1e-4)
    agrees("aten.group_norm.default", X[:, :, 0], 3)
    agrees("aten.instance_norm.default", IMAGE, W, B, None, None, True, 0.1, 1e-5, False)
    with pytest.raises(Refused, match="running"):
        lowered("aten.instance_norm.default", IMAGE, W, B, MEAN, VAR, False, 0.1, 1e-5, False)


def test_batch_norms_use_running_statistics_or_the_batchs_own() -> None:
    for x in (X, IMAGE, X[:, :, 0]):
        agrees("aten._native_batch_norm_legit_no_training.default", x, W, B, MEAN, VAR, 0.1, 1e-5)
        agrees("aten._native_batch_norm_legit.no_stats", x, W, B, True, 0.1, 1e-5)
        for training in (True, False):
            functional = "aten._native_batch_norm_legit_functional.default"
            agrees(functional, x, W, B, MEAN, VAR, training, 0.3, 1e-5)
