"""What follows from findings: runs confirm or clear suspicions, proofs are joined, the worst comes first."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytorch_to_triton.audit.audit import merge, with_proofs
from pytorch_to_triton.audit.conclude import FileRun, once_a_folder, recommendations, resolve
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.schema.finding import Finding

FILE = Path("/k.py")


@kernel_rule("critical", "correctness", ("a",), ("b",), suspected=Unconfirmed("low", ("out_of_bounds",)))
def no_mask(kernel: SourceKernel) -> Iterator[Fault]:
    """No mask.

    It may run past the end.

    Fix: mask it.
    """
    yield from ()


def found(rule: str, line: int, **more: Any) -> Finding:
    kind = {"rule": rule, "severity": "low", "category": "correctness", "evidence": "source"}
    place = {"file": FILE, "line": line, "column": 1, "kernel": "kernel"}
    return Finding(**{**kind, **place, "message": "A load has no mask.", "suggestion": "Mask it.", **more})


FAILED = {FILE: FileRun(idle=frozenset({"unused"}), clean=False)}
PASSED = {FILE: FileRun(idle=frozenset({"unused"}), clean=True)}
SUSPICION = found("no_mask", 7, suspected=True)
PROOF = {
    "severity": "critical",
    "evidence": "measured",
    "message": "x is read past its end.",
    "proof": "Seen in 3 cases.",
}


def test_what_was_seen_at_the_same_line_confirms_and_is_listed_once() -> None:
    outcome = resolve([SUSPICION, found("out_of_bounds", 7, **PROOF)], [no_mask], FAILED)
    (finding,) = outcome.findings
    assert (finding.rule, finding.severity, finding.evidence) == ("no_mask", "critical", "measured")
    assert not finding.suspected
    assert finding.proof == "x is read past its end. Seen in 3 cases."


def test_what_was_seen_at_another_line_leaves_the_suspicion_as_it_is() -> None:
    elsewhere = found("out_of_bounds", 9, **PROOF)
    assert resolve([SUSPICION, elsewhere], [no_mask], FAILED).findings == (SUSPICION, elsewhere)


def test_of_two_accesses_on_a_line_only_the_one_to_the_same_tensor_is_confirmed() -> None:
    load, store = (found("no_mask", 7, suspected=True, pointer=name) for name in ("x_ptr", "out_ptr"))
    outcome = resolve([load, store, found("out_of_bounds", 7, pointer="x_ptr", **PROOF)], [no_mask], FAILED)
    assert [(one.pointer, one.suspected) for one in outcome.findings] == [("x_ptr", False), ("out_ptr", True)]


def test_what_was_seen_at_no_line_of_its_own_confirms_the_one_suspicion_that_it_can_mean() -> None:
    proof = found("out_of_bounds", 5, own_line=False, **PROOF)
    (finding,) = resolve([SUSPICION, proof], [no_mask], FAILED).findings
    assert (finding.rule, finding.severity) == ("no_mask", "critical")
    another = found("no_mask", 8, suspected=True)
    assert resolve([SUSPICION, another, proof], [no_mask], FAILED).findings == (SUSPICION, another, proof)


def test_a_run_that_passed_every_case_clears_the_suspicion() -> None:
    outcome = resolve([SUSPICION], [no_mask], PASSED)
    assert (outcome.findings, outcome.cleared) == ((), (SUSPICION,))


def test_a_kernel_that_did_not_run_is_neither_cleared_nor_found_guilty() -> None:
    unused = found("no_mask", 7, suspected=True, kernel="unused")
    proof = found("out_of_bounds", 5, own_line=False, **PROOF)
    assert resolve([unused], [no_mask], PASSED).findings == (unused,)
    assert resolve([unused, proof], [no_mask], FAILED).findings == (unused, proof)


def test_without_a_run_a_suspicion_stays_one() -> None:
    assert resolve([SUSPICION], [no_mask], {}).findings == (SUSPICION,)


def test_what_was_seen_of_two_tensors_is_listed_until_both_are_suspected() -> None:
    load, store = (found("no_mask", 7, suspected=True, pointer=name) for name in ("x_ptr", "out_ptr"))
    proof = found("out_of_bounds", 7, pointer="x_ptr, out_ptr", **PROOF)
    listed = resolve([load, proof], [no_mask], FAILED).findings
    assert [(one.rule, one.severity) for one in listed] == [
        ("no_mask", "critical"),
        ("out_of_bounds", "critical"),
    ]
    both = resolve([load, store, proof], [no_mask], FAILED).findings
    assert [(one.rule, one.severity) for one in both] == [("no_mask", "critical")] * 2


def test_a_fault_that_source_and_compiled_code_show_is_one_finding_with_the_proof_of_the_code() -> None:
    compiled = [
        found("tf32", 7, evidence="compiled", severity="high", proof="Compiled for sm_90."),
        found("tf32", 7, evidence="compiled", severity="high", proof="Compiled for sm_80."),
        found("tf32", 9, evidence="compiled", severity="high", proof="Compiled for sm_90."),
    ]
    first, second, third = with_proofs([found("tf32", 7), found("tf32", 8)], merge(compiled))
    assert (first.line, first.severity, first.evidence) == (7, "low", "compiled")
    assert first.proof == "Compiled for sm_90.\nCompiled for sm_80."
    assert second == found("tf32", 8)
    assert third == compiled[2]


def test_of_equally_bad_rules_the_one_with_more_places_is_recommended_first() -> None:
    once, twice = found("a", 1), [found("b", 2), found("b", 3)]
    worst = found("c", 4, severity="high")
    known = [found("d", line, known=True) for line in range(5, 9)]
    listed = recommendations([once, *twice, worst, *known], (), FILE.parent)
    assert [(one.rule, one.places) for one in listed] == [
        ("c", ("k.py:4",)),
        ("b", ("k.py:2", "k.py:3")),
        ("a", ("k.py:1",)),
    ]


def test_what_files_of_a_folder_lack_is_one_finding_that_names_the_other_files() -> None:
    lacking = "incomplete_kernel_file"
    alone = found(lacking, 3, file=Path("/b/k.py"), message="k.py has no reference.")
    files = [Path(f"/a/k{number:02}.py") for number in range(13)]
    one, two = (found(lacking, 3, file=file, message=f"{file.name} has no test.") for file in files[:2])
    load = found("no_mask", 7)
    assert once_a_folder([two, alone, load, one]) == [
        load,
        one.model_copy(
            update={"message": "k00.py has no test. 1 more file of its folder is incomplete, too: k01.py."}
        ),
        alone,
    ]
    (many,) = once_a_folder([found(lacking, 3, file=file) for file in files])
    assert "12 more files of its folder are incomplete, too: k01.py, " in many.message
    assert many.message.endswith("k10.py, and 2 more.")
