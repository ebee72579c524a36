"""Interpolation and padding with constants, as in PyTorch."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

ROW, IMAGE, VOLUME = torch.randn(2, 3, 7), torch.randn(2, 3, 5, 6), torch.randn(1, 2, 3, 4, 5)
BYTES = torch.randint(0, 255, (1, 2, 4, 5), dtype=torch.uint8)
WHOLE = torch.randint(-9, 9, (2, 4, 5))
CALLS: dict[str, tuple[Any, ...]] = {
    "constant": ("aten.constant_pad_nd.default", IMAGE, [1, 2, 0, 3], 1.5),
    "constant that cuts off": ("aten.constant_pad_nd.default", IMAGE, [-1, 2, 3, -2]),
    "constant that only cuts off": ("aten.constant_pad_nd.default", IMAGE, [-1, 0]),
    "constant in a dimension of size 1": (
        "aten.constant_pad_nd.default",
        IMAGE[:, :1],
        [0, 0, 0, 0, 1, 1],
        2.0,
    ),
    "constant among whole numbers": ("aten.constant_pad_nd.default", WHOLE, [1, 1], 3),
    "constant among truths": ("aten.constant_pad_nd.default", WHOLE > 0, [1, 1], 1),
    "infinite": ("aten.constant_pad_nd.default", IMAGE, [1, 1], -torch.inf),
}
RESIZED: dict[str, tuple[Any, ...]] = {
    "twice": ([10, 12], None),
    "by 2": (None, [2.0, 2.0]),
    "by 3 and 1": (None, [3.0, 1.0]),
    "by fractions": (None, [1.7, 2.5]),
    "by fractions below 1": (None, [0.7, 0.5]),
    "to other sizes": ([7, 4], None),
    "to one element": ([1, 1], None),
    "to the same size": ([5, 6], None),
}


@pytest.mark.parametrize("name", CALLS)
def test_elements_come_from_where_pytorch_takes_them(name: str) -> None:
    agrees(*CALLS[name])


@pytest.mark.parametrize("name", RESIZED)
def test_the_nearest_element_is_pytorchs(name: str) -> None:
    agrees("aten.upsample_nearest2d.vec", IMAGE, *RESIZED[name])
    agrees("aten.upsample_nearest2d.vec", BYTES, *RESIZED[name])


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("name", RESIZED)
def test_interpolation_is_pytorchs(name: str, align_corners: bool) -> None:
    size, scales = RESIZED[name]
    agrees("aten.upsample_bilinear2d.vec", IMAGE, size, align_corners, scales)


@pytest.mark.parametrize("align_corners", [False, True])
def test_scales_may_be_given_and_three_dimensions_interpolated(align_corners: bool) -> None:
    agrees("aten.upsample_bilinear2d.default", IMAGE, [11, 3], align_corners, 2.3, 0.5)
    agrees("aten.upsample_trilinear3d.default", VOLUME, [5, 3, 9], align_corners)


GRIDS = {
    "inside and outside": torch.rand(2, 4, 3, 2) * 3 - 1.5,
    "on the edges": torch.tensor([-1.0, 1.0, 0.0, 3.0, -7.5, 40.0]).reshape(1, 3, 1, 2).repeat(2, 1, 2, 1),
}


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("name", GRIDS)
def test_an_image_is_read_where_a_grid_says(name: str, padding: int, align_corners: bool) -> None:
    for how in (0, 1, 2):
        agrees("aten.grid_sampler_2d.default", IMAGE, GRIDS[name], how, padding, align_corners)
        agrees("aten.grid_sampler_2d.default", IMAGE[..., :1], GRIDS[name], how, padding, align_corners)


def test_a_place_that_is_no_number_is_the_first_where_the_edge_goes_on() -> None:
    grid = torch.tensor([torch.nan, 0.5, torch.inf, -0.5]).reshape(1, 2, 1, 2).repeat(2, 1, 1, 1)
    agrees("aten.grid_sampler_2d.default", IMAGE, grid, 0, 1, False)


@pytest.mark.parametrize("padding", [0, 1, 2])
def test_a_volume_is_read_where_a_grid_says(padding: int) -> None:
    agrees("aten.grid_sampler_3d.default", VOLUME, torch.rand(1, 2, 3, 2, 3) * 3 - 1.5, 0, padding, False)


def test_what_pytorch_rounds_or_cuts_in_its_own_way_stays_with_it() -> None:
    with pytest.raises(Refused, match="whole numbers"):
        lowered("aten.upsample_bilinear2d.vec", BYTES, [8, 8], False, None)
