"""Statements of `run` that several programs share."""

from collections.abc import Sequence

import pytest

from pytorch_to_triton.draft.file.lines import decided

A, B, C, END = ("done.append('a')",), ("done.append('b')",), ("done.append('c')",), ("return done",)
PROGRAMS = [
    [[A, END], [B, END]],
    [[A, B, END], [A, C, B, END]],
    [[A, C, B, END], [A, B, END]],
    [[A, END], [A, B, C, END], [A, B, END]],
    [[A, END], [A, END]],
    [[A, B, END], [A, A, B, END]],
    [[END], [A, END], [END]],
]


@pytest.mark.parametrize("programs", PROGRAMS)
def test_each_program_does_its_own_statements_in_order(programs: Sequence[Sequence[tuple[str]]]) -> None:
    conditions = [f"number == {i}" for i in range(len(programs) - 1)]
    body = "".join(f"    {line}\n" for line in ["done = []", *decided(conditions, programs)])
    names: dict[str, object] = {}
    exec(f"def run(number):\n{body}", names)
    run = names["run"]
    assert callable(run)
    for number, program in enumerate(programs):
        assert [f"done.append('{x}')" for x in run(number)] == [line for (line,) in program[:-1]]
