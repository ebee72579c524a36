"""From the results of all cases to one verdict, in words."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus, Decision, Limit, Skip, Violation, Where
from pytorch_to_triton.validate.behavior import cut, times
from pytorch_to_triton.validate.judge import CLAIMED, MEMORY
from pytorch_to_triton.validate.limits import limits_in

LOCAL: tuple[Where, ...] = ("tail", "one_index", "every_nth", "range", "diagonal")
ONLY: dict[Group, str] = {
    "layout": "Only other memory layouts fail: pass strides to the kernel, or make its inputs contiguous.",
    "empty": "Only empty inputs fail: return early where there is nothing to do.",
    "one": "Only sizes of one fail: look at what N - 1, squeeze() and broadcasting do there.",
    "odd": "Only odd or equal sizes fail: look at the masks of the last block and at the grid.",
    "power_of_two": "Only sizes around a power of two fail: look at masks and loops at the edge of a block.",
    "dtype": "Only further dtypes fail: look at what is computed, and stored, in the dtype of an input.",
    "mixed": "Only mixtures of dtypes fail: look at what takes its dtype from another tensor.",
    "far": "Only huge strides fail: compute offsets in int64, e.g. tl.program_id(0).to(tl.int64) * stride.",
    "drawn": "Only sizes drawn at random fail: look for what holds at the declared sizes alone.",
    "beyond": "Only sizes beyond the declared ones fail: loop over tiles, or bound them with REQUIRES.",
    "batch": "Only long batches fail: look for a bound on the grid or the number of rows.",
    "option": "Only other values of a number fail: pass it to the kernel in place of a constant.",
    "repeat": "Only a second call at the same addresses fails: look for what is kept from call to call.",
}
"""What to say when all wrong cases are of one group."""
WRONG: tuple[CaseStatus, ...] = ("failed", "crashed", "timed_out", "raised")
WITHHELD = "the reference is not there"
"""What a candidate is told that calls the reference (worker/loading/stub.py)."""
BRIEF = 120
"""Characters of a reason that stands in a sentence."""
LIMITS_SHOWN = 4
"""So many limits stand in a summary."""
SPECIAL = (
    "Only special values fail. Treat them as PyTorch does, or declare the range that the input has, such as "
    "`float32[M, N] in -100..100`,"
)
NO_CAUSE = "Run the smallest case alone, look at the elements that differ, fix the kernel"
AGAIN = "and validate again with the same seed."


def decide(
    results: Sequence[CaseResult], violations: Sequence[Violation] = (), asked: Collection[str] = ()
) -> Decision:
    """Failed by one wrong case or violation; passed when every declared case passed, and there is one.

    Cases that were `asked` for by name count as declared.
    """
    if violations or any(result.status in WRONG for result in results):
        return "failed"
    declared = [result for result in results if result.group in CLAIMED or result.name in asked]
    passed = [result for result in declared if result.status in ("passed", "limited")]
    # A candidate may have had a hand in it.
    if any(result.status == "lost" for result in results):
        return "undecided"
    return "passed" if passed and len(passed) == len(declared) else "undecided"


def summary_of(
    decision: Decision,
    results: Sequence[CaseResult],
    violations: Sequence[Violation] = (),
    skipped: Sequence[Skip] = (),
) -> str:
    """The outcome in a few sentences: what was found, what was left open, and what was not tried."""
    if decision == "failed":
        summary = failed_summary(results, violations)
    elif decision == "undecided":
        summary = undecided_summary(results)
    else:
        summary = passed_summary(results)
    missing = ", ".join(not_tried(skipped))
    return f"{sentence(summary)} Not tried: {missing}, too large for this run." if missing else summary


def not_tried(skipped: Iterable[Skip]) -> tuple[str, ...]:
    """The declared sizes that were left out for want of room, such as `N=1000000`; none: all were tried."""
    return tuple(skip.what for skip in skipped if skip.declared)


def undecided_summary(results: Sequence[CaseResult]) -> str:
    agreeing = times(len([result for result in results if result.status == "passed"]), "case")
    settled: tuple[CaseStatus, ...] = ("passed", "limited")
    unsettled = [result for result in results if result.status not in settled]
    open_cases = [result for result in unsettled if result.group in CLAIMED or result.status == "lost"]
    reason = f"{open_cases[0].name}: {open_cases[0].why}" if open_cases else "no declared case could be run."
    verb = "agrees" if agreeing == "1 case" else "agree"
    return f"Undecided: {agreeing} {verb}, but {reason}"


def passed_summary(results: Sequence[CaseResult]) -> str:
    """Where it is right, what could not be judged, up to where it is right, and the largest errors."""
    # A mixture of dtypes that PyTorch refuses is no case that anybody could judge.
    possible = [r for r in results if (r.group, r.status) != ("mixed", "skipped")]
    outputs = [output for r in possible if r.status == "passed" for output in r.outputs]
    ours = max((output.candidate_error for output in outputs), default=0.0)
    theirs = max((output.pytorch_error for output in outputs), default=0.0)
    return " ".join(
        [
            f"Right in {share_passed(possible)}{beyond(possible)}.",
            *not_judged(possible),
            *limit_sentences(limits_in(possible)),
            f"Largest error: {ours:.3g} units of rounding error; PyTorch's own {theirs:.3g}.",
        ]
    )


def share_passed(results: Sequence[CaseResult]) -> str:
    passed, total = len([r for r in results if r.status == "passed"]), len(results)
    if passed < total:
        return f"{passed} of {times(total, 'case')}"
    return f"all {total} cases" if total > 1 else "the one case"


def not_judged(results: Sequence[CaseResult]) -> Iterator[str]:
    """How many cases stayed open, and why the first did."""
    if found := [result for result in results if result.status not in ("passed", "limited")]:
        first = f"{found[0].name}: {cut(found[0].why, BRIEF)}"
        yield sentence(f"Not judged: {times(len(found), 'case')}, as in {first}")


def limit_sentences(limits: Sequence[Limit]) -> Iterator[str]:
    yield from (sentence(f"Limit: {limit}") for limit in limits[:LIMITS_SHOWN])
    if len(limits) > LIMITS_SHOWN:
        yield f"{times(len(limits) - LIMITS_SHOWN, 'more limit')} in `limits`."


def note_on_confirmed(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """That PyTorch and float64 are far apart in elements at which the candidate agrees with one of them."""
    names = [r.name for r in results if r.status == "passed" and any(o.confirmed for o in r.outputs)]
    if not names:
        return ()
    return (
        "PyTorch's own result is far from float64's in some elements, and the candidate's is right by one of "
        f"them, in {times(len(names), 'case')}, as in {names[0]}.",
    )


def beyond(results: Sequence[CaseResult]) -> str:
    """What is said of the cases beyond a limit."""
    limited = len([result for result in results if result.status == "limited"])
    return f", {limited} beyond its limits" if limited else ""


def sentence(text: str) -> str:
    """With a full stop at its end."""
    return text if text.endswith((".", "!", "?", "...")) else f"{text}."


def failed_summary(results: Sequence[CaseResult], violations: Sequence[Violation]) -> str:
    wrong = wrong_of(results)
    verb = "is" if len(wrong) == 1 else "are"
    beside = " ".join(violation.message for violation in violations)
    if not wrong:
        return f"Right values in {times(len(results), 'case')}, but the rules are broken: {beside}"
    case = most_telling(wrong)
    only_conduct = all(result.status == "failed" and not result.mismatches for result in wrong)
    of_all = f"{len(wrong)} of {times(len(results), 'case')}"
    head = f"Breaks the rules in {of_all}" if only_conduct else f"{of_all} {verb} wrong"
    told = f"{head}, as in {case.name}: {case.why}"
    new = [violation.message for violation in violations if core_of(violation.message) not in told]
    return " ".join([told + "." * bool(new and not told.endswith(".")), *new])


def core_of(message: str) -> str:
    """A violation as the exception tells it that stopped the candidate."""
    return message.removeprefix("The candidate ").partition(" (line")[0].rstrip(".")


def next_step_of(
    decision: Decision, results: Sequence[CaseResult], violations: Sequence[Violation] = ()
) -> str:
    """What to do about it."""
    if decision == "passed":
        fixes = list(dict.fromkeys(limit.fix for limit in limits_in(results)))
        if not fixes:
            return "Use it. Being right says nothing about its speed."
        return f"Use it within its limits, or lift them. Fix: {' '.join(fixes[:LIMITS_SHOWN])}"
    if decision == "undecided":
        return undecided_step(results)
    wrong = wrong_of(results)
    if not wrong:
        return f"{violations[0].suggestion} Fix it {AGAIN}"
    case = most_telling(wrong)
    others_pass = any(result.status == "passed" for result in results)
    if (only := only_group(wrong)) in ONLY and not case.violations and others_pass:
        return f"{ONLY[only]} Fix it {AGAIN}"
    if case.violations and (not case.mismatches or case.why.startswith(case.violations[0].message)):
        return f"{case.violations[0].suggestion} Fix it {AGAIN}"
    if case.mismatches:
        causes = case.mismatches[0].causes
        if causes:
            return f"Likely cause: {causes[0]} Fix it {AGAIN}"
        return f"{SPECIAL} {AGAIN}" if only_group(wrong) == "special" else f"{NO_CAUSE}, {AGAIN}"
    if violations:
        return f"{violations[0].suggestion} Fix it {AGAIN}"
    if WITHHELD in case.why:
        return f"Compute it in a kernel: {WITHHELD} while the candidate runs. Fix it {AGAIN}"
    return f"Fix the kernel so that it returns on every case, {AGAIN}"


def undecided_step(results: Sequence[CaseResult]) -> str:
    """What to do where a declared case stays open."""
    if any("NoGradient" in result.why for result in results):
        return "The reference tracks no gradient: validate without --backward, or make it differentiable."
    if any(result.status == "undecided" and result.group in CLAIMED for result in results):
        return (
            "Have the reference compute in float32 and round once, or declare ranges in which its own "
            "rounding stays small, then validate again."
        )
    return "Fix the declared inputs so that the reference runs on each of them, then validate again."


def only_group(wrong: Sequence[CaseResult]) -> Group | None:
    """The one group that all wrong cases belong to; huge strides are a layout too. None: several."""
    groups = {result.group for result in wrong}
    if groups == {"layout", "far"}:
        return "layout"
    return groups.pop() if len(groups) == 1 else None


def wrong_of(results: Sequence[CaseResult]) -> list[CaseResult]:
    """The results that speak against the candidate."""
    return [result for result in results if result.status in WRONG]


def most_telling(wrong: Sequence[CaseResult]) -> CaseResult:
    """Of several wrong cases the one to look at first: declared, of a known kind, in one place, large.

    One with huge strides comes last, unless memory is at stake: its failure hides what else is wrong.
    """

    def telling(result: CaseResult) -> tuple[bool, bool, bool, bool, bool, int]:
        named = any(mismatch.kind != "values" for mismatch in result.mismatches)
        local = any(mismatch.where in LOCAL for mismatch in result.mismatches)
        broken = any(violation.kind in MEMORY for violation in result.violations)
        size = sum(output.elements for output in result.outputs)
        return result.group in CLAIMED, result.group != "far", broken, named, local, size

    return max(wrong, key=telling)
