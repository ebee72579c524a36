"""One verdict from the results of all cases: what is decided, what is said first, and what to do next."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from pytorch_to_triton.schema.case_group import DECLARED_GROUPS, Group
from pytorch_to_triton.schema.verdict import (
    CaseResult,
    CaseStatus,
    Decision,
    Limit,
    NoResult,
    Skip,
    Violation,
    Where,
)
from pytorch_to_triton.validate.host_code import is_of_gradients
from pytorch_to_triton.validate.judge import MEMORY
from pytorch_to_triton.validate.limits import limits_in
from pytorch_to_triton.validate.phrases import cut, listed, sentence, shortened, times
from pytorch_to_triton.validate.plan import names_values

LOCAL: tuple[Where, ...] = ("tail", "one_index", "every_nth", "range", "diagonal")
OF_SIZES: tuple[Group, ...] = ("declared", "reduced", "odd", "one", "beyond")
"""Groups of cases that differ from one another in their sizes alone."""
ONLY: dict[Group, str] = {
    "layout": "Only other memory layouts fail: pass strides to the kernel, or make its inputs contiguous.",
    "empty": "Only empty inputs fail: return early where there is nothing to do.",
    "one": "Only sizes of one fail: look at what N - 1, squeeze() and broadcasting do there.",
    "odd": "Only odd or equal sizes fail: look at the masks of the last block and at the grid.",
    "dtype": "Only further dtypes fail: look at what is computed, and stored, in the dtype of an input.",
    "value": "Only further declared values of a constant fail: look at what holds for the first value alone.",
    "mixed": "Only mixtures of dtypes fail: look at what takes its dtype from another tensor.",
    "large_stride": (
        "Only large strides fail: compute offsets in int64, e.g. tl.program_id(0).to(tl.int64) * stride."
    ),
    "beyond": "Only sizes beyond the declared ones fail: loop over tiles, or bound them with REQUIRES.",
    "option": (
        "Only other values of a number fail: look for a constant in its place, and for what holds at the "
        "declared value alone."
    ),
    "repeat": "Only a second call at the same addresses fails: look for what is kept between calls.",
}
"""What to say when all wrong cases are of one group."""
WRONG: tuple[CaseStatus, ...] = ("failed", "crashed", "timed_out", "raised")
SETTLED: tuple[CaseStatus, ...] = ("passed", "limited")
WHY_SKIPPED: dict[NoResult | None, str] = {
    None: "PyTorch's own result says nothing there",
    "raised": "PyTorch raises there",
    "no_gradient": "PyTorch tracks no gradient there",
    "reference_withheld": "the reference was not at hand",
    "sandbox_violation": "the reference did what is not allowed",
    "crashed": "PyTorch crashes there",
    "timed_out": "out of time",
    "not_run": "not run after crashes or time-outs",
    "not_interpreted": "the interpreter cannot run it",
    "lost": "lost by the machine",
}
"""In a few words, by why the call of a case that says nothing about a candidate has no result."""
BRIEF = 120
"""Characters of a reason that stands in a sentence."""
LIMITS_SHOWN = 4
"""How many limits stand in a summary."""
LINES_SHOWN = 2
AGAIN = "then validate again with the same seed."


def decide(
    results: Sequence[CaseResult], violations: Sequence[Violation] = (), requested: Collection[str] = ()
) -> Decision:
    """Failed by one wrong case or violation; passed when every declared case passed, and there is one.

    Cases that were `requested` by name count as declared.
    """
    if violations or any(result.status in WRONG for result in results):
        return "failed"
    declared = [result for result in results if result.group in DECLARED_GROUPS or result.name in requested]
    passed = [result for result in declared if result.status in SETTLED]
    # A candidate may have had a hand in it.
    if any(result.status == "lost" for result in results):
        return "undecided"
    return "passed" if passed and len(passed) == len(declared) else "undecided"


def summary_of(
    decision: Decision,
    results: Sequence[CaseResult],
    violations: Sequence[Violation] = (),
    skipped: Sequence[Skip] = (),
    further: Iterable[str] = (),
    takes: str = "",
) -> str:
    """The outcome in a few sentences: what was found, what was left open, and what was not tried.

    `further`: sentences that follow where it passed. `takes`: the conditions under which it fails.
    """
    if decision == "failed":
        summary = " ".join(filter(None, (failed_summary(results, violations), takes)))
    elif decision == "undecided":
        summary = undecided_summary(results)
    else:
        summary = passed_summary(results)
    more = []
    if missing := ", ".join(not_tried(skipped)):
        more.append(f"Not tried: {missing}, too large for this run.")
    if decision == "passed":
        more.extend(further)
    return " ".join([sentence(summary), *more]) if more else summary


def unseen(never_launched: Sequence[str], unreached: Sequence[Skip]) -> Iterator[str]:
    """That no case launched these kernels, or ran these lines of Python."""
    if never_launched:
        what = "was" if len(never_launched) == 1 else "were"
        how = " (--backward compares gradients)" if any(map(is_of_gradients, never_launched)) else ""
        yield f"{', '.join(never_launched)} {what} never launched: not validated{how}."
    if unreached:
        yield f"No case ran {shortened([skip.what for skip in unreached], LINES_SHOWN)}: not validated."


def not_tried(skipped: Iterable[Skip]) -> tuple[str, ...]:
    """The declared sizes that were left out as too large, such as `N=1000000`; none: all were tried."""
    return tuple(skip.what for skip in skipped if skip.declared)


def skipped_text(results: Iterable[CaseResult]) -> str:
    """`2 skipped: PyTorch raises there`, or `3 skipped: 2 ..., 1 ...`; empty where none is."""
    counts = Counter(WHY_SKIPPED[r.reason] for r in results if r.status == "skipped")
    reasons = [*counts] if len(counts) == 1 else [f"{count} {why}" for why, count in counts.items()]
    return f"{counts.total()} skipped: {', '.join(reasons)}" if counts else ""


def undecided_summary(results: Sequence[CaseResult]) -> str:
    passed = sum(result.status == "passed" for result in results)
    although = f", although {times(passed, 'case')} passed" if passed else ""
    unsettled = [result for result in results if result.status not in SETTLED]
    for result in unsettled:
        if result.group in DECLARED_GROUPS or result.status == "lost":
            return f"Undecided{although}. {result.name}: {result.why}"
    return f"Undecided{although}: no declared case could be run."


def passed_summary(results: Sequence[CaseResult]) -> str:
    """Where it is right, what could not be judged, up to where it is right, and the largest errors."""
    possible = [result for result in results if not is_refused(result)]
    outputs = [output for r in possible if r.status == "passed" for output in r.outputs]
    ours = max((output.candidate_error for output in outputs), default=0.0)
    theirs = max((output.pytorch_error for output in outputs), default=0.0)
    return " ".join(
        [
            f"{share_passed(possible)}.",
            *not_judged(possible),
            *limit_sentences(limits_in(possible)),
            f"Largest error: {ours:.3g} units of rounding error (PyTorch: {theirs:.3g}).",
        ]
    )


def is_refused(result: CaseResult) -> bool:
    """A mixture of dtypes, or values, that PyTorch refuses: no case that anybody could judge."""
    of_values = result.group == "special" and result.reason == "raised"
    return result.status == "skipped" and (result.group == "mixed" or of_values)


def share_passed(results: Sequence[CaseResult]) -> str:
    """How many cases are right, and how many beyond a limit."""
    total = len(results)
    passed, limited = (sum(r.status == status for r in results) for status in SETTLED)
    if passed == total:
        return f"All {total} cases are right" if total > 1 else "The one case is right"
    of_all = f"{passed} of {times(total, 'case')} {is_or_are(passed)} right"
    return f"{of_all}, {limited} {is_or_are(limited)} beyond its limits" if limited else of_all


def not_judged(results: Sequence[CaseResult]) -> Iterator[str]:
    """How many cases stayed open, and why the first did."""
    if unsettled := [result for result in results if result.status not in SETTLED]:
        first = f"{unsettled[0].name}: {cut(unsettled[0].why, BRIEF)}"
        yield sentence(f"{times(len(unsettled), 'case')} could not be judged, for example {first}")


def limit_sentences(limits: Sequence[Limit]) -> Iterator[str]:
    yield from (sentence(f"Limit: {limit}") for limit in limits[:LIMITS_SHOWN])
    if len(limits) > LIMITS_SHOWN:
        more = len(limits) - LIMITS_SHOWN
        yield f"{times(more, 'more limit')} {is_or_are(more)} in `limits`."


def failed_summary(results: Sequence[CaseResult], violations: Sequence[Violation]) -> str:
    """How many cases are wrong, one of them, and what was done to the process."""
    wrong = wrong_of(results)
    if not wrong:
        broken = " ".join(violation.message for violation in violations)
        return f"The values of {times(len(results), 'case')} are right, but the rules are broken: {broken}"
    case = most_telling(wrong)
    further = [violation.message for violation in violations if violation != case.stopped_by]
    share = share_wrong(wrong, len(results)) + not_run(results) + with_configurations(wrong, results)
    text = f"{share}. For example, {case.name}: {case.why}"
    return " ".join([sentence(text), *further]) if further else text


def share_wrong(wrong: Sequence[CaseResult], total: int) -> str:
    only_rules = all(result.status == "failed" and not result.mismatches for result in wrong)
    verb = f"{is_or_are(len(wrong))} wrong"
    endless = sum(result.status == "timed_out" for result in wrong)
    if endless:
        verb = "did not return" if endless == len(wrong) else f"{verb} ({endless} did not return)"
    if only_rules:
        verb = "breaks the rules" if len(wrong) == 1 else "break the rules"
    return f"{len(wrong)} of {times(total, 'case')} {verb}"


def not_run(results: Sequence[CaseResult]) -> str:
    """`, and 49 were not run` where crashes and time-outs ended a validation."""
    count = sum(result.reason == "not_run" for result in results)
    return f", and {count} {'was' if count == 1 else 'were'} not run" if count else ""


def with_configurations(wrong: Sequence[CaseResult], results: Sequence[CaseResult]) -> str:
    """What autotuned kernels took in every wrong case, and not in every right one."""
    right = [set(r.configurations) for r in results if r.status in SETTLED and r.configurations]
    common = set.intersection(*(set(result.configurations) for result in wrong))
    telling = sorted(name for name in common if not all(name in configurations for configurations in right))
    return f", with {listed(telling)}" if telling else ""


def is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def next_step_of(
    decision: Decision,
    results: Sequence[CaseResult],
    violations: Sequence[Violation] = (),
    never_launched: Sequence[str] = (),
) -> str:
    """What to do about it."""
    unseen = [name for name in never_launched if not is_of_gradients(name)]
    if decision == "passed" and unseen:
        kernels = " and ".join(unseen)
        return f"Declare sizes at which {kernels} is launched, or remove it; then validate again."
    if decision == "passed":
        fixes = list(dict.fromkeys(limit.fix for limit in limits_in(results)))
        if not fixes:
            return "Use the kernel. To measure its speed, run benchmark."
        return f"Use the kernel within its limits, or lift them. Fix: {' '.join(fixes[:LIMITS_SHOWN])}"
    if decision == "undecided":
        return undecided_step(results)
    wrong = wrong_of(results)
    if not wrong:
        return fix(violations[0].suggestion)
    case = most_telling(wrong)
    others_pass = any(result.status == "passed" for result in results)
    if (only := only_group(wrong)) in ONLY and not case.violations and others_pass:
        return f"{ONLY[only]} Fix it, {AGAIN}"
    if case.violations and (not case.mismatches or case.violations[0].kind in MEMORY):
        return fix(case.violations[0].suggestion)
    if case.mismatches:
        return step_for_values(case, only)
    if violations:
        return fix(violations[0].suggestion)
    if case.reason == "reference_withheld":
        return fix("Compute it in a kernel; the reference is not available while the candidate runs.")
    return f"Fix the kernel so that it returns in every case, {AGAIN}"


def step_for_values(case: CaseResult, only: Group | None) -> str:
    """What to do about wrong values; `only`: the group of all wrong cases, where there is one."""
    if causes := case.mismatches[0].causes:
        return f"Likely cause: {causes[0]} Fix it, {AGAIN}"
    if only == "special":
        return (
            "Only special values fail. Treat them as PyTorch does, or declare the range that the input has, "
            f"such as `float32[M, N] in -100..100`, {AGAIN}"
        )
    return (
        "Run the smallest case alone and look at the elements that differ; `audit` of the file names what it "
        f"sees in the source, such as what masked lanes hold. Fix the kernel, {AGAIN}"
    )


def fix(suggestion: str) -> str:
    return f"Fix: {sentence(suggestion)} {AGAIN.capitalize()}"


def undecided_step(results: Sequence[CaseResult]) -> str:
    """What to do where a declared case stays open."""
    if any(result.reason == "no_gradient" for result in results):
        return "The reference tracks no gradient: validate without --backward, or make it differentiable."
    if any(result.reason == "not_interpreted" for result in results):
        return "Validate on a GPU, with --device cuda: the interpreter cannot run every case."
    if any(result.status == "undecided" and result.group in DECLARED_GROUPS for result in results):
        return (
            "Have the reference compute in float32 and round once, or declare ranges in which its own "
            "rounding stays small, then validate again."
        )
    return "Fix the declared inputs so that the reference runs on each of them, then validate again."


def only_group(wrong: Sequence[CaseResult]) -> Group | None:
    """The one group that all wrong cases belong to; large strides are a layout too. None: several."""
    groups = {result.group for result in wrong} - {"combined"}
    if groups == {"layout", "large_stride"}:
        return "layout"
    return groups.pop() if len(groups) == 1 else None


def wrong_of(results: Sequence[CaseResult]) -> list[CaseResult]:
    """The results that speak against the candidate."""
    return [result for result in results if result.status in WRONG]


def most_telling(wrong: Sequence[CaseResult]) -> CaseResult:
    """Of several wrong cases the one to look at first: declared, plain, of a known kind, in one place, large.

    One with large strides comes last, unless memory is at stake: its failure hides what else is wrong.
    """

    def telling(result: CaseResult) -> tuple[bool, bool, bool, int, bool, bool, int]:
        named = any(mismatch.kind != "values" for mismatch in result.mismatches)
        local = any(mismatch.where in LOCAL for mismatch in result.mismatches)
        broken = any(violation.kind in MEMORY for violation in result.violations)
        size = sum(output.elements for output in result.outputs)
        usual = result.group != "large_stride"
        return result.group in DECLARED_GROUPS, usual, broken, plainness(result), named, local, size

    return max(wrong, key=telling)


def plainness(result: CaseResult) -> int:
    """How little beside a kernel's mistake may explain a case: most of all sizes alone, least of all that
    NaN or infinity is expected."""
    if any(mismatch.kind == "not_propagated" for mismatch in result.mismatches):
        return 0
    if has_special_values(result):
        return 1
    return 3 if result.group in OF_SIZES else 2


def has_special_values(case: CaseResult) -> bool:
    """Whether a generated case was called with other values than random ones."""
    return case.group == "special" or (case.group == "combined" and names_values(case.name))
