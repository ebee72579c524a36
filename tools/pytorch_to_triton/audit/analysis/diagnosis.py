"""What a validation found wrong, as diagnoses; the rule of a diagnosis's name reports it.

One fault shows in many cases. Where a case goes wrong whose plain counterpart (random values, contiguous
tensors, the same sizes) goes wrong too, both get the same diagnosis.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pytorch_to_triton.audit.fault import SourceLine
from pytorch_to_triton.schema.case_group import DECLARED_GROUPS, Group
from pytorch_to_triton.schema.verdict import (
    CaseResult,
    CaseStatus,
    Kind,
    Mismatch,
    Verdict,
    Violation,
    ViolationKind,
    Where,
)
from pytorch_to_triton.validate.conclusion import (
    ONLY,
    WRONG,
    has_special_values,
    most_telling,
    only_group,
    wrong_of,
)
from pytorch_to_triton.validate.judge import MEMORY

Diagnosis = Literal[
    "out_of_bounds", "offset_overflow", "race", "missing_barrier", "false_promise", "undefined_values",
    "unwritten_output", "layout_ignored",
    "tail_wrong", "wrong_results", "unstable_results", "low_precision_results", "not_reproducible",
    "results_overwritten", "input_changed", "crashes", "size_refused", "left_to_pytorch", "misbehaves",
    "uncompilable_python",
]  # fmt: skip
VIOLATIONS: Mapping[ViolationKind, Diagnosis] = {
    "load_outside": "out_of_bounds",
    "store_outside": "out_of_bounds",
    "overrun": "out_of_bounds",
    "race": "race",
    "missing_barrier": "missing_barrier",
    "false_promise": "false_promise",
    "depends_on_order": "not_reproducible",
    "wrong_without_gradients": "wrong_results",
    "wrong_gradients_apart": "wrong_results",
    "reads_uninitialised": "undefined_values",
    "not_reproducible": "not_reproducible",
    "overwrites_results": "results_overwritten",
    "shares_memory": "wrong_results",
    "fails_gradcheck": "wrong_results",
    "torch_operator": "left_to_pytorch",
    "no_triton_kernel": "left_to_pytorch",
    "output_without_kernel": "left_to_pytorch",
    "reads_past_torch": "left_to_pytorch",
    "stores_nothing": "unwritten_output",
    "python_in_kernel": "uncompilable_python",
    "does_not_compile": "uncompilable_python",
    "hides_operators": "misbehaves",
    "inputs_changed": "misbehaves",
    "tampers": "misbehaves",
    "patches": "misbehaves",
    "changes_flags": "misbehaves",
    "leaves_running": "misbehaves",
    "native_code": "misbehaves",
    "inspects_the_process": "misbehaves",
    "starts_processes": "misbehaves",
    "network": "misbehaves",
    "touches_files": "misbehaves",
}
_FEW: tuple[Where, ...] = ("one_index", "every_nth", "diagonal", "scattered")
_IDLE: tuple[ViolationKind, ...] = ("no_triton_kernel", "output_without_kernel")
_OF_SIZE: tuple[Group, ...] = ("odd", "one", "empty", "beyond")
_ENDS: tuple[CaseStatus, ...] = ("crashed", "timed_out", "raised")
_UNUSUAL: tuple[Group, ...] = ("empty", "beyond")
"""Sizes that the declaration does not name, and that it does not exclude."""
_AFTER_THE_CALL = " after the call"
"""Ends the name of an argument that was written to, in Mismatch.output."""
_VARIED: tuple[Group, ...] = ("special", "layout", "large_stride", "option", "repeat", "combined")
"""Cases that differ from a plain one of the same sizes."""


@dataclass(frozen=True)
class DiagnosisEvidence:
    """One thing that one case, or the process as a whole, showed."""

    diagnosis: Diagnosis
    what: ViolationKind | Kind | CaseStatus
    case: CaseResult | None
    """None: the process as a whole."""
    message: str
    suggestion: str
    output: str = ""
    """The output, or the tensor, that it is about."""
    at: SourceLine | None = None


@dataclass(frozen=True)
class Occurrence:
    """A diagnosis at one place, in all cases that show it."""

    at: SourceLine | None
    """None: the verdict names no line."""
    evidence: tuple[DiagnosisEvidence, ...]
    """The most telling first."""
    proof: str

    @property
    def telling(self) -> DiagnosisEvidence:
        return self.evidence[0]

    @property
    def outputs(self) -> str:
        """`out[0], out[1]`: the outputs, or the tensors, that it is about."""
        return ", ".join(dict.fromkeys(piece.output for piece in self.evidence if piece.output))


@dataclass(frozen=True)
class Diagnoses:
    """A verdict as diagnoses."""

    verdict: Verdict

    @cached_property
    def evidence(self) -> tuple[DiagnosisEvidence, ...]:
        """Everything that is wrong; empty where nothing is."""
        whole = (
            _of_violation(VIOLATIONS[violation.kind], violation, None)
            for violation in self.verdict.violations
        )
        return (*(one for case in self.verdict.cases for one in self._of_case(case)), *whole)

    def occurrences(self, diagnosis: Diagnosis) -> list[Occurrence]:
        """One diagnosis, by place."""
        by_place: defaultdict[SourceLine | None, list[DiagnosisEvidence]] = defaultdict(list)
        for piece in self.evidence:
            if piece.diagnosis == diagnosis:
                by_place[piece.at].append(piece)
        return [self._occurrence(at, evidence) for at, evidence in by_place.items()]

    def _of_case(self, case: CaseResult) -> Iterator[DiagnosisEvidence]:
        following = self._following(case)
        for violation in case.violations:
            if violation.kind not in following:
                yield _of_violation(self._diagnosis_of_violation(violation, case), violation, case)
        # Lanes outside of a tensor are poisoned, and races leave anything: wrong values follow from both.
        if any(violation.kind in MEMORY for violation in case.violations):
            return
        for mismatch in case.mismatches if case in self._wrong else ():
            yield DiagnosisEvidence(
                self._diagnosis_of_mismatch(mismatch, case),
                mismatch.kind,
                case,
                mismatch.message,
                self._advice(mismatch),
                mismatch.output.removesuffix(_AFTER_THE_CALL),
            )
        if case.status in _ENDS and case.stopped_by is None:
            yield DiagnosisEvidence(
                self._diagnosis_of_end(case), case.status, case, f"the call {case.why}", self._advice()
            )
        if case.status == "limited" and case.group in _UNUSUAL:
            yield DiagnosisEvidence("size_refused", "raised", case, f"the call {case.why}", self._advice())

    def _following(self, case: CaseResult) -> Collection[ViolationKind]:
        """Violations that follow from wrong values, or from a call that ended early.

        What nobody wrote is what memory held before, and no kernel is launched after an error.
        """
        unwritten = any(mismatch.kind == "unwritten" for mismatch in case.mismatches)
        idle = any(violation.kind in _IDLE for one in self._wrong for violation in one.violations)
        follows: list[ViolationKind] = ["reads_uninitialised"] * unwritten
        follows += ["stores_nothing"] * bool(case.mismatches)
        return (*follows, *_IDLE * (idle or case.status in _ENDS))

    def _diagnosis_of_violation(self, violation: Violation, case: CaseResult) -> Diagnosis:
        if VIOLATIONS[violation.kind] != "out_of_bounds" or case.group != "large_stride":
            return VIOLATIONS[violation.kind]
        near = any(
            (other.file, other.line) == (violation.file, violation.line) and other.kind in MEMORY
            for one in self.verdict.cases
            if one.group != "large_stride"
            for other in one.violations
        )
        return "out_of_bounds" if near else "offset_overflow"

    def _diagnosis_of_mismatch(self, mismatch: Mismatch, case: CaseResult) -> Diagnosis:
        if mismatch.kind == "mutates_input":
            return "input_changed"
        if has_special_values(case) and not self._plain_mismatches:
            return "unstable_results"
        if case.group in ("layout", "large_stride") and not self._is_plainly_wrong(case):
            if self._strides_are_ignored:
                return "layout_ignored"
            if case.group == "large_stride":
                return "offset_overflow"
        return "unwritten_output" if mismatch.kind == "unwritten" else self._of_values

    @cached_property
    def _of_values(self) -> Diagnosis:
        """Of wrong values that no layout, no offset and no special value explains: the same for all cases."""
        mismatches = self._plain_mismatches or [m for case in self._wrong for m in case.mismatches]
        places = [mismatch.where for mismatch in mismatches if mismatch.where not in (None, "everywhere")]
        if all(mismatch.kind == "unwritten" for mismatch in mismatches):
            return "unwritten_output"
        if not self._plain_mismatches and any(map(has_special_values, self._wrong)):
            return "unstable_results"
        if all(mismatch.kind == "low_precision" for mismatch in mismatches):
            return "low_precision_results"
        mostly_tails = 2 * places.count("tail") > len(places)
        return "tail_wrong" if mostly_tails or self._only_odd_fail else "wrong_results"

    @cached_property
    def _wrong(self) -> list[CaseResult]:
        """The cases whose values are wrong; those of several conditions only where no other is."""
        # The mismatches of a limit count only where an offset overflows.
        counted = [c for c in self.verdict.cases if c.status != "limited" or c.group == "large_stride"]
        wrong = [case for case in counted if case.mismatches]
        return [case for case in wrong if case.group != "combined"] or wrong

    @cached_property
    def _plain_mismatches(self) -> list[Mismatch]:
        """Wrong values of plain cases."""
        plain = [case for case in self._wrong if case.group not in _VARIED]
        return [m for case in plain for m in case.mismatches if m.kind != "mutates_input"]

    @cached_property
    def _strides_are_ignored(self) -> bool:
        """Another layout alone makes much of an output wrong.

        Tensors that are expanded have equal rows, and a few elements may come from other generated values.
        """
        return any(
            mismatch.where not in _FEW and mismatch.kind != "low_precision"
            for case in self._wrong
            if case.group == "layout" and not case.name.endswith("expanded")
            if not self._is_plainly_wrong(case)
            for mismatch in case.mismatches
        )

    def _diagnosis_of_end(self, case: CaseResult) -> Diagnosis:
        if case.reason == "reference_withheld":
            return "left_to_pytorch"
        usual = [one for one in self.verdict.cases if one.group not in _UNUSUAL]
        if (
            case.status == "raised"
            and case.group in _UNUSUAL
            and not any(one.status in _ENDS for one in usual)
        ):
            return "size_refused"
        far = case.status == "crashed" and case.group == "large_stride" and not self._is_plainly_wrong(case)
        return "offset_overflow" if far else "crashes"

    def _is_plainly_wrong(self, case: CaseResult) -> bool:
        """Whether the plain case of the same sizes is wrong too; where there is none, any plain case."""
        plain = [one for one in self.verdict.cases if one.group not in _VARIED]
        alike = [one for one in plain if f"{case.name} ".startswith(f"{one.name} ")]
        nearest = max(alike, key=lambda one: len(one.name), default=None)
        return any(one.status in WRONG for one in ([nearest] if nearest else plain))

    @cached_property
    def _only_odd_fail(self) -> bool:
        """The sizes that the declaration asks for are right, and most odd ones are not."""
        plain = [case for case in self.verdict.cases if case.group not in _VARIED]
        right = [case for case in plain if case.group in DECLARED_GROUPS and case.status == "passed"]
        odd = [bool(case.mismatches) for case in plain if case.group == "odd"]
        only = all(case.group in _OF_SIZE for case in plain if case.mismatches)
        return only and bool(right) and 2 * sum(odd) > len(odd)

    def _advice(self, mismatch: Mismatch | None = None) -> str:
        """What to do where the rule knows nothing better."""
        wrong = wrong_of(self.verdict.cases)
        group = only_group(wrong)
        if group in ONLY and len(wrong) < len(self.verdict.cases):
            return ONLY[group]
        return f"Look for the likely cause: {mismatch.causes[0]}" if mismatch and mismatch.causes else ""

    def _occurrence(self, at: SourceLine | None, evidence: Sequence[DiagnosisEvidence]) -> Occurrence:
        ranked = sorted(evidence, key=_rank)
        telling = ranked[0]
        names = {piece.case.name for piece in evidence if piece.case}
        wrong = wrong_of(self.verdict.cases)
        shrunk = self.verdict.smallest
        if telling.case is None:
            proof = telling.message
        elif len(self.verdict.cases) == 1:
            proof = f"In {telling.case.name}: {telling.message}"
        else:
            count = f"{len(names)} of {len(self.verdict.cases)} cases"
            proof = f"In {count}, as in {telling.case.name}: {telling.message}"
        if shrunk and wrong and shrunk != (telling.case and telling.case.name):
            proof += f" The smallest case found is {shrunk}." * (most_telling(wrong).name in names)
        return Occurrence(at, tuple(ranked), proof)


def _of_violation(diagnosis: Diagnosis, violation: Violation, case: CaseResult | None) -> DiagnosisEvidence:
    at = SourceLine(violation.line, Path(violation.file)) if violation.file and violation.line else None
    return DiagnosisEvidence(
        diagnosis, violation.kind, case, violation.message, violation.suggestion, violation.tensor, at
    )


def _rank(evidence: DiagnosisEvidence) -> tuple[bool, int]:
    """A declared case first, then the smallest."""
    if evidence.case is None:
        return True, 0
    elements = sum(output.elements for output in evidence.case.outputs)
    return evidence.case.group not in DECLARED_GROUPS, elements
