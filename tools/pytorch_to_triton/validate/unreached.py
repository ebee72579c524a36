"""What of a candidate's Python no case ran, from its source and the lines that were reached."""

import ast
from collections.abc import Iterable, Iterator, Sequence, Set

from pytorch_to_triton.schema.verdict import Skip
from pytorch_to_triton.validate.host_code import functions, kernels_of, parse
from pytorch_to_triton.validate.phrases import cut
from pytorch_to_triton.worker.wire.observation import Observation

NOT_REACHED = "no case leads there: declare sizes, dtypes or values that do, or remove it"
LONGEST = 48
"""Characters that are shown of a line."""


def unreached_lines(source: str, observations: Iterable[Observation], file: str) -> tuple[Skip, ...]:
    """The statements in functions of the file that were called, and no case ran; kernels and refusals are
    left out."""
    lines = {
        line
        for observation in observations
        for reached in observation.reached
        if reached.file == file
        for line in reached.lines
    }
    tree, text = parse(source), source.splitlines()
    kernels = set(map(id, kernels_of(tree)))
    called = (function for function in functions(tree) if id(function) not in kernels)
    return tuple(
        Skip(what=described(block, function.name, text), why=NOT_REACHED)
        for function in called
        if is_reached(function.body, lines)
        for block in unreached_blocks(function.body, lines)
    )


def unreached_blocks(body: Sequence[ast.stmt], lines: Set[int]) -> Iterator[Sequence[ast.stmt]]:
    """The outermost blocks of statements none of which was reached."""
    for statement in body:
        for block in blocks_of(statement):
            if is_reached(block, lines):
                yield from unreached_blocks(block, lines)
            elif is_reached([statement], lines) and not is_refusal(block):
                yield block


def blocks_of(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """The blocks that a statement may take; an inner function is not run by its definition."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for field in ("body", "orelse", "finalbody"):
        yield from ([block] if (block := getattr(statement, field, [])) else [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def is_reached(block: Sequence[ast.stmt], lines: Set[int]) -> bool:
    return any(
        not lines.isdisjoint(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        for statement in block
    )


def is_refusal(block: Sequence[ast.stmt]) -> bool:
    """Whether it raises in the end, or does nothing."""
    return isinstance(block[-1], ast.Raise | ast.Pass)


def described(block: Sequence[ast.stmt], function: str, text: Sequence[str]) -> str:
    """`line 20 of run (return out.clone())`."""
    first, last = block[0].lineno, block[-1].end_lineno or block[-1].lineno
    place = f"line {first}" if first == last else f"lines {first} to {last}"
    return f"{place} of {function} ({cut(text[first - 1].strip(), LONGEST)})"
