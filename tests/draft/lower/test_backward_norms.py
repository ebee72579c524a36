"""Gradients of normalizations are those of PyTorch's own operators."""

import pytest
import torch

from ..lowering import agrees

ALL = [True, True, True]


@pytest.mark.parametrize("shape", [[5], [4, 5], [1, 5]])
def test_layer_norm(shape: list[int]) -> None:
    x = torch.randn(2, 3, *shape)
    grad, weight, bias = torch.randn_like(x), torch.rand(shape), torch.rand(shape)
    _, mean, rstd = torch.native_layer_norm(x, shape, weight, bias, 1e-5)
    agrees("aten.native_layer_norm_backward.default", grad, x, shape, mean, rstd, weight, bias, ALL)


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("trained", [True, False])
def test_group_norm(groups: int, weighted: bool, trained: bool) -> None:
    x = torch.randn(3, 6, 2, 5)
    weight = torch.rand(6) if weighted else None
    _, mean, rstd = torch.native_group_norm(x, weight, None, 3, 6, 10, groups, 1e-5)
    arguments = (torch.randn_like(x), x, mean, rstd, weight, 3, 6, 10, groups)
    agrees("aten.native_group_norm_backward.default", *arguments, [True, *[weighted and trained] * 2])


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2, 5)])
def test_batch_norm(train: bool, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    weight, bias, mean, var = torch.rand(4, 3) + 0.1
    _, save_mean, save_rstd = torch.native_batch_norm(x, weight, bias, mean, var, train, 0.1, 1e-5)
    stats = (mean, var, save_mean, save_rstd)
    agrees(
        "aten.native_batch_norm_backward.default", torch.randn_like(x), x, weight, *stats, train, 1e-5, ALL
    )
