"""A verdict as tables: its mistakes, and how many cases of each group are right; or every case."""

from collections.abc import Iterator, Sequence

from pytorch_to_triton.schema.verdict import CaseResult, OutputFigures, Verdict, ViolationKind
from pytorch_to_triton.validate.conclusion import WRONG, most_telling, skipped_text
from pytorch_to_triton_server.tables import TerminalTable

_NAMED = 3
"""So many cases are named for each mistake."""
_FOLLOWS: tuple[ViolationKind, ...] = ("reads_uninitialised", "stores_nothing")
"""What wrong values may come with in some of the cases that have the same mistake."""
_ERROR = "error in units of\nrounding: kernel / allowed"


def verdict_tables(verdict: Verdict) -> Iterator[TerminalTable]:
    """A row for each distinct mistake, where there is one; then one for each group of cases."""
    if rows := list(mistake_rows(verdict.cases)):
        yield TerminalTable(("cases", "outcome", "for example", _ERROR, "what happened"), rows)
    yield TerminalTable(("group", "right", _ERROR, "others"), list(group_rows(verdict.cases)))
    yield from not_tested(verdict)


def every_case(verdict: Verdict) -> Iterator[TerminalTable]:
    """One row a case, and one for all that were not run."""
    run = [case for case in verdict.cases if case.reason != "not_run"]
    rows = [(case.name, case.group, case.status, worst_error(case), case.why) for case in run]
    left = [(f"{count} cases", "", *others) for count, *others in not_run_rows(verdict.cases)]
    yield TerminalTable(("case", "group", "outcome", _ERROR, "reason"), [*rows, *left])
    yield from not_tested(verdict)


def not_tested(verdict: Verdict) -> Iterator[TerminalTable]:
    """What was left out of the plan."""
    if verdict.skipped:
        yield TerminalTable(("not tested", "reason"), [(skip.what, skip.why) for skip in verdict.skipped])


def mistake_rows(cases: Sequence[CaseResult]) -> Iterator[tuple[str, ...]]:
    """The mistake of the case to look at first, then the others, the most frequent first; then what was not
    run."""
    mistakes: dict[tuple[object, ...], list[CaseResult]] = {}
    for case in cases:
        if case.status not in ("passed", "limited", "skipped"):
            mistakes.setdefault(mistake_of(case), []).append(case)
    ranked = sorted(mistakes.values(), key=len, reverse=True)
    if wrong := [case for case in cases if case.status in WRONG]:
        first = most_telling(wrong)
        ranked.sort(key=lambda alike: first not in alike)
    for alike in ranked:
        shown = most_telling(alike)
        names = [shown.name, *(case.name for case in alike if case is not shown)][:_NAMED]
        yield str(len(alike)), shown.status, "\n".join(names), worst_error(shown), shown.why
    for count, outcome, *others in not_run_rows(cases):
        yield count, outcome, "", *others


def not_run_rows(cases: Sequence[CaseResult]) -> Iterator[tuple[str, ...]]:
    """Together those that crashes and time-outs left out: how many, their outcome, no error, and why."""
    if left := [case for case in cases if case.reason == "not_run"]:
        yield str(len(left)), "not run", "", left[0].why


def mistake_of(case: CaseResult) -> tuple[object, ...]:
    """What cases with the same mistake share: kinds and lines, but no sizes and values."""
    mismatches = {(mismatch.output, mismatch.kind) for mismatch in case.mismatches}
    follows = _FOLLOWS if mismatches else ()
    violations = {(v.kind, v.file, v.line) for v in case.violations if v.kind not in follows}
    ended = "" if mismatches or violations or case.status not in WRONG else case.why.partition(": ")[0]
    return case.status, frozenset(mismatches), frozenset(violations), ended


def group_rows(cases: Sequence[CaseResult]) -> Iterator[tuple[str, ...]]:
    """Of each group how many cases that were run are right, the largest error of these, and what else there
    is."""
    run = [case for case in cases if case.reason != "not_run"]
    for group in dict.fromkeys(case.group for case in run):
        alike = [case for case in run if case.group == group]
        passed = [case for case in alike if case.status == "passed"]
        worst = max(passed, key=most_of_allowed, default=None)
        limited = sum(case.status == "limited" for case in alike)
        others = (
            f"{limited} beyond its limits" if limited else "",
            skipped_text(alike),
        )
        error = worst_error(worst) if worst else ""
        yield group, f"{len(passed)} of {len(alike)}", error, "; ".join(filter(None, others))


def most_of_allowed(case: CaseResult) -> float:
    """How much of its allowed error the output took that came closest to it."""
    return max(map(share_of_allowed, case.outputs), default=-1.0)


def share_of_allowed(output: OutputFigures) -> float:
    """How much of its allowed error an output took."""
    return output.candidate_error / output.allowed_error if output.allowed_error > 0 else -1.0


def worst_error(case: CaseResult) -> str:
    """The output that comes closest to its limit, or passes it by the most; else how many elements fail."""
    worst = max(case.outputs, key=share_of_allowed, default=None)
    if worst is None or worst.allowed_error <= 0:
        return ""
    failing = sum(output.failing for output in case.outputs)
    if failing and all(mismatch.kind == "unwritten" for mismatch in case.mismatches):
        return f"{failing} unwritten"
    if failing and share_of_allowed(worst) <= 1:
        return f"{failing} not finite"
    return f"{worst.candidate_error:.3g} / {worst.allowed_error:.3g}"
