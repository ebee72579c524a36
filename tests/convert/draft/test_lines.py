"""Long lines of a drafted file are broken without changing what they say."""

import ast

import pytest

from pytorch_to_triton.draft.file.lines import WIDTH, listed, without_repeats, wrapped

LONG = "a_rather_long_name_of_a_variable"


def test_a_short_line_stays_as_it_is() -> None:
    assert wrapped("y = tl.exp(x)") == ("y = tl.exp(x)",)


@pytest.mark.parametrize(
    "line",
    [
        f"y = tl.where({LONG}, {LONG} + 1.0, tl.exp({LONG} - {LONG}))",
        f"tl.store({LONG} + row * {LONG} + col, {LONG}, mask={LONG})",
        f"x = tl.load(x_ptr + {LONG} * {LONG}, mask={LONG}, other=0.0).to(tl.float32)",
        f"{LONG} += {LONG} * {LONG} + {LONG} - tl.exp({LONG})",
    ],
)
def test_a_long_line_is_broken_and_means_the_same(line: str) -> None:
    parts = wrapped(line)
    assert len(parts) > 1
    assert max(len(part) for part in parts) <= WIDTH
    assert ast.dump(ast.parse("\n".join(parts))) == ast.dump(ast.parse(line))


def test_a_table_that_is_looked_up_is_put_on_a_line_of_its_own() -> None:
    entries = ", ".join(f"torch.{dtype}: 0.10000000149011612" for dtype in ("float32", "bfloat16", "float16"))
    assert wrapped(f"y = {{{entries}}}[x.dtype]") == ("y = (", f"    {{{entries}}}[x.dtype]", ")")


def test_a_list_of_arguments_fills_its_lines() -> None:
    lines = listed([f"argument_{n}" for n in range(20)])
    assert max(len(line) for line in lines) <= WIDTH
    assert len(lines) == 3
    assert ", ".join(line.strip().rstrip(",") for line in lines) == ", ".join(
        f"argument_{n}" for n in range(20)
    )


def test_a_number_is_computed_again_where_what_it_depends_on_is_another() -> None:
    lines = ["block_n = 64", "block_m = 2048 // block_n", "block_n = 4096", "block_m = 2048 // block_n"]
    assert without_repeats([(line,) for line in lines]) == [(line,) for line in lines]
    assert without_repeats([(line,) for line in (*lines[:2], *lines[:2])]) == [(line,) for line in lines[:2]]
