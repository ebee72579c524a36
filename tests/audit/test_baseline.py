"""Findings that do not count: those of a baseline, however lines move, and those that comments suppress."""

from functools import partial
from pathlib import Path

import pytest

from pytorch_to_triton.audit.baseline import comments_in, notes_on, suppress
from pytorch_to_triton.audit.registry import all_rules
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.finding import Finding
from pytorch_to_triton.schema.target import Target

from .conftest import Auditing

pytestmark = pytest.mark.anyio

LOOP = "    while n:\n        break\n"
SOURCE = f"import triton\n\n@triton.jit\ndef kernel(n):\n{LOOP}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    (tmp_path / "kernel.py").write_text(SOURCE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def read(read: Auditing, project: Path) -> Auditing:
    return partial(read, project, baseline=project / "known.json")


async def test_what_the_baseline_holds_does_not_count_and_is_still_listed(
    read: Auditing, project: Path
) -> None:
    first = await read(update_baseline=True)
    assert (first.verdict, len(first.findings)) == ("faulty", 1)
    again = await read()
    assert (again.verdict, [finding.known for finding in again.findings]) == ("not run", [True])
    assert "1 of them is in the baseline." in again.summary


async def test_a_finding_stays_known_where_lines_move_and_a_second_one_is_new(
    read: Auditing, project: Path
) -> None:
    await read(update_baseline=True)
    moved = SOURCE.replace("import triton\n", "import triton\n\nA = 1\n")
    (project / "kernel.py").write_text(moved + LOOP, encoding="utf-8")
    report = await read()
    assert [finding.known for finding in report.findings] == [True, False]
    assert report.verdict == "faulty"


async def test_a_baseline_that_is_missing_or_no_baseline_is_refused(read: Auditing, project: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        await read()
    (project / "known.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(BadInput, match="is not an audit baseline"):
        await read()


async def test_an_update_without_a_file_is_refused(read: Auditing) -> None:
    with pytest.raises(BadInput, match="no baseline to update"):
        await read(update_baseline=True, baseline=None)


async def test_an_update_of_a_part_keeps_what_is_known_of_the_rest(read: Auditing, project: Path) -> None:
    (project / "other.py").write_text(SOURCE, encoding="utf-8")
    await read(update_baseline=True)
    await read(update_baseline=True, targets=(Target(path=project / "other.py"),))
    await read(update_baseline=True, rules=("deprecated_api",))
    assert [finding.known for finding in (await read()).findings] == [True, True]


LOADS, STORES, GRIDS = "redundant_load", "magic_block_size", "hard_coded_grid"


def found(line: int, rule: str = LOADS) -> Finding:
    kind = {"rule": rule, "severity": "medium", "category": "performance", "evidence": "source"}
    place = {"file": Path("/k.py"), "line": line, "column": 1}
    return Finding(**{**kind, **place, "message": "m", "suggestion": "i"})


COMMENTED = f"""# audit: ignore-file[{GRIDS}] single program by design
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
    _, aside = suppress([found(line, rule) for line in range(1, 20)], comments_in(COMMENTED))
    assert {one.finding.line for one in aside} == lines


def test_the_reason_is_kept_with_the_finding() -> None:
    _, (aside,) = suppress([found(2)], comments_in(COMMENTED))
    assert aside.reason == "measured, it pays"


def test_comments_without_effect_are_reported() -> None:
    comments = comments_in(COMMENTED)
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
