"""Gradients are those of PyTorch's own operators."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

NAN, INF = float("nan"), float("inf")
X = torch.tensor(
    [[-INF, -21.0, -3.0, -2.9, -1.0, -0.5], [-0.1, 0.0, 0.3, 0.5, 1.0, 2.9], [3.0, 3.1, 7.0, 25.0, INF, NAN]]
)
TAME = X.nan_to_num(0.7, 30.0, -30.0)
G = torch.randn(3, 6)
UNIT = torch.rand(3, 6)
SOFT = torch.softmax(G, 1)
LABELS = torch.tensor([4, 1, 4])
WEIGHT = torch.rand(6)
ONE = torch.tensor(2.0)
PICTURE = torch.randn(2, 6, 7, 5)
PIXELS = torch.randint(6, (2, 7, 5))
POINTWISE: dict[str, tuple[Any, ...]] = {
    "sigmoid": ("aten.sigmoid_backward.default", G, TAME.sigmoid()),
    "gelu": ("aten.gelu_backward.default", G, TAME),
    "mish": ("aten.mish_backward.default", G, TAME),
    "leaky relu": ("aten.leaky_relu_backward.default", G, X, 0.1, False),
    "leaky relu from its result": ("aten.leaky_relu_backward.default", G, X, 0.1, True),
    "hardtanh": ("aten.hardtanh_backward.default", G, X, -1, 1),
    "hardsigmoid": ("aten.hardsigmoid_backward.default", G, X),
    "softshrink": ("aten.softshrink_backward.default", G, X, 0.5),
    "hardshrink": ("aten.hardshrink_backward.default", G, X, 0.5),
    "softplus": ("aten.softplus_backward.default", G, TAME, 1, 20),
    "softplus with beta": ("aten.softplus_backward.default", G, TAME, 2.0, 5.0),
    "log_sigmoid": ("aten.log_sigmoid_backward.default", G, TAME, torch.exp(-TAME.abs())),
    "glu": ("aten.glu_backward.default", G[:, :3], X.nan_to_num(0.7, 30.0, -30.0), 1),
    "glu of rows": ("aten.glu_backward.default", G[:1], UNIT[:2], 0),
    "dropout": ("aten.native_dropout_backward.default", G, G > 0, 1.25),
    "softmax": ("aten._softmax_backward_data.default", G, SOFT, -1, torch.float32),
    "log_softmax": ("aten._log_softmax_backward_data.default", G, SOFT.log(), 0, torch.float32),
}
LOSSES: dict[str, tuple[Any, ...]] = {
    "mse": ("aten.mse_loss_backward.default", ONE, G, UNIT, 1),
    "mse of each": ("aten.mse_loss_backward.default", G, SOFT, UNIT, 0),
    "smooth l1": ("aten.smooth_l1_loss_backward.default", ONE, G, UNIT, 1, 0.5),
    "smooth l1 without a bend": ("aten.smooth_l1_loss_backward.default", ONE, G, G.round(), 2, 0.0),
    "huber": ("aten.huber_loss_backward.default", ONE, G * 2, UNIT, 1, 0.7),
    "huber sum": ("aten.huber_loss_backward.default", ONE, G * 2, UNIT, 2, 0.7),
    "labels": ("aten.nll_loss_backward.default", ONE, G, LABELS, None, 1, -100, torch.tensor(3.0)),
    "ignored labels": ("aten.nll_loss_backward.default", ONE, G, LABELS, None, 2, 4, torch.tensor(1.0)),
    "weighted labels": ("aten.nll_loss_backward.default", ONE, G, LABELS, WEIGHT, 1, 4, WEIGHT[1]),
    "labels of each": ("aten.nll_loss_backward.default", G[:, 0], G, LABELS, WEIGHT, 0, -100, ONE),
    "one label": ("aten.nll_loss_backward.default", ONE, G[0], LABELS[1], None, 1, -100, torch.tensor(1.0)),
    "a picture": ("aten.nll_loss2d_backward.default", PICTURE[:, 0], PICTURE, PIXELS, WEIGHT, 0, 1, ONE),
}
POOLED = {
    "side by side": ([2, 2], [], [0, 0], False, True, None),
    "overlapping": ([3, 2], [2, 1], [1, 1], False, True, None),
    "apart": ([2, 1], [3, 2], [0, 0], False, False, None),
    "with a divisor": ([3], [1], [1], False, False, 4),
}
VIEWS: dict[str, tuple[Any, ...]] = {
    "slice": ("aten.slice_backward.default", G, [3, 9], 1, 2, 8, 1),
    "slice by steps": ("aten.slice_backward.default", G, [8, 6], 0, -8, 2**63 - 1, 3),
    "slice of all": ("aten.slice_backward.default", G, [3, 6], 1, 0, 2**63 - 1, 1),
    "select": ("aten.select_backward.default", G, [3, 4, 6], 1, -2),
    "diagonal": ("aten.diagonal_backward.default", G, [3, 6, 7], 1, 1, 2),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_a_function_has_pytorchs_gradient(name: str) -> None:
    agrees(*POINTWISE[name])


def test_gelu_has_the_gradient_of_its_approximation() -> None:
    agrees("aten.gelu_backward.default", G, TAME, approximate="tanh")


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_pytorchs_gradient(name: str) -> None:
    agrees(*LOSSES[name])


@pytest.mark.parametrize("name", VIEWS)
def test_a_part_gives_its_gradient_to_where_it_lay(name: str) -> None:
    agrees(*VIEWS[name])


def pooling(*arguments: Any) -> tuple[Any, ...]:
    kernel, stride, padding, *rest = arguments
    out = torch.ops.aten.avg_pool2d.default(PICTURE, kernel, stride, padding, *rest)
    return ("aten.avg_pool2d_backward.default", torch.randn_like(out), PICTURE, *arguments)


@pytest.mark.parametrize("name", POOLED)
def test_a_pool_shares_its_gradient_among_its_windows(name: str) -> None:
    agrees(*pooling(*POOLED[name]))


def test_a_pool_whose_windows_differ_in_size_is_refused() -> None:
    for arguments in (
        ([2, 2], [2, 2], [0, 0], True, True, None),
        ([3, 3], [2, 2], [1, 1], False, False, None),
    ):
        with pytest.raises(Refused, match="its windows"):
            lowered(*pooling(*arguments))
