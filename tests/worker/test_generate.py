"""Inputs are drawn as the case says, and again the same from the same seed."""

import math
from typing import Any

import pytest
import torch

from pytorch_to_triton.inputs.case import TensorArgument
from pytorch_to_triton.worker.calls.generate import (
    FILLS,
    generate_argument,
    generate_arguments,
    large_strides,
    perturbed_state,
)

FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


def spec(shape: tuple[int, ...] = (6, 40), **changes: Any) -> dict[str, Any]:
    plain = {
        "form": "tensor",
        "name": "x",
        "dtype": "float32",
        "shape": shape,
        "low": None,
        "high": None,
        "fill": "random",
        "layout": "contiguous",
    }
    return {**plain, **changes}


def drawn(shape: tuple[int, ...] = (6, 40), seed: int = 1, **changes: Any) -> torch.Tensor:
    tensor: torch.Tensor = generate_argument("case", spec(shape, **changes), seed)
    return tensor


def test_a_tensor_depends_on_seed_case_and_name_only() -> None:
    assert drawn().equal(drawn())
    assert not drawn().equal(drawn(seed=2))
    assert not drawn().equal(drawn(name="y"))
    case = {"name": "other", "arguments": [spec()]}
    assert not generate_arguments(case, 1)["x"].equal(drawn())


def test_rows_have_both_signs_and_means_and_scales_of_their_own() -> None:
    x = drawn((50, 400))
    assert bool(((x > 0).any(1) & (x < 0).any(1)).all())
    assert float(x.mean(1).std()) > 0.3
    assert float(x.std(1).max() / x.std(1).min()) > 2


@pytest.mark.parametrize(
    ("layout", "strides", "offset"),
    [
        ("contiguous", (40, 1), 0),
        ("transposed", (1, 6), 0),
        ("sliced", (80, 2), 0),
        ("offset", (40, 1), 1),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "int64", "bool"])
def test_a_layout_changes_the_place_and_not_the_values(
    layout: str, strides: tuple[int, ...], offset: int, dtype: str
) -> None:
    x = drawn(layout=layout, dtype=dtype)
    assert x.stride() == strides
    assert x.storage_offset() == offset
    assert x.double().equal(drawn(dtype=dtype).double())


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (0, 4)])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "offset", "far"])
@pytest.mark.parametrize("fill", FILLS)
def test_every_fill_and_layout_takes_small_and_empty_shapes(
    shape: tuple[int, ...], layout: str, fill: str
) -> None:
    assert drawn(shape, layout=layout, fill=fill).shape == shape


def test_ranges_are_half_open_in_every_dtype() -> None:
    for dtype in ("float32", "bfloat16", "float16"):
        x = drawn((100, 100), dtype=dtype, low=0.1, high=1.0).float()
        assert float(x.max()) < 1.0
        assert float(x.min()) >= 0.0996
    assert set(drawn((1000,), dtype="int64", low=2, high=5).tolist()) == {2, 3, 4}


def test_special_fills_hold_what_they_name() -> None:
    assert not drawn(fill="zeros").any()
    assert bool((drawn(fill="ones", dtype="int8") == 1).all())
    assert bool((drawn(fill="equal_rows").std(1) == 0).all())
    assert bool((drawn(fill="negative") < 0).all())
    assert drawn(fill="nan").isnan().sum() > 0
    assert {float(v) for v in drawn(fill="inf")[drawn(fill="inf").isinf()]} == {torch.inf, -torch.inf}


@pytest.mark.parametrize("shape", [(6, 40), (9,), (2,)])
def test_what_is_not_finite_meets_at_the_ends_of_several_tensors(shape: tuple[int, ...]) -> None:
    same, opposed = drawn(shape, fill="inf_ends"), drawn(shape, fill="inf_opposed", name="y")
    ends = torch.tensor([0, -1])
    assert (same + opposed).view(-1)[ends].isnan().tolist() == [False, True]
    assert (same - opposed).view(-1)[ends].isnan().tolist() == [True, False]
    assert drawn(shape, fill="nan_ends").view(-1)[ends].isnan().tolist() == [True, True]
    for fill in ("inf_ends", "inf_opposed", "nan_ends"):
        assert int((~drawn(shape, fill=fill).isfinite()).sum()) == 2


@pytest.mark.parametrize("dtype", [name for name in FLOATS if name != "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(6, 40), (2, 3, 5), (9,), (1, 9), ()])
def test_the_first_row_alone_is_minus_infinity(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(shape, fill="minus_inf_row", dtype=dtype).double()
    rows = x.reshape(-1, shape[-1] if shape else 1)
    assert bool((rows[0] == -torch.inf).all())
    assert bool(rows[1:].isfinite().all())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_large_and_small_values_stay_within_the_dtype(dtype: str) -> None:
    large, small = drawn(fill="large", dtype=dtype).float(), drawn(fill="small", dtype=dtype).float()
    assert bool(large.isfinite().all())
    assert float(large.abs().max()) > 10
    assert bool(small.any())
    assert float(small.abs().max()) < float(drawn(dtype=dtype).float().abs().max()) / 2


@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn", "float8_e5m2"])
def test_squares_of_huge_values_overflow_short_dtypes_in_every_second_row(dtype: str) -> None:
    x, limits = drawn((7, 400), fill="huge", dtype=dtype).double().abs(), torch.finfo(getattr(torch, dtype))
    assert float(x.max()) <= limits.max / 2
    assert bool((x[1::2] > math.sqrt(limits.max)).double().mean() > 0.8)
    assert float(x[::2].max()) < 15


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_cubes_of_huge_values_overflow_long_dtypes_and_sums_of_squares_do_not(dtype: str) -> None:
    x = drawn((7, 20_000), fill="huge", dtype=dtype)
    wide = x if dtype == "float64" else x.float()
    assert bool((wide[1::2] ** 3).isinf().double().mean() > 0.8)
    assert bool(wide.square().sum(1).isfinite().all())
    assert float(wide[::2].abs().max()) < 15


@pytest.mark.parametrize(
    ("shape", "share"), [((9,), 4 / 9), ((1, 9), 4 / 9), ((5, 9), 2 / 5), ((1,), 1), ((), 1), ((2, 1), 1 / 2)]
)
def test_no_more_than_half_of_several_rows_or_elements_is_huge(shape: tuple[int, ...], share: float) -> None:
    assert float((drawn(shape, fill="huge").abs() > 1e10).double().mean()) == pytest.approx(share)


@pytest.mark.parametrize("dtype", FLOATS)
def test_tiny_values_are_normal_and_denormal_ones_are_not(dtype: str) -> None:
    limits = torch.finfo(getattr(torch, dtype))
    small, subnormal = drawn(fill="tiny", dtype=dtype).double(), drawn(fill="denormal", dtype=dtype).double()
    assert bool((small.abs() >= limits.tiny).all())
    assert float(small.abs().max()) < 64 * limits.tiny**0.5
    assert bool(((subnormal.abs() < limits.tiny) & (subnormal != 0)).all())
    for values in (small, subnormal):
        assert bool((values > 0).any() & (values < 0).any())


@pytest.mark.parametrize("dtype", FLOATS)
def test_half_of_the_elements_are_negative_zeros(dtype: str) -> None:
    x = drawn(fill="negative_zero", dtype=dtype).double()
    zeros = x == 0
    assert 0.4 < float(zeros.float().mean()) < 0.6
    assert bool(x.signbit()[zeros].float().mean() > 0.9)
    one = drawn((1,), fill="negative_zero", dtype=dtype).double()
    assert one.item() == 0
    assert bool(one.signbit())


def test_signs_alternate_along_every_dimension() -> None:
    signs = drawn((4, 6, 5), fill="alternating").sign()
    assert bool((signs.abs() == 1).all())
    for dimension, size in enumerate(signs.shape):
        before, after = (signs.narrow(dimension, start, size - 1) for start in (0, 1))
        assert before.equal(-after)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int8", "uint8"])
def test_ties_are_few_values_and_every_row_repeats_them(dtype: str) -> None:
    low, high = (None, None) if "float" in dtype else (0 if dtype == "uint8" else -100, 100)
    x = drawn(fill="ties", dtype=dtype, low=low, high=high).double()
    assert 2 < len(x.unique()) <= 5
    largest = (x == x.max(dim=1, keepdim=True).values).sum(1)
    assert bool((largest > 1).all())


@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_are_the_same_numbers_in_every_floating_dtype(dtype: str) -> None:
    assert drawn(fill="ties", dtype=dtype).double().unique().tolist() == [-1, -0.5, 0, 0.5, 1]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (3, 6), (0, 1000), (-4, 4)])
def test_ties_of_integers_keep_to_their_range(low: int, high: int) -> None:
    values = set(drawn((1000,), fill="ties", dtype="int64", low=low, high=high).tolist())
    assert len(values) == min(high - low, 5)
    assert low <= min(values)
    assert max(values) < high


# Far tensors


@pytest.mark.parametrize(
    "shape", [(2,), (3,), (7, 64), (2, 5), (1, 8, 3), (5, 1, 4), (256, 1000), (2, 2), (100_003,), (4, 65536)]
)
def test_far_rows_pass_two_to_the_31_apart_from_each_other_and_within_what_is_counted(
    shape: tuple[int, ...],
) -> None:
    strides = large_strides(shape)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    rows, stride = max(zip(shape, strides, strict=True), key=lambda pair: pair[1])
    assert (rows - 1) * stride >= 2**31
    assert stride % 16 == 0
    assert stride < 2**31 or max(shape) == 2
    inner = sum((s - 1) * t for s, t in zip(shape, strides, strict=True) if t != stride)
    assert inner < stride
    counted = TensorArgument(name="x", dtype="int8", shape=shape, layout="far").span_bytes
    assert last < counted < 1.01 * last


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (0, 4)])
def test_a_tensor_without_two_rows_cannot_be_far(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="no two rows"):
        large_strides(shape)


def test_a_far_tensor_is_drawn_contiguous() -> None:
    assert drawn(layout="far").is_contiguous()
    assert drawn(layout="far").equal(drawn())


def test_a_perturbed_state_hides_neither_ones_nor_zeros() -> None:
    state = {
        "weight": torch.ones(50),
        "bias": torch.zeros(50),
        "running_mean": torch.zeros(50),
        "running_var": torch.ones(50),
        "mask": torch.tensor([0.0, 1.0]),
        "steps": torch.tensor(3),
    }
    moved = perturbed_state(state, {"weight", "bias"}, 1)
    assert float((moved["weight"] - 1).abs().mean()) > 0.05
    assert float(moved["bias"].abs().mean()) > 0.05
    assert float(moved["running_mean"].abs().mean()) > 0.05
    assert bool((moved["running_var"] > 0).all())
    assert float(moved["running_var"].std()) > 0.05
    assert moved["mask"].equal(state["mask"])
    assert moved["steps"].equal(state["steps"])
