"""Inputs are drawn as the case says, and again the same from the same seed."""

from typing import Any

import pytest
import torch

from pytorch_to_triton.worker.draw import draw_argument, draw_arguments, perturbed_state


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
    tensor: torch.Tensor = draw_argument("case", spec(shape, **changes), seed)
    return tensor


def test_a_tensor_depends_on_seed_case_and_name_only() -> None:
    assert drawn().equal(drawn())
    assert not drawn().equal(drawn(seed=2))
    assert not drawn().equal(drawn(name="y"))
    case = {"name": "other", "arguments": [spec()]}
    assert not draw_arguments(case, 1)["x"].equal(drawn())


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
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "offset"])
@pytest.mark.parametrize("fill", ["random", "equal_rows", "large", "inf", "nan"])
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


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_large_and_small_values_stay_within_the_dtype(dtype: str) -> None:
    large, small = drawn(fill="large", dtype=dtype).float(), drawn(fill="small", dtype=dtype).float()
    assert bool(large.isfinite().all())
    assert float(large.abs().max()) > 10
    assert bool(small.any())
    assert float(small.abs().max()) < float(drawn(dtype=dtype).float().abs().max()) / 2


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
