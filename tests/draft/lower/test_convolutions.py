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


def convolution(rank: int, options: dict[str, Any], *, transposed: bool, groups: int = 1) -> None:
    """Compares 4 channels convolved to 6."""
    x = torch.randn(2, 4, *SIZES[rank])
    shape = (4, 6 // groups) if transposed else (6, 4 // groups)
    numbers = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0} | options
    stride, padding, dilation, more = ([n] * rank for n in numbers.values())
    weight = torch.randn(*shape, *TAPS[rank])
    agrees(
        "aten.convolution.default",
        x,
        weight,
        torch.randn(6),
        stride,
        padding,
        dilation,
        transposed,
        more,
        groups,
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
    agrees("aten.conv2d.default", x, weight, None, [1, 1], [1, 1], [1, 1], 4)
    agrees("aten.conv2d.default", x, torch.randn(8, 1, 3, 3), torch.randn(8), [2, 1], [1, 0], [1, 2], 4)
    agrees("aten.conv_transpose2d.input", x, weight, None, [2, 2], [1, 1], [1, 0], 4)


@pytest.mark.parametrize(
    ("taps", "stride", "padding"), [*itertools.product((1, 2, 3, 5), (1, 2, 3), (0, 1, 2))]
)
def test_every_output_meets_the_taps_that_reach_it(taps: int, stride: int, padding: int) -> None:
    x, weight = torch.randn(1, 2, 6), torch.randn(2, 3, taps)
    agrees("aten.conv_transpose1d.default", x, weight, torch.randn(3), [stride], [padding], [stride - 1])


@pytest.mark.parametrize(("taps", "dilation"), [(3, 1), (3, 2), (2, 1), (4, 3), (1, 1)])
def test_the_same_padding_keeps_sizes(taps: int, dilation: int) -> None:
    x, weight = torch.randn(2, 3, 9), torch.randn(2, 3, taps)
    agrees("aten.conv1d.padding", x, weight, None, [1], "same", [dilation])
    agrees("aten.conv1d.padding", x[:, :, :], weight, None, [2], "valid")


def test_one_image_needs_no_batch() -> None:
    agrees("aten.conv2d.default", torch.randn(3, 5, 6), torch.randn(2, 3, 3, 3), torch.randn(2), [1], [1])
    agrees("aten.conv_transpose1d.default", torch.randn(3, 5), torch.randn(3, 2, 3), None, [2])


def test_one_channel_and_one_tap_need_no_sum() -> None:
    agrees("aten.conv2d.default", torch.randn(2, 1, 5, 6), torch.randn(3, 1, 1, 1), torch.randn(3))


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
