"""The quotients of drafted kernels, computed in NumPy by the source that the kernels have."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pytorch_to_triton.draft.ir.functions import QUOTIENT

Floats = npt.NDArray[np.float32]
SMALLEST = 2.0**-32
"""Of smaller quotients a remainder may be no normal number."""
SPECIAL = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        127,
        1e-45,
        -1e-45,
        1e-39,
        3.4e38,
        1.1754944e-38,
        2.0**65,
        2.0**-65,
    ],
    np.float32,
)


def fused(x: Floats, y: Floats, z: Floats) -> Floats:
    return (x.astype(np.float64) * y + z).astype(np.float32)


@pytest.fixture
def quotient() -> Callable[[Floats, Floats], Floats]:
    tl = SimpleNamespace(
        abs=np.abs,
        where=lambda c, x, y: np.where(c, x, y).astype(np.float32),
        fma=fused,
        div_rn=lambda x, y: np.float32(x) / y,
    )
    names: dict[str, Any] = {"triton": SimpleNamespace(jit=lambda function: function), "tl": tl}
    exec(QUOTIENT.source, names)

    def quotient(x: Floats, y: Floats) -> Floats:
        with np.errstate(all="ignore"):
            found: Floats = names["quotient_rn"](x, y)
        return found

    return quotient


def assert_same_bits(found: Floats, exact: Floats) -> None:
    numbers = ~(np.isnan(found) & np.isnan(exact))
    assert np.array_equal(found[numbers].view(np.uint32), exact[numbers].view(np.uint32))


def divided(x: Floats, y: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return x / y


def test_a_quotient_of_any_two_numbers_is_rounded_to_nearest(quotient: Callable[..., Floats]) -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, (2, 2**21), dtype=np.uint32)
    x, y = bits.view(np.float32)
    exact = divided(x, y)
    large = ~(np.abs(exact) < SMALLEST)
    assert_same_bits(quotient(x, y)[large], exact[large])


def test_quotients_near_the_middle_of_two_numbers_are_rounded_to_the_nearer(
    quotient: Callable[..., Floats],
) -> None:
    draw = np.random.default_rng(1)
    y = (2**24 - draw.integers(1, 2**12, 2**20)).astype(np.float32)
    middle = draw.integers(2**23, 2**24, 2**20) + 0.5
    x = (y * middle).astype(np.float32)
    assert_same_bits(quotient(x, y), divided(x, y))


def test_zeros_infinities_nan_and_the_smallest_numbers_are_divided_as_ieee_754_has_it(
    quotient: Callable[..., Floats],
) -> None:
    x, y = (side.ravel() for side in np.meshgrid(SPECIAL, SPECIAL))
    assert_same_bits(quotient(x, y), divided(x, y))
