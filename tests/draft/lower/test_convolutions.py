"""Convolutions are PyTorch's, with all of their options, in one to three dimensions."""

import itertools
from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Load, walk
from pytorch_to_triton.draft.lower.row import Context, load_rows
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, source

from ..lowering import agrees

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strided": {"stride": 2},
    "padded": {"padding": 1},
    "padded and strided": {"padding": 2, "stride": 3},
    "dilated": {"dilation": 2, "padding": 1},
    "all at once": {"stride": 2, "padding": 3, "dilation": 2},
}
TRANSPOSED: dict[str, dict[str, Any]] = {
    **OPTIONS,
    "strided with more outputs": {"stride": 2, "output_padding": 1},
    "strided by more than the taps": {"stride": 4, "output_padding": 3},
    "padded by more than the taps reach": {"stride": 1, "padding": 2},
    "dilated, strided, with more outputs": {"dilation": 3, "stride": 2, "padding": 2, "output_padding": 2},
}
SIZES = {1: (9,), 2: (7, 6), 3: (5, 4, 6)}
TAPS = {1: (3,), 2: (3, 2), 3: (2, 3, 1)}


def called(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: list[int] | None = None,
    padding: list[int] | None = None,
    dilation: list[int] | None = None,
    *,
    transposed: bool = False,
    output_padding: list[int] | None = None,
    groups: int = 1,
) -> None:
    """Compares a convolution; what is not given leaves each dimension as it is."""
    ones, zeros = ([n] * (weight.dim() - 2) for n in (1, 0))
    around = (stride or ones, padding or zeros, dilation or ones)
    agrees("aten.convolution.default", x, weight, bias, *around, transposed, output_padding or zeros, groups)


def convolution(rank: int, options: dict[str, int], *, transposed: bool, groups: int = 1) -> None:
    """Compares 4 channels convolved to 6."""
    shape = (4, 6 // groups) if transposed else (6, 4 // groups)
    numbers: dict[str, Any] = {name: [n] * rank for name, n in options.items()}
    weight = torch.randn(*shape, *TAPS[rank])
    called(
        torch.randn(2, 4, *SIZES[rank]),
        weight,
        torch.randn(6),
        transposed=transposed,
        groups=groups,
        **numbers,
    )


@pytest.mark.parametrize("rank", SIZES)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_convolution_is_pytorchs(rank: int, name: str) -> None:
    convolution(rank, OPTIONS[name], transposed=False)


@pytest.mark.parametrize("rank", SIZES)
@pytest.mark.parametrize("name", TRANSPOSED)
def test_a_transposed_convolution_is_pytorchs(rank: int, name: str) -> None:
    convolution(rank, TRANSPOSED[name], transposed=True)


@pytest.mark.parametrize("transposed", [False, True])
def test_channels_fall_into_groups(transposed: bool) -> None:
    convolution(2, {"stride": 2, "padding": 1}, transposed=transposed, groups=2)


def test_each_channel_may_be_a_group() -> None:
    x, weight = torch.randn(2, 4, 7, 6), torch.randn(4, 1, 3, 3)
    called(x, weight, padding=[1, 1], groups=4)
    called(x, torch.randn(8, 1, 3, 3), torch.randn(8), [2, 1], [1, 0], [1, 2], groups=4)
    called(x, weight, None, [2, 2], [1, 1], transposed=True, output_padding=[1, 0], groups=4)


@pytest.mark.parametrize(
    ("taps", "stride", "padding"), [*itertools.product((1, 2, 3, 5), (1, 2, 3), (0, 1, 2))]
)
def test_every_output_meets_the_taps_that_reach_it(taps: int, stride: int, padding: int) -> None:
    x, weight = torch.randn(1, 2, 6), torch.randn(2, 3, taps)
    called(x, weight, torch.randn(3), [stride], [padding], transposed=True, output_padding=[stride - 1])


def test_one_channel_and_one_tap_need_no_sum() -> None:
    called(torch.randn(2, 1, 5, 6), torch.randn(3, 1, 1, 1), torch.randn(3))


@pytest.mark.parametrize(
    ("padding", "transposed", "guarded"),
    [(0, False, False), (1, False, True), (2, True, False), (0, True, True)],
)
def test_only_where_windows_leave_the_image_are_its_loads_guarded(
    padding: int, transposed: bool, guarded: bool
) -> None:
    names, height, width = Names(), sizes.size("H"), sizes.size("W")
    image = source(names, "x", (sizes.size("N"), sizes.size(4), height, width), "float32")
    weight = source(names, "weight", tuple(map(sizes.size, (4, 4, 3, 3))), "float32")
    grown = (2 if transposed else -2) + (-2 if transposed else 2) * padding
    shape = (sizes.size("N"), sizes.size(4), height + grown, width + grown)
    ctx = Context(names, shape, "float32", "out")
    found = load_rows()["aten.convolution.default"].lowered(
        ctx, (image, weight, None, [1, 1], [padding] * 2, [1, 1], transposed, [0, 0], 1), {}
    )
    assert isinstance(found, Tensor)
    assert any(isinstance(v, Load) and v.where is not None for v in walk(found.value)) == guarded
