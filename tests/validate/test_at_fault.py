"""How a wrong case fares in other ways says what is at fault, and no more than it shows."""

from pathlib import Path

import pytest

from pytorch_to_triton.hardware.miscompilations import MISCOMPILATIONS
from pytorch_to_triton.validate.at_fault import (
    AGAIN,
    BARRIERS,
    INTERPRETED,
    NO_CULPRIT,
    ONE_STAGE,
    OTHER_WARPS,
    UNOPTIMISED,
    Culprit,
    culprit_in,
)

from .verdicts import Judge

OLDER = "with ptxas 12.8"
WAYS = (INTERPRETED, AGAIN, ONE_STAGE, OTHER_WARPS, UNOPTIMISED, OLDER)


def fault(*right: str, untried: tuple[str, ...] = (), known: int = 0) -> Culprit:
    """Of a case that is right in these ways alone, assembled by ptxas 13.0."""
    seen = {way: way in right for way in WAYS if way not in untried}
    return culprit_in("N=64", seen, "13.0", MISCOMPILATIONS[:known])


def test_a_case_that_is_wrong_under_the_interpreter_too_is_the_kernels() -> None:
    found = culprit_in("N=64", {INTERPRETED: False}, "13.0", MISCOMPILATIONS)
    assert found == Culprit(
        "N=64 is wrong under Triton's interpreter: the kernel is at fault, not the compiler."
    )
    # Whatever else makes it right.
    assert fault(ONE_STAGE, OLDER).sentence.endswith("the kernel is at fault, not the compiler.")


def test_another_ptxas_that_is_right_is_named_with_the_one_that_is_wrong() -> None:
    found = fault(INTERPRETED, OLDER, UNOPTIMISED)
    assert found.sentence == (
        "N=64 is right under Triton's interpreter, with ptxas unoptimised and with ptxas 12.8, wrong when "
        "called once more as it is, with num_stages=1 and with another num_warps: ptxas 13.0 is at fault."
    )
    assert "ptxas 12.8, named with TRITON_PTXAS_PATH" in found.step
    assert "ptxas's version 13.0" in found.step


def test_code_without_optimisation_alone_or_fewer_stages_too_leave_a_race_possible() -> None:
    for right in [(UNOPTIMISED,), (OLDER, ONE_STAGE), (UNOPTIMISED, OTHER_WARPS)]:
        sentence = fault(INTERPRETED, *right).sentence
        assert "ptxas 13.0 is at fault most likely; a race that other code hides is not ruled out" in sentence


def test_fewer_stages_or_other_warps_point_to_the_order_of_accesses_and_leave_the_culprit_open() -> None:
    for way in (ONE_STAGE, OTHER_WARPS):
        found = fault(INTERPRETED, way)
        assert "lacks a barrier" in found.sentence
        assert "Which of the two is not known." in found.sentence
        assert found.step == BARRIERS


def test_a_case_that_is_wrong_only_sometimes_is_called_so_and_blames_no_compiler() -> None:
    found = fault(*WAYS)
    assert "it is not wrong each time, as with a race" in found.sentence
    assert "is at fault" not in found.sentence


def test_a_case_that_is_wrong_however_it_is_compiled_stays_undetermined() -> None:
    found = fault(INTERPRETED)
    assert "what is at fault is undetermined" in found.sentence
    assert found.step == ""


def test_without_an_interpreted_run_the_kernel_stays_under_suspicion() -> None:
    found = fault(OLDER, untried=(INTERPRETED,))
    assert "ptxas 13.0 is at fault" in found.sentence
    assert found.sentence.endswith("so the kernel may be at fault all the same.")
    assert culprit_in("N=64", {}, "13.0") == NO_CULPRIT


def test_a_known_miscompilation_that_fits_is_named_with_its_source_and_what_avoids_it() -> None:
    found = fault(INTERPRETED, known=1)
    assert MISCOMPILATIONS[0].sources[0] in found.sentence
    assert found.step == MISCOMPILATIONS[0].avoid


MAXIMA = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, 8]"}
DIMS = {"M": [1, 5]}


def reference(x):
    return x.amax(-1).sum()


@triton.jit
def maxima_kernel(x_ptr, out_ptr, n_rows, BLOCK_M: tl.constexpr):
    total = tl.zeros([BLOCK_M], tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        row = start + tl.arange(0, BLOCK_M)
        x = tl.load(x_ptr + row[:, None] * 8 + tl.arange(0, 8), mask=row[:, None] < n_rows, other=0.0)
        total += tl.max(x, axis=1)
    tl.store(out_ptr, tl.sum(total, axis=0))


def run(x):
    x = x.contiguous()
    out = torch.empty((), device=x.device)
    maxima_kernel[(1,)](x, out, x.shape[0], BLOCK_M=4)
    return out
"""


@pytest.mark.anyio
async def test_what_triton_compiles_wrongly_is_said_where_only_the_interpreter_ran(
    judge: Judge, tmp_path: Path
) -> None:
    file = tmp_path / "maxima.py"
    for text, seen in ((MAXIMA, True), (MAXIMA.replace("tl.max(x,", "tl.max(x + 0.0,"), False)):
        file.write_text(text, encoding="utf-8")
        verdict = await judge(file, cases=("M=5",))
        assert verdict.verdict == "passed"
        assert any("as if both were one reduction" in note for note in verdict.notes) is seen
