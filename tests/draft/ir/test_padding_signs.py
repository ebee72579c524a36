"""What is unknown is not taken to be of one sign."""

import math

import pytest

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.padding import known
from pytorch_to_triton.draft.ir.values import Argument, Axis, Buffer, Index, Load, op

N = Axis("n", sizes.size("N"))
X = Load(Buffer("x", (N.size,), "float32"), (Index(N),))


@pytest.mark.parametrize("other", [math.inf, -math.inf])
@pytest.mark.parametrize("scale", [f"scale_{i}" for i in range(8)])
def test_an_infinity_times_a_factor_of_unknown_sign_is_unknown(other: float, scale: str) -> None:
    scaled = op("mul", X, Argument(scale, scale, "float"))
    assert known(scaled, {X: other}, frozenset({N})) is None


def test_zero_times_an_unknown_factor_is_zero() -> None:
    assert known(op("mul", X, Argument("scale", "scale", "float")), {X: 0.0}, frozenset({N})) == 0.0
