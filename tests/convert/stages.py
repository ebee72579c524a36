"""Stage reports and timings for the tests of gates and reports."""

from pathlib import Path

from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.timing import Timing, TimingTable
from pytorch_to_triton.schema.verdict import Behavior, CaseResult, Decision, Skip, Verdict

NAMES = {1: "correct", 2: "optimised", 3: "tuned"}


def stage(number: int, decision: Decision = "passed", *, passed: bool = True) -> StageReport:
    """A stage with two passed cases and, where it failed, a third."""
    cases = [CaseResult(name=f"N={n}", group="declared", status="passed", why="") for n in (1, 2)]
    if decision == "failed":
        cases.append(CaseResult(name="N=3", group="declared", status="failed", why="the tail is wrong"))
    verdict = Verdict(
        summary="The tail is wrong." if decision == "failed" else "All cases passed.",
        next_step="",
        verdict=decision,
        candidate="k.py",
        reference="f.py:f",
        cases=tuple(cases),
        skipped=(Skip(what="N=10000000", why="over the limit"),),
        seed=7,
        device="CPU",
        provenance="measured",
        behavior=Behavior(kernels={}, operators={}),
        replay="",
    )
    return StageReport(
        stage=number,
        name=NAMES[number],
        file=Path(f"stage{number}_{NAMES[number]}.py"),
        kernels=("f_kernel",),
        passes=(3,),
        passed=passed and decision == "passed",
        verdict=verdict,
        speed="not measured",
    )


def table(**intervals: tuple[float, float, float]) -> TimingTable:
    """Low, median and high milliseconds of `eager`, `stage_1`, ..."""
    labels = {
        "eager": "PyTorch eager",
        "compiled": "torch.compile",
        "stage_1": "stage 1",
        "stage_2": "stage 2",
        "stage_3": "stage 3",
    }
    return TimingTable(
        device="a GPU",
        dims={"M": 4096},
        dtypes={"x": "float32"},
        bytes_moved=8_000_000,
        timings=tuple(
            Timing(label=labels[k], low_ms=low, median_ms=median, high_ms=high, calls=60)
            for k, (low, median, high) in intervals.items()
        ),
        failed={},
    )
