"""From statistics to a mismatch: the kind of a mistake, its place and its likely causes."""

from dataclasses import replace
from typing import Any

import pytest

from pytorch_to_triton.validate.mismatch import CAUSES, mismatches_of, place_of
from pytorch_to_triton.worker.wire.statistics import (
    CaseStatistics,
    Diagnostics,
    Spread,
)

from .builders import TENSOR, output, statistics


def spread(size: int, *failing: int, step: int = 1) -> Spread:
    return Spread(size=size, count=len(failing), first=failing[0], last=failing[-1], step=step)


def facts(*along: Spread, flat: Spread | None = None, **seen: Any) -> Diagnostics:
    """Facts about failing elements that fill the box of the dimensions; 4 of them by default."""
    along = along or (spread(4, 0, 1, 2, 3),)
    count, size = 1, 1
    for axis in along:
        count, size = count * axis.count, size * axis.size
    nothing: dict[str, Any] = {
        "first": tuple(axis.first for axis in along),
        "values": {"candidate": 1.5, "pytorch": 2.0, "truth": 2.0},
        "share_of_box": 1.0,
        **dict.fromkeys(("failing_nan", "failing_inf", "failing_zero", "truth_not_finite"), 0),
        "constant": False,
        "transposed": False,
        "relative_error": 0.5,
        **dict.fromkeys(("equals_input", "rounded_to", "factor", "factor_leaves", "offset", "offset_leaves")),
    }
    whole = flat or Spread(size=size, count=count, first=0, last=size - 1, step=1)
    return Diagnostics(along=along, flat=whole, **{**nothing, **seen})


def measured(found: Diagnostics) -> CaseStatistics:
    return statistics(output(elements=found.flat.size, failing=found.flat.count, diagnostics=found))


def on_diagonal(offset: int) -> Diagnostics:
    """Three failing elements of a 9 x 9 matrix, all at column minus row."""
    rows = range(3, 6)
    columns = [row + offset for row in rows]
    flat = Spread(size=81, count=3, first=27 + columns[0], last=45 + columns[-1], step=10)
    return facts(spread(9, *rows), spread(9, *columns), flat=flat, share_of_box=1 / 3, diagonal=offset)


def scattered(**seen: Any) -> Diagnostics:
    """Four failing elements of a 9 x 9 matrix, of no pattern."""
    flat = Spread(size=81, count=4, first=1, last=70, step=1)
    return facts(spread(9, 1, 2, 7), spread(9, 1, 4, 7), share_of_box=0.4, flat=flat, **seen)


COLUMNS = spread(3, 0, 1, 2)
PLACES = [
    (facts(spread(8, *range(8))), "everywhere", "every element"),
    (
        facts(spread(100, *range(96, 100))),
        "tail",
        "elements 96 to 99 of 100, where a block of 32 would begin",
    ),
    (facts(COLUMNS, spread(20, *range(17, 20))), "tail", "columns 17 to 19 of 20"),
    (facts(COLUMNS, spread(20, 7)), "one_index", "column 7 (of 20)"),
    (facts(spread(5, 2), spread(20, *range(20))), "one_index", "row 2 (of 5)"),
    (facts(COLUMNS, spread(20, 3, 7, 11, 15, 19, step=4)), "every_nth", "every 4th column, from 3 on"),
    (facts(COLUMNS, spread(20, *range(4, 9))), "range", "5 of 20 columns, from 4 to 8"),
    (facts(COLUMNS, spread(4, 0, 1, 2, 3), spread(9, 5)), "one_index", "dim-2 slice 5 (of 9)"),
    (facts(spread(20, 4), flat=spread(20, 4)), "one_index", "single element [4]"),
    (
        facts(spread(3, 1, 2), spread(20, *range(20)), share_of_box=0.6, flat=spread(60, *range(36, 60))),
        "range",
        "2 of 3 rows, from 1 to 2",
    ),
    (
        facts(spread(3, 1, 2), spread(20, *range(5, 20)), share_of_box=0.4, flat=spread(60, *range(48, 60))),
        "tail",
        "the last 12 of 60 elements",
    ),
    (scattered(), "scattered", "4 of 81 elements, without an evident pattern"),
    (on_diagonal(0), "diagonal", "on the main diagonal"),
    (on_diagonal(1), "diagonal", "on the diagonal 1 above the main one"),
    (on_diagonal(-3), "diagonal", "on the diagonal 3 below the main one"),
    (facts(spread(100, *range(99))), "everywhere", "almost every element (99 of 100)"),
]


@pytest.mark.parametrize(("found", "where", "text"), PLACES, ids=[p[2] for p in PLACES])
def test_failing_elements_are_placed_by_the_simplest_pattern(
    found: Diagnostics, where: str, text: str
) -> None:
    place = place_of(found)
    assert place.where == where
    assert text in place.text


KINDS: list[tuple[dict[str, Any], str, str]] = [
    ({"transposed": True}, "transposed", "the right values transposed"),
    (
        {"unwritten": 4, "failing_nan": 4},
        "unwritten",
        "never written, it still holds what was in memory before",
    ),
    ({"unwritten": 3, "failing_nan": 4}, "nan_only", "NaN instead of numbers"),
    ({"truth_not_finite": 4}, "not_propagated", "NaN or infinity is expected"),
    ({"failing_nan": 4}, "nan_only", "NaN instead of numbers"),
    ({"failing_inf": 4}, "infinite", "infinities instead of numbers"),
    ({"failing_zero": 4}, "all_zero", "zero instead of numbers"),
    ({"equals_input": "x"}, "equals_input", "equals the input x"),
    ({"constant": True}, "constant", "the same value"),
    ({"factor": 0.75, "factor_leaves": 1e-6}, "constant_factor", "times a constant 0.75"),
    ({"factor": 0.75, "factor_leaves": 0.05}, "values", "the values differ"),
    (
        {"factor": 1.5, "factor_leaves": 0.0, "offset": 1.0, "offset_leaves": 0.0},
        "values",
        "the values differ",
    ),
    (
        {"factor": 0.9, "factor_leaves": 0.09, "offset": 0.01, "offset_leaves": 1e-6},
        "constant_offset",
        "plus a constant 0.01",
    ),
    ({"rounded_to": "float16", "relative_error": None}, "low_precision", "precise as float16"),
    ({"relative_error": 1e-3}, "low_precision", "off by a few digits, by 0.001 of its size"),
    ({}, "values", "the values differ"),
]


@pytest.mark.parametrize(("seen", "kind", "words"), KINDS, ids=[f"{k[1]}: {k[2]}" for k in KINDS])
def test_wrong_values_are_named_by_what_they_have_in_common(
    seen: dict[str, Any], kind: str, words: str
) -> None:
    [mismatch] = mismatches_of(measured(facts(**seen)))
    assert mismatch.kind == kind
    assert words in mismatch.message
    ours = "unwritten" if kind == "unwritten" else "1.5"
    assert f"First at [0]: {ours}, PyTorch 2, float64 2." in mismatch.message


@pytest.mark.parametrize(
    ("differs", "candidate", "kind", "words"),
    [
        ("dtype", {"dtype": "float16"}, "dtype", "dtype float16 instead of float32"),
        ("shape", {"shape": (4, 1)}, "shape", "shape [4, 1] instead of [8]"),
        ("device", {"device": "cuda"}, "device", "device cuda instead of cpu"),
        ("type", {"type": "float"}, "type", "type float instead of Tensor"),
    ],
)
def test_a_wrong_trait_is_named_with_both_values(
    differs: str, candidate: dict[str, Any], kind: str, words: str
) -> None:
    other = output(path="out[1]", differs=differs, candidate=replace(TENSOR, **candidate))
    [mismatch] = mismatches_of(statistics(other))
    assert mismatch.kind == kind
    assert words in mismatch.message


def test_outputs_that_only_one_side_has_are_named() -> None:
    found = statistics(missing=("out[1]",), extra=("out[2]",), mutated={"x after the call": "x"})
    kinds = [(mismatch.output, mismatch.kind) for mismatch in mismatches_of(found)]
    assert kinds == [
        ("out[1]", "missing_output"),
        ("out[2]", "extra_output"),
        ("x after the call", "mutates_input"),
    ]


def causes(found: Diagnostics, **known: float) -> tuple[str, ...]:
    [mismatch] = mismatches_of(measured(found), known)
    return mismatch.causes


def test_a_tail_from_a_block_on_that_is_never_stored_points_at_the_grid() -> None:
    [dropped] = causes(facts(spread(100, *range(96, 100)), failing_zero=4))
    assert "triton.cdiv" in dropped
    unwritten = causes(facts(spread(100, *range(96, 100)), unwritten=4))
    assert "triton.cdiv" in unwritten[0]
    assert unwritten[1:] == (CAUSES["unwritten"],)


@pytest.mark.parametrize("first", [97, 90], ids=["off a block's edge", "at no block of eight"])
def test_a_tail_that_starts_within_a_block_is_not_blamed_on_the_grid(first: int) -> None:
    assert causes(facts(spread(100, *range(first, 100)), failing_zero=100 - first)) == ()


@pytest.mark.parametrize(
    ("factor", "known", "cause"),
    [
        (100.0, {"N": 100}, "The factor is N: a division by N is missing, or N is applied twice."),
        (0.01, {"N": 100}, "The factor is 1/N: N is missing, or divided by twice."),
        (100 / 128, {"N": 100}, "The factor is N / 128: a mean divides by the padded block"),
        (99 / 100, {"N": 100}, "The factor is (N - 1) / N: N and N - 1 are mistaken for each other."),
        ((100 / 99) ** 0.5, {"N": 100}, "The factor is sqrt(N / (N - 1)): N and N - 1 are mistaken"),
        (0.125, {"D": 64}, "The factor is 1/sqrt(D)"),
        (0.3, {"alpha": 0.3}, "The factor is alpha"),
        (-1.0, {"N": 100}, "The sign is wrong."),
    ],
)
def test_a_factor_that_is_one_of_the_cases_own_numbers_shows_the_cause(
    factor: float, known: dict[str, float], cause: str
) -> None:
    [named] = causes(facts(factor=factor, factor_leaves=1e-6), **known)
    assert named.startswith(cause)


@pytest.mark.parametrize(
    ("factor", "known"),
    [(0.75, {"N": 100}), (1.0039, {"N": 100}), (100.0, {"M": 100, "N": 10, "K": 10_000}), (2.0, {})],
    ids=["no number of the case", "a rounding error", "several numbers", "nothing known"],
)
def test_a_factor_that_may_be_anything_has_no_cause(factor: float, known: dict[str, float]) -> None:
    assert causes(facts(factor=factor, factor_leaves=1e-6), **known) == ()


def test_a_few_scattered_elements_make_no_constant_factor() -> None:
    [mismatch] = mismatches_of(measured(scattered(factor=1.5, factor_leaves=1e-6)), {"N": 9})
    assert (mismatch.kind, mismatch.causes) == ("values", ())


def test_an_offset_that_is_an_argument_shows_the_cause_and_another_none() -> None:
    found = facts(offset=1e-5, offset_leaves=1e-6, factor=1.0, factor_leaves=0.9)
    [named] = causes(found, eps=1e-5)
    assert named == "The offset is eps: it is added once too often, or not subtracted."
    [missing] = causes(found, eps=-1e-5)
    assert missing.startswith("The offset is -eps: it is not added")
    assert causes(found, eps=1e-6) == ()


def test_nan_that_is_dropped_is_told_apart_from_other_ways_to_lose_it() -> None:
    due = {"candidate": 1.5, "pytorch": "nan", "truth": "nan"}
    [dropped] = causes(facts(truth_not_finite=4, values=due))
    assert "tl.maximum" in dropped
    assert causes(facts(truth_not_finite=4, values={**due, "candidate": "inf"})) == ()
    assert causes(facts(truth_not_finite=4, values={**due, "truth": "inf", "pytorch": "inf"})) == ()


def test_values_that_a_short_dtype_holds_were_rounded_to_it_and_others_are_only_imprecise() -> None:
    [rounded] = causes(facts(rounded_to="bfloat16"))
    assert rounded.startswith("Values are rounded to bfloat16")
    assert causes(facts(relative_error=1e-3)) == ()


def test_a_wrong_diagonal_points_at_a_comparison_of_row_and_column() -> None:
    [mismatch] = mismatches_of(measured(on_diagonal(1)))
    assert (mismatch.kind, mismatch.where) == ("values", "diagonal")
    assert "causal mask" in mismatch.causes[0]


def test_a_small_error_in_one_column_is_no_lack_of_precision() -> None:
    column = facts(spread(8, *range(8)), spread(9, 3), relative_error=1e-3)
    [mismatch] = mismatches_of(measured(column))
    assert mismatch.kind == "values"
