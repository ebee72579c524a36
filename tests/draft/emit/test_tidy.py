"""Statements with a name for everything become what a person would write, and compute the same."""

import ast
import random

import pytest

from pytorch_to_triton.draft.emit.tidy import TEMPORARY, WIDTH, tidied, wrapped

ROWS = {
    "a single use is written into place": (
        ("t__0__product = x * 2.0", "out = t__0__product + 1.0"),
        ("out = x * 2.0 + 1.0",),
    ),
    "two uses keep a short name": (
        ("t__0__product = x * 2.0", "a = t__0__product + 1.0", "b = t__0__product + a"),
        ("product = x * 2.0", "a = product + 1.0", "b = product + a"),
    ),
    "a name that is taken gets a number": (
        (
            "product = x * 3.0",
            "t__0__product = x * 2.0",
            "a = t__0__product + product",
            "b = t__0__product + a",
        ),
        ("product = x * 3.0", "product_2 = x * 2.0", "a = product_2 + product", "b = product_2 + a"),
    ),
    "what nothing reads goes, and what only that read": (
        ("t__0__sum = x + 1.0", "t__1__product = t__0__sum * 2.0", "out = x"),
        ("out = x",),
    ),
    "another name is replaced everywhere": (
        ("t__0__value = x", "a = t__0__value + 1.0", "b = t__0__value + a"),
        ("a = x + 1.0", "b = x + a"),
    ),
}


def body(*lines: str) -> str:
    return "def f():\n" + "\n".join(f"    {line}" for line in lines)


@pytest.mark.parametrize("name", ROWS)
def test_statements_are_tidied(name: str) -> None:
    before, after = ROWS[name]
    assert tidied(body(*before)) == body(*after)


def test_a_value_is_not_moved_into_a_loop_nor_past_what_changes_it() -> None:
    loop = body("t__0__sum = x + 1.0", "for i in range(3):", "    x = x + t__0__sum")
    assert "sum = x + 1.0\n    for" in tidied(loop)
    changed = body("t__0__sum = x + 1.0", "x = 2.0", "a = x", "out = t__0__sum")
    assert eval_of(tidied(changed), 5.0) == 6.0


@pytest.mark.parametrize("seed", range(60))
def test_what_is_computed_stays(seed: int) -> None:
    choose = random.Random(seed)
    names, lines = ["x"], []
    for i in range(choose.randint(3, 9)):
        temporary = choose.random() < 0.7
        name = f"{TEMPORARY}{i}__{choose.choice(('sum', 'part'))}" if temporary else f"v{i}"
        lines.append(f"{name} = {choose.choice(names)} {choose.choice('+-*')} ({choose.choice(names)} + {i})")
        names.append(name)
    source = body(*lines, f"out = {names[-1]} - {choose.choice(names)}")
    assert eval_of(tidied(source), 3) == eval_of(source, 3)


def eval_of(source: str, x: float) -> float:
    """What the function's body leaves in `out`."""
    scope = {"x": x}
    exec("\n".join(line[4:] for line in source.splitlines()[1:]), scope)
    return scope["out"]


@pytest.mark.parametrize(
    "line",
    [
        "    tl.store(out_ptr + "
        + " + ".join(f"index_{i} * stride_{i}" for i in range(8))
        + ", value, mask=inside)",
        "    total = " + " + ".join(f"first_{i} * second_{i}" for i in range(8)),
        "    inside = " + " & ".join(f"(first_{i}[:, None] < second_{i}[None, :])" for i in range(4)),
        "    values = tl.load(x_ptr + row * n_cols + col, "
        "mask=(row < n_rows) & (col < n_cols) & (col > row), other=0.0)",
    ],
)
def test_a_long_line_is_wrapped_and_says_the_same(line: str) -> None:
    lines = wrapped(line)
    assert len(lines) > 1
    assert max(map(len, lines)) <= WIDTH
    whole = "\n".join(part[4:] for part in lines)
    assert ast.dump(ast.parse(whole)) == ast.dump(ast.parse(line.strip()))
