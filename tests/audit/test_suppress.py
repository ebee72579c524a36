"""Comments set findings aside where they give a reason, and say so where they do nothing."""

from pathlib import Path

import pytest

from pytorch_to_triton.audit.suppress import comments_in, notes_on, set_aside
from pytorch_to_triton.schema.finding import Finding


def found(line: int, rule: str = "spills") -> Finding:
    return Finding(
        rule=rule,
        severity="medium",
        category="performance",
        evidence="source",
        file=Path("/k.py"),
        line=line,
        column=1,
        message="m",
        instead="i",
    )


SOURCE = """# audit: ignore-file[races] single program by design
x = 1  # audit: ignore[spills] measured, it pays

# audit: ignore[spills, casts] the next line is
# explained here
y = (
    2
)
text = "# audit: ignore[spills] inside a string"
z = 3  # audit: ignore[spills]
"""


def lines_set_aside(rule: str) -> set[int]:
    comments = tuple(comments_in(SOURCE))
    _, aside = set_aside([found(line, rule) for line in range(1, 11)], comments)
    return {one.finding.line for one in aside}


@pytest.mark.parametrize(
    ("rule", "lines"),
    [("spills", {2, 6}), ("casts", {6}), ("races", set(range(1, 11))), ("other", set())],
)
def test_a_comment_holds_for_its_line_or_the_next_line_of_code_or_the_file(
    rule: str, lines: set[int]
) -> None:
    assert lines_set_aside(rule) == lines


def test_the_reason_is_kept_with_the_finding() -> None:
    _, (aside,) = set_aside([found(2)], tuple(comments_in(SOURCE)))
    assert aside.reason == "measured, it pays"


def test_comments_that_do_nothing_are_told() -> None:
    comments = tuple(comments_in(SOURCE))
    findings = [found(2), found(6), found(6, "casts"), found(10)]
    kept, aside = set_aside(findings, comments)
    assert [finding.line for finding in kept] == [10]
    assert list(notes_on("k.py", comments, aside)) == [
        "k.py:1: audit: ignore[races] sets nothing aside: nothing is found there.",
        "k.py:10: audit: ignore gives no reason, so it sets nothing aside.",
    ]


def test_a_file_without_such_comments_is_not_even_read() -> None:
    assert list(comments_in("x = 'not python at all")) == []
