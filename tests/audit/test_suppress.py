"""Comments with a reason suppress findings; those without effect are reported."""

from pathlib import Path

import pytest

from pytorch_to_triton.audit.baseline import comments_in, notes_on, suppress
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.schema.finding import Finding

LOADS, STORES, GRIDS = "redundant_load", "magic_block_size", "hard_coded_grid"


def found(line: int, rule: str = LOADS) -> Finding:
    return Finding(
        rule=rule,
        severity="medium",
        category="performance",
        evidence="source",
        file=Path("/k.py"),
        line=line,
        column=1,
        message="m",
        suggestion="i",
    )


SOURCE = f"""# audit: ignore-file[{GRIDS}] single program by design
x = 1  # audit: ignore[{LOADS}] measured, it pays

# audit: ignore[{LOADS}, {STORES}] the next statement is
# explained here
y = (
    2
)
text = "# audit: ignore[{LOADS}] inside a string"

# audit: ignore[{STORES}] the whole head
@decorated
@twice(
    3
)
def kernel():
    z = 3  # noqa: X1 # audit: ignore[{LOADS}]
    w = 4  # audit: ignore
    v = 5  # audit: ignore[no_such_rule] because
"""


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        (LOADS, {2, 6, 7, 8}),
        (STORES, {6, 7, 8, 12, 13, 14, 15, 16}),
        (GRIDS, set(range(1, 20))),
        ("x", set()),
    ],
)
def test_a_comment_holds_for_its_statement_or_the_next_one_or_the_file(rule: str, lines: set[int]) -> None:
    _, aside = suppress([found(line, rule) for line in range(1, 20)], comments_in(SOURCE))
    assert {one.finding.line for one in aside} == lines


def test_the_reason_is_kept_with_the_finding() -> None:
    _, (aside,) = suppress([found(2)], comments_in(SOURCE))
    assert aside.reason == "measured, it pays"


def test_comments_without_effect_are_reported() -> None:
    comments = comments_in(SOURCE)
    _, aside = suppress([found(2), found(6), found(16, STORES)], comments)
    assert list(notes_on("k.py", comments, aside, all_rules())) == [
        f"k.py:1: audit: ignore[{GRIDS}] suppresses nothing: there is no such finding.",
        f"k.py:17: audit: ignore[{LOADS}] gives no reason, so it suppresses nothing.",
        "k.py:18: this comment suppresses nothing; write `# audit: ignore[RULE] REASON`.",
        "k.py:19: there is no rule no_such_rule to ignore.",
    ]


def test_a_comment_on_a_rule_that_other_evidence_may_break_is_left_alone() -> None:
    for rules in (f"{LOADS}, register_spills", "register_spills"):
        comments = comments_in(f"x = 1  # audit: ignore[{rules}] why\n")
        assert list(notes_on("k.py", comments, (), all_rules())) == []


def test_a_file_without_such_comments_is_not_even_read() -> None:
    assert comments_in("x = 'not python at all") == ()


def test_each_of_many_comments_holds_for_its_own_line() -> None:
    lines = 10_000
    comments = comments_in(f"x = 1  # audit: ignore[{LOADS}] why\n" * lines)
    assert [(one.first, one.last) for one in comments] == [(line, line) for line in range(1, lines + 1)]
