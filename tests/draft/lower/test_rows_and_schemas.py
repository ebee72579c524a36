"""Rows take what their operators take, and every one of them is tried."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_to_triton.draft.lower.row import Row, load_rows, parameters_of
from pytorch_to_triton.graph.operators import KEPT

ROWS = load_rows()


def schema(op: str) -> torch.FunctionSchema:
    namespace, name, overload = op.split(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), name, None), overload, None)
    assert operator is not None, f"this torch has no operator {op}"
    operator_schema: torch.FunctionSchema = operator._schema
    return operator_schema


def parameters(row: Row) -> dict[str, inspect.Parameter]:
    """What the row takes after its context, by name."""
    return dict(list(inspect.signature(row.function).parameters.items())[1:])


def same(ours: Any, theirs: Any) -> bool:
    """Whether two defaults mean the same: one number stands for as many as there are dimensions."""
    if isinstance(theirs, list) and not isinstance(ours, list | tuple):
        return theirs == [ours] * len(theirs) and bool(theirs)
    return (list(ours) if isinstance(ours, tuple) else ours) == theirs


def faults(row: Row) -> Iterator[str]:
    """How the row's parameters differ from the schema's arguments."""
    arguments, taken = schema(row.op).arguments, parameters(row)
    theirs = ["input" if a.name == "self" else a.name for a in arguments]
    of_row = {name for other in ROWS.values() if other.function == row.function for name in other.arguments}
    if list(row.arguments) != theirs or not set(taken) <= {*theirs, *of_row}:
        yield f"{row.op} takes {theirs}, its row {row.arguments} and {list(taken)}"
        return
    for name, argument in zip(theirs, arguments, strict=True):
        if (parameter := taken.get(name)) is None:
            continue
        if parameter.default is inspect.Parameter.empty:
            if argument.has_default_value():
                yield f"{row.op}: {argument.name} may be left out, but not in its row"
        elif argument.has_default_value() and not same(parameter.default, argument.default_value):
            yield f"{row.op}: {argument.name} is {argument.default_value}, in its row {parameter.default}"
        if not argument.kwarg_only and parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            yield f"{row.op}: {argument.name} may be given by position, but not in its row"


def test_every_row_takes_exactly_its_operators_arguments() -> None:
    found = [fault for row in ROWS.values() for fault in faults(row)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (lambda ctx, x, dim=0, start=None, end=None, step=1: x, "takes"),
        (lambda ctx, input, dim, start=None, end=None, step=1: input, "dim may be left out"),
        (lambda ctx, input, dim=1, start=None, end=None, step=1: input, "dim is 0, in its row 1"),
        (lambda ctx, input, dim=0, start=None, *, end=None, step=1: input, "end may be given by position"),
    ],
)
def test_a_row_that_takes_something_else_is_found(function: Any, fault: str) -> None:
    assert any(fault in f for f in faults(Row("aten.slice.Tensor", function, parameters_of(function))))


def test_no_row_waits_for_an_operator_that_the_trace_takes_apart() -> None:
    decomposed = {str(op) for op in torch.export.default_decompositions()} - set(KEPT)
    assert sorted(decomposed & set(ROWS)) == []


def named_operators(source: str, operators: set[str]) -> set[str]:
    """The operators that a file of tests names: in one text, or in an f-string put together of its texts."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    texts = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    joined = [re.compile(_pattern(n)) for n in nodes if isinstance(n, ast.JoinedStr)]
    found = operators & texts
    for op in operators - found:
        matches = (pattern.fullmatch(op) for pattern in joined)
        if any(m and set(m.groups()) <= texts for m in matches):
            found.add(op)
    return found


def _pattern(text: ast.JoinedStr) -> str:
    return "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else "(.+)" for p in text.values)


def test_every_row_is_tried_beside_pytorch() -> None:
    """By the names in the tests; of operators that share a row, one is enough."""
    named: set[str] = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        named |= named_operators(file.read_text(), set(ROWS))
    tried = {ROWS[op].function for op in named}
    untried = sorted(op for op, row in ROWS.items() if row.function not in tried)
    assert not untried, (
        f"no test of this folder calls {', '.join(untried)}: `agrees` compares a call in one line"
    )
