"""Pointwise operators give what PyTorch gives: for NaN and infinities, ints and bools, and broadcasts."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees, lowered

INF, NAN = float("inf"), float("nan")
X = torch.tensor([[-2.5, -1.0, -0.5, -0.0], [0.0, 0.5, 1.5, 2.5], [25.0, -INF, INF, NAN]])
Y = torch.tensor([[2.0, -0.5, -1.5, 3.0], [-2.0, 0.5, INF, -INF], [1.0, NAN, INF, 1.0]])
FINITE, OTHER = X[:2], Y[:2, :2].repeat(1, 2)
POSITIVE = torch.tensor([0.25, 1.0, 3.5, 100.0])
UNIT = torch.tensor([-0.9, -0.25, 0.0, 0.5, 0.99])
ROW = torch.tensor([1.5, -2.0, 0.25, 4.0])
WHOLE = torch.tensor([[-7, -3, 0, 4], [7, 5, -2, 1]])
DIVISORS = torch.tensor([[2, -2, 3, -3], [-4, 5, 1, 6]])
SMALL = torch.tensor([1, 2, 3, 0], dtype=torch.int32)
B = torch.tensor([[True, False, True, False], [False, False, True, True]])
C = torch.tensor([True, True, False, False])
ONE = torch.tensor(1.5)

UNARY = (
    "exp", "exp2", "expm1", "erf", "erfc", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh",
    "sigmoid", "silu", "mish", "relu", "elu",
    "leaky_relu", "hardtanh", "softplus", "log_sigmoid", "neg", "abs",
    "square", "floor", "ceil", "round", "trunc", "sign", "reciprocal", "isnan", "isinf",
    "nan_to_num", "lgamma", "signbit", "angle", "logical_not",
)  # fmt: skip


def holds(cases: list[tuple[Any, ...]]) -> None:
    for op, *args in cases:
        keywords: dict[str, Any] = args.pop() if args and isinstance(args[-1], dict) else {}
        agrees(op, *args, **keywords)


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_number_agrees_everywhere(name: str) -> None:
    agrees(f"aten.{name}.default", X)


def test_functions_with_a_domain_agree_within_and_beyond_it() -> None:
    for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh"):
        agrees(f"aten.{name}.default", POSITIVE)
        agrees(f"aten.{name}.default", X)
    for name in ("asin", "acos", "atanh", "erfinv", "i0", "special_ndtri"):
        agrees(f"aten.{name}.default", UNIT)


def test_the_bits_of_a_float_are_read_as_they_are() -> None:
    tiny = torch.tensor([1e-45, -2e-40, 3e38, 1.0])
    agrees("aten.nextafter.default", torch.cat([X.flatten(), tiny])[:, None], X.flatten())
    agrees("aten.frexp.Tensor", torch.cat([X.flatten(), tiny]))
    with pytest.raises(Refused, match="a neighbour among bfloat16"):
        lowered("aten.nextafter.default", X.bfloat16(), X.bfloat16())


def test_whole_numbers_stay_whole_or_become_floats() -> None:
    for name in ("neg", "abs", "square", "floor", "round", "trunc", "sign", "signbit", "angle", "relu",
                 "isnan", "isinf", "nan_to_num", "exp", "sqrt", "reciprocal", "logical_not"):  # fmt: skip
        agrees(f"aten.{name}.default", WHOLE)
    for name in ("sign", "exp", "logical_not", "bitwise_not", "nan_to_num"):
        agrees(f"aten.{name}.default", B)
    agrees("aten.bitwise_not.default", WHOLE)


def test_arithmetic_promotes_and_broadcasts() -> None:
    for name in ("add", "sub", "mul", "div", "remainder", "fmod"):
        for a, b in (
            (FINITE, OTHER),
            (FINITE, ROW),
            (WHOLE, DIVISORS),
            (WHOLE, ROW),
            (SMALL, DIVISORS),
            (X, Y),
            (ROW, ONE),
        ):
            agrees(f"aten.{name}.Tensor", a, b)
        for a, b in ((X, 3), (X, -0.75), (WHOLE, 3), (WHOLE, -2), (WHOLE, 0.75)):
            agrees(f"aten.{name}.Scalar", a, b)
    holds(
        [
            ("aten.add.Tensor", B, C),
            ("aten.mul.Tensor", B, C),
            ("aten.add.Tensor", B, WHOLE),
            ("aten.mul.Tensor", FINITE, B),
            ("aten.add.Tensor", WHOLE, DIVISORS, {"alpha": 3}),
            ("aten.sub.Tensor", X, Y, {"alpha": -0.5}),
            ("aten.div.Tensor", B, WHOLE),
            ("aten.remainder.Scalar_Tensor", 7.5, ROW),
        ]
    )


def test_quotients_are_rounded_as_asked() -> None:
    hard = torch.tensor([1.0, 0.6, -0.6, 5.0, -5.0, 0.3, 0.0, -0.0], dtype=torch.float64)
    by = torch.tensor([0.1, 0.2, 0.2, INF, INF, -0.1, 0.0, 3.0], dtype=torch.float64)
    for mode in ("floor", "trunc", None):
        for a, b in ((FINITE, OTHER), (WHOLE, DIVISORS), (WHOLE, ROW), (hard, by), (X, Y)):
            agrees("aten.div.Tensor_mode", a, b, rounding_mode=mode)
        for a, b in ((X, 0.75), (WHOLE, -2), (WHOLE, 3), (X, -3), (WHOLE, 0.5)):
            agrees("aten.div.Scalar_mode", a, b, rounding_mode=mode)


def test_powers_agree_for_every_exponent() -> None:
    for exponent in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 5, 2.5):
        agrees("aten.pow.Tensor_Scalar", X, exponent)
    for exponent in (0, 1, 2, 3, 7):
        agrees("aten.pow.Tensor_Scalar", WHOLE, exponent)
    holds(
        [
            ("aten.pow.Tensor_Scalar", WHOLE, 0.5),
            ("aten.pow.Tensor_Tensor", POSITIVE, ROW),
            ("aten.pow.Tensor_Tensor", POSITIVE, SMALL),
            ("aten.pow.Scalar", 2, X),
            ("aten.ldexp.Tensor", X, torch.tensor([-3, 0, 2, 5])),
            ("aten.pow.Scalar", 0.5, X),
        ]
    )
    with pytest.raises(Refused, match="no literal"):
        lowered("aten.pow.Tensor_Tensor", WHOLE, WHOLE.abs())


def test_comparisons_and_logic_give_bools() -> None:
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        for a, b in ((X, Y), (X, ROW), (WHOLE, DIVISORS), (WHOLE, ROW), (B, C), (WHOLE, B)):
            agrees(f"aten.{name}.Tensor", a, b)
        for a, b in ((X, 0), (X, 0.5), (WHOLE, 4), (WHOLE, 0.5), (B, 1)):
            agrees(f"aten.{name}.Scalar", a, b)
    for name in ("and", "or", "xor"):
        for a, b in ((X, Y), (WHOLE, DIVISORS), (B, C), (B, WHOLE)):
            agrees(f"aten.logical_{name}.default", a, b)
        for a, b in ((WHOLE, DIVISORS), (B, C), (B, WHOLE)):
            agrees(f"aten.bitwise_{name}.Tensor", a, b)
        agrees(f"aten.bitwise_{name}.Scalar", WHOLE, 6)
        agrees(f"aten.bitwise_{name}.Scalar", B, True)


def test_shifts_are_defined_for_every_distance() -> None:
    far = torch.tensor([0, 3, 64, -1])
    for name in ("left", "right"):
        agrees(f"aten.bitwise_{name}_shift.Tensor", WHOLE, far)
        agrees(f"aten.bitwise_{name}_shift.Tensor_Scalar", WHOLE, 2)
        agrees(f"aten.bitwise_{name}_shift.Scalar_Tensor", 5, far[:2])
    agrees("aten.__rshift__.Scalar", torch.tensor([0, 15, 16, 200, 255], dtype=torch.uint8), 4)
    agrees("aten.__lshift__.Scalar", torch.tensor([0, 1, 63, 64, 255], dtype=torch.uint8), 2)
    with pytest.raises(Refused, match="uint8"):
        lowered("aten.bitwise_left_shift.Tensor", SMALL.to(torch.uint8), SMALL.to(torch.uint8))


def test_selection_takes_the_kind_of_the_result() -> None:
    holds(
        [
            ("aten.where.self", B, FINITE, ROW),
            ("aten.where.self", B, WHOLE, FINITE),
            ("aten.where.self", C, B, B),
            ("aten.masked_fill.Scalar", X, C, -INF),
            ("aten.masked_fill.Scalar", WHOLE, B, 9),
        ]
    )


def test_the_larger_and_the_smaller_treat_nan_as_pytorch_does() -> None:
    for name in ("maximum", "minimum", "fmax", "fmin"):
        for a, b in ((X, Y), (WHOLE, DIVISORS), (B, C), (X, ROW)):
            agrees(f"aten.{name}.default", a, b)


def test_clamps_keep_nan_and_prefer_the_upper_bound() -> None:
    holds(
        [
            ("aten.clamp.default", X, -1, 1.5),
            ("aten.clamp.default", X, 1, -1),
            ("aten.clamp.default", X, None, 0),
            ("aten.clamp.default", X, 0.5),
            ("aten.clamp.default", WHOLE, -3, 4),
            ("aten.clamp.default", WHOLE, 0.5, None),
            ("aten.clamp.Tensor", X, Y, ROW),
            ("aten.clamp.Tensor", WHOLE, None, DIVISORS),
            ("aten.hardtanh.default", X, -2, 2),
        ]
    )


def test_activations_use_their_parameters() -> None:
    holds(
        [
            ("aten.gelu.default", FINITE),
            ("aten.gelu.default", FINITE, {"approximate": "tanh"}),
            ("aten.softplus.default", X, 2, 10),
            ("aten.softplus.default", X, 1, 2.0),
            ("aten.elu.default", X, 0.5, 2.0, 3.0),
            ("aten.leaky_relu.default", X, 0.2),
        ]
    )


def test_functions_of_several_numbers_agree() -> None:
    weights = torch.tensor([0.0, 0.25, 0.5, 1.0])
    holds(
        [
            ("aten.lerp.Scalar", FINITE, OTHER, 0.3),
            ("aten.lerp.Scalar", FINITE, OTHER, 0.9),
            ("aten.lerp.Tensor", FINITE, ROW[None].expand(2, 4), weights[None].expand(2, 4)),
            ("aten.nan_to_num.default", X, 1.0, 2.0, -3.0),
            ("aten.atan2.default", FINITE, OTHER),
            ("aten.hypot.default", FINITE, OTHER),
            ("aten.copysign.Tensor", X, ROW),
            ("aten.copysign.Scalar", X, -1.0),
            ("aten.round.decimals", FINITE * 1.2345, {"decimals": 2}),
            ("aten.round.decimals", FINITE * 123.45, {"decimals": -1}),
        ]
    )


def test_casts_round_and_truncate_as_pytorch_does() -> None:
    precise = torch.tensor([0.1, -2.7, 1000.3])
    for dtype in (torch.float64, torch.int64, torch.int32, torch.bool, torch.float16):
        agrees("aten._to_copy.default", precise, dtype=dtype)
        agrees("aten._to_copy.default", WHOLE, dtype=dtype)
        agrees("aten._to_copy.default", B, dtype=dtype)
    agrees("aten._to_copy.default", torch.tensor([300, -1, 5]), dtype=torch.uint8)
    with pytest.raises(Refused, match="float8"):
        lowered("aten._to_copy.default", precise, dtype=torch.float8_e5m2)
