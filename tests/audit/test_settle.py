"""What was measured confirms a suspicion of the source, or clears it."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.registry import Rule, load
from pytorch_to_triton.audit.settle import settled
from pytorch_to_triton.audit.source import Kernel
from pytorch_to_triton.schema.finding import Finding

FILE = Path("/k.py")


def check(kernel: Kernel) -> Iterator[Fault]:
    yield from ()


def rule() -> Rule:
    """One that suspects a missing mask, and is settled by accesses out of bounds."""
    module = ModuleType("rules.no_mask", "No mask.\n\nIt may run past the end.\n\nInstead, mask it.")
    vars(module).update(
        SEVERITY="critical",
        SUSPECTED="low",
        SETTLED_BY=("out_of_bounds",),
        CATEGORY="correctness",
        BAD=("a",),
        GOOD=("b",),
        check=check,
    )
    return load(module)


def found(rule: str, line: int, **more: Any) -> Finding:
    return Finding(
        **{
            "rule": rule,
            "severity": "low",
            "category": "correctness",
            "evidence": "source",
            "file": FILE,
            "line": line,
            "column": 1,
            "kernel": "kernel",
            "message": "A load has no mask.",
            "instead": "Mask it.",
            **more,
        }
    )


SUSPICION = found("no_mask", 7, suspected=True)
PROOF = {
    "severity": "critical",
    "evidence": "measured",
    "message": "x is read past its end.",
    "proof": "Seen in 3 cases.",
}


def test_what_was_seen_at_the_same_line_confirms_and_is_told_once() -> None:
    outcome = settled([SUSPICION, found("out_of_bounds", 7, **PROOF)], [rule()], [])
    (told,) = outcome.findings
    assert (told.rule, told.severity, told.evidence, told.suspected) == (
        "no_mask",
        "critical",
        "measured",
        False,
    )
    assert told.proof == "x is read past its end. Seen in 3 cases."


def test_what_was_seen_in_the_kernel_at_another_line_leaves_the_suspicion_as_it_is() -> None:
    elsewhere = found("out_of_bounds", 9, **PROOF)
    assert settled([SUSPICION, elsewhere], [rule()], []).findings == (SUSPICION, elsewhere)


def test_what_was_seen_without_an_access_of_its_own_confirms_and_stays() -> None:
    at_run = found("out_of_bounds", 20, kernel="run", **PROOF)
    told = settled([SUSPICION, at_run], [rule()], []).findings
    assert [one.severity for one in told] == ["critical", "critical"]


def test_a_run_that_passed_every_case_clears_the_suspicion() -> None:
    outcome = settled([SUSPICION], [rule()], [FILE])
    assert (outcome.findings, outcome.cleared) == ((), (SUSPICION,))


def test_without_a_run_a_suspicion_stays_one() -> None:
    assert settled([SUSPICION], [rule()], []).findings == (SUSPICION,)
