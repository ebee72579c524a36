"""One verdict from the results of all cases: what decides, what is said first, what to do next."""

from typing import Any

import pytest

from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.verdict import (
    CaseResult,
    CaseStatus,
    Decision,
    Limit,
    LimitKind,
    Mismatch,
    OutputFigures,
    Skip,
    Violation,
    ViolationKind,
)
from pytorch_to_triton.validate.conclusion import (
    ONLY,
    decide,
    most_telling,
    next_step_of,
    not_tried,
    summary_of,
    wrong_of,
)
from pytorch_to_triton.validate.notes import notes_on


def result(group: Group, status: CaseStatus, **fields: Any) -> CaseResult:
    return CaseResult(**{"name": group, "group": group, "status": status, "why": "It is so.", **fields})


def figures(elements: int = 8, **fields: Any) -> OutputFigures:
    errors = {
        "failing": 0,
        "unjudged": 0,
        "candidate_error": 0.5,
        "pytorch_error": 0.25,
        "allowed_error": 8.5,
    }
    return OutputFigures(
        **{"path": "out", "dtype": "float32", "shape": (elements,), "elements": elements, **errors, **fields}
    )


def mismatch(**fields: Any) -> Mismatch:
    usual = {"output": "out", "where": "everywhere", "message": "out is wrong.", "first": None}
    return Mismatch(**{**usual, "kind": "values", "causes": ("One cause.",), **fields})


def wrong(group: Group = "declared", name: str = "", **of: Any) -> CaseResult:
    """A result with one mismatch, of these fields."""
    return result(group, "failed", name=name or group, mismatches=(mismatch(**of),))


def violation(kind: ViolationKind = "torch_operator") -> Violation:
    return Violation(kind=kind, message="It calls aten.mm.", suggestion="Write a kernel.")


# Decisions


@pytest.mark.parametrize(
    ("results", "decision"),
    [
        ([("declared", "passed"), ("odd", "passed")], "passed"),
        ([("declared", "passed"), ("empty", "skipped")], "passed"),
        ([("declared", "passed"), ("empty", "crashed")], "failed"),
        ([("declared", "passed"), ("special", "timed_out")], "failed"),
        ([("declared", "raised"), ("declared", "reference_raised")], "failed"),
        ([("declared", "passed"), ("dtype", "reference_raised")], "undecided"),
        ([("declared", "passed"), ("declared", "skipped")], "undecided"),
        ([("declared", "passed"), ("declared", "undecided")], "undecided"),
        ([("declared", "passed"), ("dtype", "undecided")], "undecided"),
        ([("declared", "passed"), ("special", "undecided")], "passed"),
        ([("declared", "passed"), ("large_stride", "limited")], "passed"),
        ([("declared", "passed"), ("odd", "lost")], "undecided"),
        ([("declared", "failed"), ("odd", "lost")], "failed"),
        ([("odd", "passed")], "undecided"),
        ([], "undecided"),
    ],
)
def test_the_decision_follows_from_the_cases(results: list[tuple[Group, CaseStatus]], decision: str) -> None:
    assert decide([result(group, status) for group, status in results]) == decision


def test_a_case_that_was_asked_for_by_name_counts_as_declared() -> None:
    passed = [result("odd", "passed", name="N=7")]
    assert decide(passed, requested=["N=7"]) == "passed"
    assert decide(passed) == "undecided"


@pytest.mark.parametrize("status", ["passed", "reference_raised", "skipped"])
def test_violations_alone_fail_whatever_the_cases_say(status: CaseStatus) -> None:
    assert decide([result("declared", status)], [violation()]) == "failed"
    assert decide([], [violation()]) == "failed"


# What is said


def test_a_passed_summary_counts_cases_and_gives_errors_and_what_was_skipped() -> None:
    results = [
        result("declared", "passed", outputs=(figures(), figures(candidate_error=1.5))),
        result("odd", "skipped", why="The reference raised."),
    ]
    assert summary_of("passed", results) == (
        "1 of 2 cases is right. 1 case could not be judged, for example odd: The reference raised. "
        "Largest error: 1.5 units of rounding error (PyTorch: 0.25)."
    )
    assert next_step_of("passed", results).startswith("Use the kernel.")


def test_an_undecided_summary_says_what_is_open() -> None:
    results = [result("declared", "reference_raised", name="N=8", why="The reference raised.")]
    assert summary_of("undecided", results) == "Undecided. N=8: The reference raised."
    assert "no declared case could be run" in summary_of("undecided", [])
    lost = [result("declared", "passed"), result("odd", "lost", name="N=3", why="could not be run")]
    assert summary_of("undecided", lost) == "Undecided, although 1 case passed. N=3: could not be run"
    assert next_step_of("undecided", results).startswith("Fix the declared inputs")


def limited(
    group: Group, subject: str, what: str, tensors: tuple[str, ...] = (), **fields: Any
) -> CaseResult:
    kind: LimitKind = "offsets" if tensors else "exception"
    about = {"subject": subject, "what": what, "up_to": "right below", "fix": "Use int64."}
    limit = Limit(kind=kind, tensors=tensors, line=3, cases=(group,), **about)
    return result(group, "limited", limit=limit, **fields)


def test_limits_are_named_and_the_next_step_lifts_them() -> None:
    offsets = [
        limited("large_stride", f"offsets of {x}", "are 32-bit from line 3 on", (x,), name=x) for x in "xy"
    ]
    empty = limited("empty", "empty inputs", "raise ValueError")
    results = [result("declared", "passed", outputs=(figures(),)), *offsets, empty]
    assert summary_of("passed", results).startswith(
        "1 of 4 cases is right, 3 are beyond its limits. Limit: offsets of x and y are 32-bit from line 3 on "
        "(right below). Limit: empty inputs raise ValueError (right below). Largest error"
    )
    assert (
        next_step_of("passed", results) == "Use the kernel within its limits, or lift them. Fix: Use int64."
    )


def test_a_mixture_and_values_that_pytorch_refuses_are_not_counted() -> None:
    refused = [result("mixed", "skipped"), result("special", "skipped", reason="raised")]
    results = [result("declared", "passed"), result("odd", "passed"), *refused]
    assert summary_of("passed", results).startswith("All 2 cases are right. Largest error")


def test_limits_beyond_the_first_few_are_counted() -> None:
    groups = [limited("odd", f"sizes {n}", f"raise E at k.py:{n}") for n in range(6)]
    assert "Limit: sizes 3 raise" in summary_of("passed", groups)
    assert "2 more limits are in `limits`." in summary_of("passed", groups)


@pytest.mark.parametrize("decision", ["passed", "failed", "undecided"])
def test_declared_sizes_that_were_not_tried_are_in_the_summary(decision: Decision) -> None:
    status: dict[Decision, CaseStatus] = {"failed": "failed", "undecided": "reference_raised"}
    results = [result("declared", status.get(decision, "passed"))]
    skips = [
        Skip(what="N=1000000", why="too large for this run: it holds too many elements", declared=True),
        Skip(what="N=1 bfloat16", why="requires N > 1"),
    ]
    assert not_tried(skips) == ("N=1000000",)
    assert summary_of(decision, results, (), skips).endswith("Not tried: N=1000000, too large for this run.")
    assert "Not tried" not in summary_of(decision, results, (), skips[1:])


def test_without_a_certain_cause_none_is_named() -> None:
    step = next_step_of("failed", [wrong(causes=())])
    assert step.startswith("Run the smallest case alone and look at the elements")


def test_an_undecided_case_asks_for_a_reference_that_rounds_less() -> None:
    step = next_step_of("undecided", [result("declared", "undecided")])
    assert step.startswith("Have the reference compute in float32 and round once")


def test_the_summary_shows_the_most_telling_case() -> None:
    results = [
        result("declared", "failed", name="N=8", why="Vague.", mismatches=(mismatch(),)),
        result("declared", "failed", name="N=100", why="Clear.", mismatches=(mismatch(kind="nan_only"),)),
        result("special", "failed", name="inf", why="Odd.", mismatches=(mismatch(kind="infinite"),)),
    ]
    assert summary_of("failed", results) == "3 of 3 cases are wrong. For example, N=100: Clear."
    assert next_step_of("failed", results).startswith("Likely cause: One cause.")


LONG, SHORT = "BLOCK=256 of add_kernel", "BLOCK=64 of add_kernel"


def in_configuration(name: str, status: CaseStatus = "failed") -> CaseResult:
    mismatches = (mismatch(),) if status == "failed" else ()
    return result("odd", status, configurations=(name,), mismatches=mismatches)


def test_a_configuration_that_all_wrong_cases_share_and_not_all_right_ones_is_named() -> None:
    wrong = [in_configuration(LONG), in_configuration(LONG)]
    summary = summary_of("failed", [*wrong, in_configuration(SHORT, "passed"), result("empty", "passed")])
    assert summary == f"2 of 4 cases are wrong, with {LONG}. For example, odd: It is so."


@pytest.mark.parametrize(
    "right",
    [in_configuration(LONG, "passed"), result("empty", "passed"), in_configuration(SHORT)],
    ids=["a right case shares it", "no right case has any", "another wrong case has another"],
)
def test_a_configuration_that_tells_nothing_is_not_named(right: CaseResult) -> None:
    summary = summary_of("failed", [in_configuration(LONG), right])
    assert "BLOCK" not in summary


def test_right_values_and_broken_rules_are_both_reported() -> None:
    results = [result("declared", "passed", why=""), result("odd", "passed", why="")]
    summary = summary_of("failed", results, [violation()])
    assert summary == "The values of 2 cases are right, but the rules are broken: It calls aten.mm."
    assert next_step_of("failed", results, [violation()]).startswith("Fix: Write a kernel. Then validate")


def test_cases_that_only_break_rules_are_not_called_wrong() -> None:
    broken = result("declared", "failed", name="N=8", why="It calls aten.mm.", violations=(violation(),))
    results = [broken, result("odd", "passed")]
    assert (
        summary_of("failed", results) == "1 of 2 cases breaks the rules. For example, N=8: It calls aten.mm."
    )
    assert next_step_of("failed", results).startswith("Fix: Write a kernel.")


def test_one_wrong_value_beside_broken_rules_is_called_wrong() -> None:
    results = [
        result("declared", "failed", name="N=8", violations=(violation(),)),
        result("declared", "failed", name="N=9", why="out is wrong.", mismatches=(mismatch(kind="dtype"),)),
    ]
    summary = summary_of("failed", results, [violation("network")])
    assert summary == "2 of 2 cases are wrong. For example, N=9: out is wrong. It calls aten.mm."


def test_cases_that_did_not_return_and_those_not_run_are_counted() -> None:
    endless = [result("declared", "timed_out", name=name, why="did not return") for name in ("N=8", "N=9")]
    left = [result("odd", "skipped", reason="not_run")] * 3
    summary = summary_of("failed", [*endless, *left])
    assert summary == "2 of 5 cases did not return, and 3 were not run. For example, N=8: did not return"
    mixed = summary_of("failed", [wrong("declared", "N=1"), *endless, left[0]])
    assert mixed.startswith("3 of 4 cases are wrong (2 did not return), and 1 was not run. For example, N=1:")


def test_a_corrupting_access_is_fixed_before_the_values_it_spoils() -> None:
    outside = violation("store_outside")
    results = [
        result("declared", "failed", why=outside.message, mismatches=(mismatch(),), violations=(outside,))
    ]
    assert next_step_of("failed", results).startswith("Fix: Write a kernel.")


def test_a_case_that_only_crashes_is_to_return() -> None:
    assert next_step_of("failed", [result("declared", "crashed")]).startswith(
        "Fix the kernel so that it returns"
    )


@pytest.mark.parametrize("group", ONLY)
def test_failures_of_one_generated_group_are_explained_by_that_group(group: Group) -> None:
    assert next_step_of("failed", [result("declared", "passed"), wrong(group)]).startswith(ONLY[group])


def test_failures_of_several_groups_are_explained_by_their_cause_unless_all_are_of_layouts() -> None:
    layouts = [result("declared", "passed"), wrong("layout"), wrong("large_stride")]
    assert next_step_of("failed", layouts).startswith(ONLY["layout"])
    assert next_step_of("failed", [wrong("layout"), wrong("odd")]).startswith("Likely cause: One cause.")


# Which case is shown

BY_WEIGHT = [
    result("declared", "failed", name="declared, memory", violations=(violation("load_outside"),)),
    wrong(name="known, local", kind="dtype", where="tail"),
    wrong(name="known", kind="nan_only"),
    wrong(name="local", where="diagonal"),
    result("declared", "failed", name="large", mismatches=(mismatch(),), outputs=(figures(100),)),
    result("declared", "failed", name="small", mismatches=(mismatch(),), outputs=(figures(8),)),
    result(
        "special", "failed", name="not declared", violations=(violation("race"),), outputs=(figures(999),)
    ),
]


def test_the_cases_are_shown_in_this_order() -> None:
    for start in range(len(BY_WEIGHT)):
        assert most_telling([*BY_WEIGHT[:start:-1], BY_WEIGHT[start]]).name == BY_WEIGHT[start].name


def test_a_plain_case_is_shown_before_a_special_one_and_nan_is_blamed_last() -> None:
    plain = wrong("odd", "N=3", causes=())
    offset = wrong("layout", "N=8 x offset", where="tail")
    nan = wrong("combined", "N=5 x offset, nan in x", kind="not_propagated", where="one_index")
    huge = wrong("special", "N=8 huge in x", kind="infinite", where="tail")
    results = [nan, huge, offset, plain, result("declared", "passed")]
    assert summary_of("failed", results).startswith("4 of 5 cases are wrong. For example, N=3: ")
    assert not next_step_of("failed", results).startswith("Likely cause")
    assert most_telling([nan, huge, offset]) is offset
    assert most_telling([nan, huge]) is huge


def test_only_some_statuses_speak_against_a_candidate() -> None:
    wrong: list[CaseStatus] = ["failed", "crashed", "timed_out", "raised"]
    others: list[CaseStatus] = ["passed", "reference_raised", "skipped", "limited", "undecided"]
    assert [each.status for each in wrong_of([result("odd", s) for s in (*wrong, *others)])] == wrong


# Notes on values


def test_a_pass_outside_fixed_tolerances_is_noted_once() -> None:
    loose = {"meets_loose": False, "meets_strict": False}
    results = [
        result("declared", "passed", name="N=1", outputs=(figures(**loose), figures())),
        result("dtype", "passed", name="N=2", outputs=(figures(meets_strict=False),)),
        result("declared", "failed", name="N=3", outputs=(figures(**loose),)),
        result("declared", "passed", name="N=4", outputs=(figures(),)),
        result("special", "passed", name="N=5 large", outputs=(figures(**loose),)),
    ]
    wide, narrow = notes_on(results)
    assert "outside the loose tolerance" in wide
    assert wide.endswith(": N=1.")
    assert "outside the strict tolerance" in narrow
    assert narrow.endswith(": N=2.")
    assert [*notes_on(results[2:])] == []


def test_many_cases_outside_a_tolerance_are_shortened() -> None:
    outputs = (figures(meets_strict=False),)
    results = [result("declared", "passed", name=f"N={n}", outputs=outputs) for n in range(5)]
    [note] = notes_on(results)
    assert note.endswith(": N=0, N=1, N=2 and 2 more.")


def test_a_reference_that_always_returns_one_value_is_noted() -> None:
    constant = result("declared", "passed", outputs=(figures(constant=True),))
    one_element = result("declared", "passed", outputs=(figures(1),))
    varied = result("declared", "passed", outputs=(figures(constant=True), figures()))
    zeros = result("special", "passed", outputs=(figures(),))
    [note] = notes_on([constant, one_element, zeros])
    assert "the same value everywhere" in note
    assert [*notes_on([constant, varied])] == []
    assert [*notes_on([one_element])] == []
