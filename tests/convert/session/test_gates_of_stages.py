"""What a gate asks follows from what was seen, without a GPU too."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.gates import COMPILE, EAGER
from pytorch_to_triton.convert.session import gate
from pytorch_to_triton.convert.session.store import before, best_of, stage_of
from pytorch_to_triton.schema.session import Attempt, Condition, Stage
from pytorch_to_triton.schema.timing import Timing, TimingTable

from ..stages import stage
from .files import AUTOTUNED, DOUBLED_KERNEL

RIGHT = stage(1).verdict


def timings(share: float | None = None, **medians: float) -> TimingTable:
    """Medians with intervals of 1 %; the submitted file's share of the limit."""
    labels = {"ours": gate.SUBMITTED, "before": gate.PREVIOUS, "eager": EAGER, "compiled": COMPILE}
    return TimingTable(
        device="a GPU",
        dims={"M": 4096},
        dtypes={"x": "float32"},
        bytes_moved=8_000_000,
        timings=tuple(
            Timing(
                label=labels[name],
                low_ms=0.995 * median,
                median_ms=median,
                high_ms=1.005 * median,
                calls=60,
                share_of_limit=share if name == "ours" else None,
            )
            for name, median in medians.items()
        ),
        failed={},
    )


def seen(table: TimingTable | None, text: str = AUTOTUNED, *, previous: bool = True) -> gate.Evidence:
    tables = (table,) if table else ()
    return gate.Evidence(Path("stage2.py"), text, "3.6.0", RIGHT, None, tables, has_previous=previous)


def attempt(number: int, stage: Stage, *, opened: bool) -> Attempt:
    return Attempt(number=number, stage=stage, opened=opened, file=Path("k.py"), conditions=(), when="now")


@pytest.mark.parametrize(
    ("table", "met"),
    [
        (timings(ours=1.0, before=2.0), "met"),
        (timings(ours=1.0, before=0.99), "met"),
        (timings(ours=1.5, before=1.0), "not met"),
        (timings(share=0.93, ours=1.5, before=1.0), "met"),
        (timings(share=0.5, ours=1.5, before=1.0), "not met"),
        (None, "not measured"),
        (timings(before=1.0), "not measured"),
    ],
)
def test_a_slower_stage_is_shut_out_unless_it_is_near_the_limit(table: TimingTable | None, met: str) -> None:
    found = gate.speed(seen(table))
    assert found.met == met
    assert bool(found.advice) == (met == "not met")


def test_a_slower_stage_opens_with_a_reason_and_a_wrong_one_does_not() -> None:
    slow = Condition(name=gate.SPEED, met="not met", evidence="")
    wrong = Condition(name="right", met="not met", evidence="")
    unmeasured = Condition(name=gate.SPEED, met="not measured", evidence="")
    assert not gate.opens([slow], "")
    assert gate.opens([slow], "it is simpler")
    assert not gate.opens([slow, wrong], "it is simpler")
    assert gate.opens([unmeasured], "")


def test_stage_two_wants_a_tuned_kernel_and_stage_three_may_have_chosen() -> None:
    assert gate.autotuned(2, seen(None)).met == "met"
    assert gate.autotuned(2, seen(None, DOUBLED_KERNEL)).met == "not met"
    assert gate.autotuned(3, seen(None, DOUBLED_KERNEL)).met == "met"
    by_heuristic = DOUBLED_KERNEL.replace("@triton.jit", "@triton.heuristics({})\n@triton.jit")
    by_table = DOUBLED_KERNEL.replace("BLOCK=64)", "**TABLE[n_elements > 99])")
    by_size = DOUBLED_KERNEL.replace("BLOCK=64)", "BLOCK=64, num_warps=4 if n_elements > 99 else 1)")
    fixed = DOUBLED_KERNEL.replace("BLOCK=64)", "BLOCK=64, num_warps=4)")
    texts = (by_heuristic, by_table, by_size, fixed)
    assert [gate.autotuned(2, seen(None, t)).met for t in texts] == ["met", "met", "met", "not met"]


def test_stage_three_is_timed_beside_pytorch_whoever_is_faster() -> None:
    found = gate.beside_others((timings(ours=2.0, eager=1.0, compiled=0.5),))
    assert found.met == "met"
    assert found.evidence == "M=4096: 2.0000 ms; PyTorch eager 1.0000 ms, torch.compile 0.5000 ms"
    assert gate.beside_others(()).met == "not measured"


def test_what_is_no_python_is_said_to_be_none() -> None:
    broken = gate.Evidence(Path("stage2.py"), "def run(x:\n", "3.6.0", None, None)
    assert [one.met for one in gate.conditions(2, broken)] == ["not met", "not met"]
    found = gate.known_names(broken)
    assert found.met == "not met"
    assert "stage2.py:1: this is not Python" in found.evidence


def test_where_a_session_stands_follows_from_its_attempts() -> None:
    shut, first, second = attempt(1, 1, opened=False), attempt(2, 1, opened=True), attempt(3, 2, opened=True)
    last, again = attempt(4, 3, opened=True), attempt(5, 1, opened=True)
    assert stage_of([]) == stage_of([shut]) == 1
    assert stage_of([shut, first]) == 2
    assert stage_of([shut, first, second]) == stage_of([shut, first, second, last]) == 3
    assert stage_of([shut, first, second, last, again]) == 2
    assert best_of([shut, first, second, last, again]) == again
    assert before([shut, first, second, last], 3) == second
