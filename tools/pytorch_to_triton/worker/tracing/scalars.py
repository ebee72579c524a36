"""Float arguments told apart from literals, by the nodes of two traces with different values.

What Python computes of them before a tensor meets it, such as `1 - beta`, is known by its value: the
arguments note what is computed of them.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}


POWERS = frozenset({-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 4.0})
"""Exponents that a few products or a root stand for, in a tenth of the time of a power."""


class DependsOnScalar(Exception):
    """A float argument affects the computation in a way that traces cannot tell from a constant."""


class NotedFloat(float):
    """A float argument, or what is computed of some: it notes each by its source, with the value."""

    source: str
    notes: dict[str, float]

    def __neg__(self) -> NotedFloat:
        return noted(f"-({self.source})", -float(self), self.notes)


def noted(source: str, value: float, notes: dict[str, float]) -> NotedFloat:
    """The number as one that notes what is computed of it."""
    number = NotedFloat(value)
    number.source, number.notes = ast.unparse(ast.parse(source, mode="eval")), notes
    notes[number.source] = value
    return number


def _operation(name: str, sign: str, *, reflected: bool) -> Callable[[NotedFloat, Any], Any]:
    compute = getattr(operator, name)

    def operation(own: NotedFloat, other: Any) -> Any:
        operands = (other, own) if reflected else (own, other)
        value = compute(*(float(x) if isinstance(x, NotedFloat) else x for x in operands))
        numbers = type(value) is float and type(other) in (int, float, NotedFloat)
        if not numbers or not math.isfinite(value) or not math.isfinite(other):
            return value
        first, second = (x.source if isinstance(x, NotedFloat) else repr(x) for x in operands)
        return noted(f"({first}) {sign} ({second})", value, own.notes)

    return operation


for _name, _sign in OPERATORS.items():
    setattr(NotedFloat, f"__{_name}__", _operation(_name, _sign, reflected=False))
    setattr(NotedFloat, f"__r{_name}__", _operation(_name, _sign, reflected=True))


def with_notes(constants: Mapping[str, Any], notes: dict[str, float]) -> dict[str, Any]:
    """The constants, of which the floats note what is computed of them."""
    return {n: noted(n, v, notes) if type(v) is float else v for n, v in constants.items()}


def exponents(nodes: Sequence[Mapping[str, Any]]) -> frozenset[float]:
    """Those of the trace that are worth a program of their own."""
    powers = (n["args"][1] for n in nodes if n["op"] == "aten.pow.Tensor_Scalar")
    return POWERS & {power["value"] for power in powers if power["form"] == "literal"}


def paired(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The nodes of two traces side by side."""
    if [n["op"] for n in first] != [n["op"] for n in second]:
        raise DependsOnScalar("another value of a float argument gives other operators")
    return list(zip(first, second, strict=True))


def bind_scalars(first: Any, second: Any, notes: Mapping[str, float], others: Mapping[str, float]) -> Any:
    """`first` with every literal that follows a float argument replaced by a reference to it.

    `notes`, `others`: the values of the arguments, and of what is computed of them, in either trace.
    """
    if isinstance(first, dict) and first.get("form") == "literal":
        if first == second:
            return first
        for source, value in notes.items():
            if first["value"] == value and second["value"] == others.get(source):
                return {"form": "scalar", "name": source}
        raise DependsOnScalar(
            f"{first['value']!r} is computed from a float argument before it meets a tensor"
        )
    if isinstance(first, dict) and first.get("form") == "size" and first != second:
        raise DependsOnScalar(f"{first['expression']} is computed from a float argument and sizes")
    if isinstance(first, dict):
        return {key: bind_scalars(first[key], second[key], notes, others) for key in first}
    if isinstance(first, list):
        return [bind_scalars(a, b, notes, others) for a, b in zip(first, second, strict=True)]
    return first
