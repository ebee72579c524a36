"""The cases of a verdict, as tables for a terminal."""

from collections.abc import Iterator
from itertools import groupby

from pytorch_to_triton.schema.verdict import CaseResult, Verdict
from pytorch_to_triton_server.tables import TerminalTable, table_of

_SCREEN = 24
"""Up to so many cases are listed on a terminal; of more, those that passed are counted by group."""
_REASON = 64
"""The most characters of a reason in a table that is kept short."""
_HEADINGS = ("case", "group", "outcome", "error / allowed", "reason")


def every_case(verdict: Verdict) -> TerminalTable:
    """One row a case; errors in units of the rounding error that the problem allows."""
    return table_of(_HEADINGS, [row_of(case) for case in verdict.cases])


def cases_in_brief(verdict: Verdict) -> TerminalTable:
    """Few cases, or one row for all of a group that passed; what did not pass is listed last, in full."""
    if len(verdict.cases) <= _SCREEN:
        return every_case(verdict)
    passed = [case for case in verdict.cases if case.status == "passed"]
    others = [row_of(case) for case in verdict.cases if case.status != "passed"]
    return table_of(_HEADINGS, [*counted(passed), *((*cells, cut(reason)) for *cells, reason in others)])


def counted(passed: list[CaseResult]) -> Iterator[tuple[str, ...]]:
    """A row a group: how many cases, and the one that came closest to its limit."""
    groups = dict.fromkeys(case.group for case in passed)
    by_group = groupby(sorted(passed, key=lambda case: list(groups).index(case.group)), lambda c: c.group)
    for group, cases in by_group:
        several = list(cases)
        worst = max(several, key=share_of_allowed)
        count = f"{len(several)} cases" if len(several) > 1 else worst.name
        yield count, group, "passed", worst_error(worst), ""


def cut(reason: str) -> str:
    """Its beginning: what is below the table names one in full."""
    return reason if len(reason) <= _REASON else f"{reason[:_REASON].rpartition(' ')[0]} …"


def row_of(case: CaseResult) -> tuple[str, ...]:
    return case.name, case.group, case.status, worst_error(case), case.why


def share_of_allowed(case: CaseResult) -> float:
    """How much of its allowed error the case took."""
    return max((o.candidate_error / o.allowed_error for o in case.outputs if o.allowed_error > 0), default=0)


def worst_error(case: CaseResult) -> str:
    """The output that comes closest to its limit, or passes it by the most."""
    ratios = [(o.candidate_error / o.allowed_error, o) for o in case.outputs if o.allowed_error > 0]
    if not ratios:
        return ""
    ratio, worst = max(ratios, key=lambda pair: pair[0])
    if ratio <= 1 and any(output.failing for output in case.outputs):
        return f"{sum(output.failing for output in case.outputs)} not finite"
    return f"{worst.candidate_error:.3g} / {worst.allowed_error:.3g}"
