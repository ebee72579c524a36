"""Which cases run under compute-sanitizer, and what its hazards mean."""

from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.profilers.sanitizer import Hazard, parse_report
from pytorch_to_triton.validate.memory_check import ELEMENTS, remarks, sample_cases, violations_of_hazards

from .plans import planned

REPORTS = Path(__file__).parents[1] / "profilers" / "sanitizer_reports"


def hazard(**fields: Any) -> Hazard:
    usual = {"kind": "read", "space": "global", "kernel": "k", "file": "san.py", "line": 4, "size_bytes": 16}
    return Hazard(**{**usual, **fields})


def recorded(name: str) -> tuple[Hazard, ...]:
    return parse_report((REPORTS / f"{name}.txt").read_text())


def test_one_small_case_of_each_sort_is_chosen_in_the_plans_order() -> None:
    dims: dict[str, object] = {"M": [4, 16, 64], "N": [64, 100, 256]}
    cases = planned({"x": "float32|float16[M, N]", "w": "float32[N]"}, dims, limit=2**26).cases
    picked = sample_cases(cases)
    assert {"M=16 N=100", "M=4 N=64", "M=17 N=103", "M=16 N=100 float16"} <= {case.name for case in picked}
    assert any(1 in case.dims.values() for case in picked)
    layouts = {tensor.layout for case in picked for tensor in tensors_in(case.arguments)}
    assert {"transposed", "sliced", "offset"} <= layouts
    assert [case for case in cases if case in picked] == picked


@pytest.mark.parametrize("rows", [[1], [128], [0, 2], [3, 5000, 100_000]])
@pytest.mark.parametrize("columns", [[1], [7], [16, 4096], [100_000]])
def test_chosen_cases_are_few_small_and_neither_strided_far_nor_repeated(
    rows: list[int], columns: list[int]
) -> None:
    inputs: dict[str, object] = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[N, M]"}
    picked = sample_cases(planned(inputs, {"M": rows, "N": columns}, limit=2**26).cases)
    assert len(picked) <= 10
    assert len({case.name for case in picked}) == len(picked)
    assert all(case.elements <= ELEMENTS for case in picked)
    assert {case.group for case in picked} <= {"declared", "odd", "combined", "dtype"}
    assert all(tensor.layout != "large_stride" for case in picked for tensor in tensors_in(case.arguments))


def test_a_target_that_generates_its_own_inputs_is_chosen_as_it_is() -> None:
    case = Case(name="base", group="declared", dims={}, arguments=())
    assert sample_cases([case]) == [case]
    assert sample_cases([]) == []


def test_a_read_past_the_end_is_reported_with_its_place_its_distance_and_how_many() -> None:
    read, write = violations_of_hazards(recorded("overrun"))
    assert (read.kind, read.file, read.line) == ("load_outside", "scale.py", 14)
    assert read.message == (
        "scale_rows (scale.py:14) loads 16 bytes outside of every tensor, "
        "1 bytes after the nearest allocation of size 4,000 bytes (2 threads)."
    )
    assert "Mask" in read.suggestion
    assert (write.kind, write.line) == ("store_outside", 15)
    assert "stores 4 bytes outside" in write.message


def test_an_atomic_outside_is_a_store() -> None:
    (violation,) = violations_of_hazards([hazard(kind="atomic", size_bytes=4)])
    assert violation.kind == "store_outside"
    assert violation.message == "k (san.py:4) atomically changes 4 bytes outside of every tensor (1 thread)."


def test_an_access_gigabytes_away_is_put_down_to_narrow_offsets() -> None:
    (violation,) = violations_of_hazards([hazard(outside_bytes=3_396_604_021)])
    assert "int64" in violation.suggestion


def test_a_misaligned_access_is_not_reported_as_outside() -> None:
    (violation,) = violations_of_hazards(recorded("misaligned"))
    assert "at a misaligned address, inside the nearest allocation" in violation.message
    assert "multiple_of" in violation.suggestion


def test_a_race_between_a_write_and_a_read_is_a_violation() -> None:
    (violation,) = violations_of_hazards(recorded("races"))
    assert (violation.kind, violation.line) == ("race", 27)
    assert "stage.py:30" in violation.message
    assert "1040 hazards" in violation.message


def test_what_honest_reductions_and_the_compiler_cause_is_remarked_only() -> None:
    hazards = [*recorded("races"), *recorded("shared"), hazard(kind="leak", space="", kernel="")]
    assert len(violations_of_hazards(hazards)) == 1
    remarked = [*remarks(hazards)]
    assert len(remarked) == len(hazards) - 1
    assert "total (" in remarked[0]
    assert "write race in shared memory" in remarked[0]
    assert all("stage.py:30" not in remark for remark in remarked)


@pytest.mark.parametrize("report", sorted(path.stem for path in REPORTS.glob("*.txt")))
def test_each_hazard_is_either_a_violation_or_remarked(report: str) -> None:
    hazards = recorded(report)
    assert hazards
    assert len(violations_of_hazards(hazards)) + len([*remarks(hazards)]) == len(hazards)
