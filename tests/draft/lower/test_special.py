"""Special functions are PyTorch's: at their poles and zeros, where their formulas meet, and far out."""

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

INF, NAN = float("inf"), float("nan")
DENSE = torch.linspace(-30, 30, 241)
SEAMS = torch.tensor([0.0, -0.0, 1e-6, 1e-3, 0.5, 2.0, 2.09, -2.09, 5.0, 8.0, 10.0, 75.0, -75.0, 1000.0])
X = torch.cat([DENSE, SEAMS, torch.tensor([INF, -INF, NAN])])
IN_RANGE = X[~(X.abs() > 80) | X.isinf()]
"""exp of it is a float32."""


@pytest.mark.parametrize(
    "name", ["airy_ai", "spherical_bessel_j0", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"]
)
def test_a_wave_and_what_is_near_its_origin_are_pytorchs(name: str) -> None:
    agrees(f"aten.special_{name}.default", X)
    agrees(f"aten.special_{name}.default", X.double(), tolerance=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "i0e", "i1", "i1e", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
        "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    ],
)  # fmt: skip
def test_a_chebyshev_series_is_as_precise_as_the_dtype(name: str) -> None:
    agrees(f"aten.special_{name}.default", IN_RANGE)
    agrees(f"aten.special_{name}.default", IN_RANGE.double(), tolerance=1e-12)


def test_a_scaled_complement_of_the_error_function_overflows_where_it_should() -> None:
    agrees("aten.special_erfcx.default", torch.cat([X[X > -9], torch.tensor([-30.0, -INF])]))


def test_digamma_agrees_on_both_sides_of_its_poles() -> None:
    agrees("aten.digamma.default", X)
    agrees("aten.digamma.default", torch.tensor([[-1.5, -0.999, -1e-4], [1.4616321, 9.999, 1e9]]))
    agrees("aten.digamma.default", torch.tensor([-3, 0, 1, 10]))


@pytest.mark.parametrize("order", range(6))
def test_polygamma_agrees_on_both_sides_of_its_poles(order: int) -> None:
    apart = torch.linspace(-9.9, 30, 134, dtype=torch.float64)
    agrees("aten.polygamma.default", order, apart, tolerance=1e-8)
    if order > 1:  # The first one is not infinite at its poles, but as large as rounding leaves it.
        agrees("aten.polygamma.default", order, torch.tensor([0.0, -0.0, -1.0, -7.0, INF, -INF, NAN]))


def test_a_factorial_that_leaves_no_room_stays_pytorchs() -> None:
    with pytest.raises(Refused, match="its order is above 20"):
        lowered("aten.polygamma.default", 21, X)
