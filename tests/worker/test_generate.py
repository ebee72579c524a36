"""Inputs are generated as the case describes them, and the same again from the same seed."""

import math
from collections import Counter
from itertools import product
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
    return TensorArgument.model_validate(
        {"name": "x", "dtype": "float32", "shape": shape, **changes}
    ).model_dump()


def generated(shape: tuple[int, ...] = (6, 40), seed: int = 1, **changes: Any) -> torch.Tensor:
    tensor: torch.Tensor = generate_argument("case", spec(shape, **changes), seed)
    return tensor


def test_a_tensor_depends_on_seed_case_and_name_only() -> None:
    assert generated().equal(generated())
    assert not generated().equal(generated(seed=2))
    assert not generated().equal(generated(name="y"))
    case = {"name": "other", "arguments": [spec()]}
    assert not generate_arguments(case, 1)["x"].equal(generated())


def test_rows_have_both_signs_and_means_and_scales_of_their_own() -> None:
    x = generated((50, 400))
    assert bool(((x > 0).any(1) & (x < 0).any(1)).all())
    assert float(x.mean(1).std()) > 0.3
    assert float(x.std(1).max() / x.std(1).min()) > 2


LAYOUTS = {
    "contiguous": ((40, 1), 0),
    "transposed": ((1, 6), 0),
    "sliced": ((80, 2), 0),
    "offset": ((40, 1), 1),
}


def test_a_layout_changes_the_place_and_not_the_values() -> None:
    for layout, dtype in product(LAYOUTS, ["float32", "bfloat16", "float8_e5m2", "int64", "bool"]):
        x = generated(layout=layout, dtype=dtype)
        assert (x.stride(), x.storage_offset()) == LAYOUTS[layout], (layout, dtype)
        assert x.double().equal(generated(dtype=dtype).double()), (layout, dtype)


def test_every_fill_and_layout_takes_small_and_empty_shapes() -> None:
    for shape, layout, fill in product([(), (1,), (0,), (3, 0), (0, 4)], [*LAYOUTS, "large_stride"], FILLS):
        assert generated(shape, layout=layout, fill=fill).shape == shape, (layout, fill)


def test_ranges_are_half_open_in_every_dtype() -> None:
    for dtype in ("float32", "bfloat16", "float16"):
        x = generated((100, 100), dtype=dtype, low=0.1, high=1.0).float()
        assert float(x.max()) < 1.0
        assert float(x.min()) >= 0.0996
    assert set(generated((1000,), dtype="int64", low=2, high=5).tolist()) == {2, 3, 4}


def test_a_part_of_the_integers_is_outside_of_the_range() -> None:
    x = generated((4000,), dtype="int64", low=0, high=9, outside=-100)
    assert set(x.tolist()) == {-100, *range(9)}
    assert 0.08 < float((x == -100).float().mean()) < 0.18
    assert -100 not in generated((4000,), dtype="int64", low=0, high=9, outside=-100, fill="ties").tolist()


def test_the_ends_of_a_range_are_the_low_one_and_the_largest_number_below_the_high_one() -> None:
    for dtype, (low, high) in product(FLOATS, [(0.0, 1.0), (-2.0, -1.0), (1.0, 96.0)]):
        x = generated((8, 40), dtype=dtype, low=low, high=high, fill="ends").double()
        top = float(x.max())
        between = torch.tensor((top + high) / 2, dtype=torch.float64).to(getattr(torch, dtype))
        assert float(x.min()) == low, dtype
        assert top < high, dtype
        assert float(between) in (top, high), (dtype, top)
        for end in (low, top):
            assert int((x == end).sum()) >= 40, (dtype, end)
    below_zero = generated(low=-2.0, high=0.0, fill="ends")
    assert float(below_zero.max()) == -torch.finfo(torch.float32).tiny
    assert generated((), low=0.0, high=1.0, fill="ends").item() == 0.0


def test_given_numbers_are_one_element_in_eight_each_in_turn() -> None:
    for dtype in FLOATS:
        numbers = (0.5, -0.5, 0.25, 1024.0)
        x = generated((10, 80), dtype=dtype, among=numbers).double()
        held = [int((x == number).sum()) for number in numbers]
        most = torch.finfo(getattr(torch, dtype)).max
        assert sum(held) >= 100, dtype
        assert [count >= 25 for count in held] == [True, True, True, most > 1024], dtype
        assert bool(x.isfinite().all()), dtype
    assert generated((), among=(0.7,)).item() == torch.tensor(0.7).item()
    assert generated((0,), among=(0.7,)).shape == (0,)


def test_extreme_integers_are_neighbours_in_each_row() -> None:
    ends = {"int8": 2, "uint8": 2, "int16": 2, "int32": 3, "int64": 5}
    for dtype, pairs in ends.items():
        limits = torch.iinfo(getattr(torch, dtype))
        x = generated((10, 400), dtype=dtype, low=-100, high=100, fill="extremes")
        found = {tuple(sorted(n for n, _ in Counter(row.tolist()).most_common(2))) for row in x}
        assert {(limits.min, limits.min + 1), (limits.max - 1, limits.max)} <= found, dtype
        assert all(high == low + 1 for low, high in found), dtype
        assert len(found) == pairs, dtype
    single = generated((400,), dtype="int64", low=-100, high=100, fill="extremes")
    assert {2**31 + 1, 2**53 + 1} <= set(single.tolist())


def test_integers_are_all_outside_of_their_range() -> None:
    assert set(generated(dtype="int64", low=0, high=9, outside=-100, fill="outside").view(-1).tolist()) == {
        -100
    }


def test_special_fills_hold_what_they_name() -> None:
    assert not generated(fill="zeros").any()
    assert bool((generated(fill="ones", dtype="int8") == 1).all())
    assert bool((generated(fill="equal_rows").std(1) == 0).all())
    assert bool((generated(fill="negative") < 0).all())
    assert generated(fill="nan").isnan().sum() > 0
    assert {float(v) for v in generated(fill="inf")[generated(fill="inf").isinf()]} == {torch.inf, -torch.inf}


def test_a_row_of_one_sign_has_its_largest_alone_at_the_end_and_the_next_row_at_the_start() -> None:
    for fill in ("positive", "negative"):
        x = generated((3, 5000), fill=fill, dtype="float16")
        assert x.argmax(1).tolist() == [4999, 0, 4999]
        assert (x == x.max(1, keepdim=True).values).sum(1).tolist() == [1, 1, 1]


def test_what_is_not_finite_meets_at_the_ends_of_several_tensors() -> None:
    ends = torch.tensor([0, -1])
    for shape in ((6, 40), (9,), (2,)):
        same, opposed = generated(shape, fill="inf_ends"), generated(shape, fill="inf_opposed", name="y")
        assert (same + opposed).view(-1)[ends].isnan().tolist() == [False, True]
        assert (same - opposed).view(-1)[ends].isnan().tolist() == [True, False]
        assert generated(shape, fill="nan_ends").view(-1)[ends].isnan().tolist() == [True, True]
        for fill in ("inf_ends", "inf_opposed", "nan_ends"):
            assert int((~generated(shape, fill=fill).isfinite()).sum()) == 2


def test_the_first_row_alone_is_minus_infinity() -> None:
    shapes: list[tuple[int, ...]] = [(6, 40), (2, 3, 5), (9,), (1, 9), ()]
    for dtype, shape in product(set(FLOATS) - {"float8_e4m3fn"}, shapes):
        x = generated(shape, fill="minus_inf_row", dtype=dtype).double()
        rows = x.reshape(-1, shape[-1] if shape else 1)
        assert bool((rows[0] == -torch.inf).all()), (dtype, shape)
        assert bool(rows[1:].isfinite().all()), (dtype, shape)


def test_large_and_small_values_stay_within_the_dtype() -> None:
    for dtype in ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]:
        large, small = (
            generated(fill="large", dtype=dtype).float(),
            generated(fill="small", dtype=dtype).float(),
        )
        assert bool(large.isfinite().all())
        assert float(large.abs().max()) > 10
        assert bool(small.any())
        assert float(small.abs().max()) < float(generated(dtype=dtype).float().abs().max()) / 2


def test_squares_of_huge_values_overflow_short_dtypes_in_every_second_row() -> None:
    for dtype in ["float16", "float8_e4m3fn", "float8_e5m2"]:
        x, limits = (
            generated((7, 400), fill="huge", dtype=dtype).double().abs(),
            torch.finfo(getattr(torch, dtype)),
        )
        assert float(x.max()) <= limits.max / 2
        assert bool((x[:-1:2] > math.sqrt(limits.max)).double().mean() > 0.8)
        assert float(x[1::2].max()) < 15


def test_cubes_of_huge_values_overflow_long_dtypes_and_sums_of_squares_do_not() -> None:
    for dtype in ["float64", "float32", "bfloat16"]:
        x = generated((7, 20_000), fill="huge", dtype=dtype)
        wide = x if dtype == "float64" else x.float()
        assert bool((wide[:-1:2] ** 3).isinf().double().mean() > 0.8)
        assert bool(wide.square().sum(1).isfinite().all())
        assert float(wide[1::2].abs().max()) < 15


def test_no_more_than_half_of_several_rows_or_elements_is_huge() -> None:
    shares = {(9,): 4 / 9, (1, 9): 4 / 9, (5, 9): 2 / 5, (1,): 1, (): 1, (2, 1): 1 / 2}
    for shape, share in shares.items():
        assert float((generated(shape, fill="huge").abs() > 1e10).double().mean()) == pytest.approx(share)


def test_a_row_that_is_repeated_holds_what_the_values_are_named_after() -> None:
    for seed in range(20):
        repeated = {
            fill: generated((40, 3), seed, fill=fill, layout="expanded").double()
            for fill in ("nan", "inf", "huge")
        }
        assert bool(repeated["nan"].isnan().any())
        assert bool(repeated["inf"].isinf().any())
        assert float(repeated["huge"].abs().max()) > 1e10


def test_faint_rows_are_subnormal_barely_normal_once_squared_and_small_in_turn() -> None:
    for dtype in FLOATS:
        limits = torch.finfo(getattr(torch, dtype))
        faint = generated((9, 200), fill="faint_rows", dtype=dtype).double()
        subnormal, tiny = faint[::3], faint[1::3]
        assert bool((tiny.abs() >= limits.tiny).all())
        assert float(tiny.abs().max()) < 64 * limits.tiny**0.5
        assert bool(((subnormal.abs() < limits.tiny) & (subnormal != 0)).all())
        for values in (tiny, subnormal):
            assert bool((values > 0).any() & (values < 0).any())


def test_half_of_the_elements_are_negative_zeros() -> None:
    for dtype in FLOATS:
        x = generated(fill="negative_zero", dtype=dtype).double()
        zeros = x == 0
        assert 0.4 < float(zeros.float().mean()) < 0.6
        assert bool(x.signbit()[zeros].float().mean() > 0.9)
        one = generated((1,), fill="negative_zero", dtype=dtype).double()
        assert one.item() == 0
        assert bool(one.signbit())


def test_signs_alternate_along_every_dimension() -> None:
    signs = generated((4, 6, 5), fill="alternating").sign()
    assert bool((signs.abs() == 1).all())
    for dimension, size in enumerate(signs.shape):
        before, after = (signs.narrow(dimension, start, size - 1) for start in (0, 1))
        assert before.equal(-after)


def test_ties_are_few_values_and_every_row_repeats_them() -> None:
    for dtype in [*FLOATS, "int64", "int8", "uint8"]:
        low, high = (None, None) if "float" in dtype else (0 if dtype == "uint8" else -100, 100)
        x = generated(fill="ties", dtype=dtype, low=low, high=high).double()
        assert 2 < len(x.unique()) <= 5
        largest = (x == x.max(dim=1, keepdim=True).values).sum(1)
        assert bool((largest > 1).all())


def test_ties_are_the_same_numbers_in_every_floating_dtype() -> None:
    for dtype in FLOATS:
        assert generated(fill="ties", dtype=dtype).double().unique().tolist() == [-1, -0.5, 0, 0.5, 1]


def test_ties_of_integers_keep_to_their_range() -> None:
    for low, high in ((0, 1), (3, 6), (0, 1000), (-4, 4)):
        values = set(generated((1000,), fill="ties", dtype="int64", low=low, high=high).tolist())
        assert len(values) == min(high - low, 5)
        assert low <= min(values)
        assert max(values) < high


SHAPES = [(2,), (3,), (7, 64), (2, 5), (1, 8, 3), (5, 1, 4), (256, 1000), (2, 2), (100_003,), (4, 65536)]


def test_large_strides_put_rows_past_two_to_the_31_and_take_what_is_counted() -> None:
    for shape in SHAPES:
        strides = large_strides(shape)
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        rows, stride = max(zip(shape, strides, strict=True), key=lambda pair: pair[1])
        assert (rows - 1) * stride >= 2**31
        assert stride % 16 == 0
        assert stride < 2**31 or max(shape) == 2
        inner = sum((s - 1) * t for s, t in zip(shape, strides, strict=True) if t != stride)
        assert inner < stride
        counted = TensorArgument(name="x", dtype="int8", shape=shape, layout="large_stride").span_bytes
        assert last < counted < 1.01 * last


def test_a_tensor_without_two_rows_has_no_large_strides() -> None:
    for shape in ((), (1,), (1, 1), (0, 4)):
        with pytest.raises(ValueError, match="no two rows"):
            large_strides(shape)


def test_a_tensor_with_large_strides_is_generated_contiguous() -> None:
    assert generated(layout="large_stride").is_contiguous()
    assert generated(layout="large_stride").equal(generated())


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


@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_even_a_small_tensor_has_one_element_that_is_not_finite(shape: tuple[int, ...]) -> None:
    assert int(generated(shape, fill="nan").isnan().sum()) == 1
    assert int(generated(shape, fill="inf").isinf().sum()) == 1
