"""A reference that loops until convergence does not end on NaN or infinity: those cases are not tried."""

from pathlib import Path

import pytest

from .verdicts import ANY, Judge, case

pytestmark = pytest.mark.anyio

FILE = """import signal

import torch

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [8]}


def reference(x):
    while x.abs().max() > 1:
        x = x * 0.5
        if x.isinf().any():
            signal.raise_signal(signal.SIGALRM)
    return x


def run(x):
    while (largest := x.abs().max()) > 1 and torch.isfinite(largest):
        x = x * 0.5
    return x
"""
"""The signal is that of the timer: a call that does not end takes up its ten seconds no other way."""


async def test_where_the_reference_does_not_end_the_case_is_skipped_with_what_to_declare(
    judge: Judge, tmp_path: Path
) -> None:
    path = tmp_path / "until_small.py"
    path.write_text(FILE, encoding="utf-8")
    verdict = await judge(path, allow_torch=ANY, cases=("N=8", "N=8 inf in x", "N=8 nan in x", "N=8 ones"))
    endless = case(verdict, "N=8 inf in x")
    assert (endless.status, endless.reason) == ("skipped", "timed_out")
    assert endless.why.startswith("The reference did not end within ")
    assert "declare the values for which it ends, such as `in -8..8`" in endless.why
    assert {r.status for r in verdict.cases if r != endless} == {"passed"}
