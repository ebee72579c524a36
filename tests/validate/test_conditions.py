"""What a failing case takes, and what a refused one leaves to try."""

from pathlib import Path

import pytest

from .kernel_files import changed_file, double_file
from .verdicts import Judge

pytestmark = pytest.mark.anyio

ROW_MAX = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 6], "N": [4, 64]}


def reference(x):
    return x.amax(dim=-1)


@triton.jit
def row_max_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=PADDING)
    largest = tl.reduce(x, 0, larger)
    tl.store(out_ptr + row, largest)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


def run(x):
    CHECK
    x = x.contiguous()
    out = x.new_empty(x.shape[0])
    if x.numel():
        row_max_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""
NO_CHECK = ("    CHECK\n", "")


def row_max_file(folder: Path, padding: str, check: tuple[str, str] = NO_CHECK) -> Path:
    return changed_file(folder, ROW_MAX, ("PADDING", padding), check, ("DIMS", 'REQUIRES = ["N > 0"]\nDIMS'))


async def test_a_padding_that_only_negative_rows_show_is_found_with_both_conditions(
    judge: Judge, tmp_path: Path
) -> None:
    verdict = await judge(row_max_file(tmp_path, "0.0"))
    assert verdict.verdict == "failed"
    assert "negative together." in verdict.summary
    assert "(right at N=4; declared up to " in verdict.summary
    assert verdict.smallest == "M=1 N=3 negative"
    assert verdict.smallest in verdict.replay


async def test_a_finite_padding_shows_in_a_row_of_infinity_with_a_tail(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(row_max_file(tmp_path, "-1e38"))
    assert verdict.verdict == "failed"
    assert "minus inf row in x together." in verdict.summary


async def test_values_are_tried_without_the_layouts_that_a_kernel_refuses(
    judge: Judge, tmp_path: Path
) -> None:
    refuses = ("    CHECK\n", '    assert x.is_contiguous(), "x must be contiguous"\n')
    wrong = await judge(row_max_file(tmp_path, "0.0", refuses))
    assert wrong.verdict == "failed"
    right = await judge(row_max_file(tmp_path, "-float('inf')", refuses))
    assert right.verdict == "passed"
    [limit] = right.limits
    assert limit.subject == "rows far apart and other memory layouts"
    passed = [case.name for case in right.cases if case.status == "passed"]
    for values in ("negative", "nan in x", "minus inf row in x", "zeros", "equal rows"):
        assert any(name.endswith(values) for name in passed), values


async def test_a_size_that_a_kernel_refuses_is_not_blamed_on_the_layout(judge: Judge, tmp_path: Path) -> None:
    refuses = (
        "    x = x.contiguous()\n",
        "    x = x.contiguous()\n    assert x.numel() < 10, 'too long'\n",
    )
    verdict = await judge(double_file(tmp_path, refuses))
    assert verdict.verdict == "passed", verdict.summary
    assert {limit.subject for limit in verdict.limits} == {"sizes beyond the declared ones"}
