"""Names of the values in a kernel, and the functions by which tl.reduce and tl.associative_scan combine."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pytorch_to_triton.draft.ir.functions import FUNCTIONS, Helper
from pytorch_to_triton.draft.ir.values import Const, Map, Monoid, Number, Value, Var


@dataclass(frozen=True)
class Name:
    """A variable of the kernel."""

    text: str
    layout: tuple[str, ...]
    """Axes of the tile, in the order of its dimensions."""
    depth: int
    """The block that defines it; 0 is the kernel's body."""


@dataclass
class Scope:
    """A block of statements: the kernel's body, or a loop's."""

    lines: list[str] = field(default_factory=list)
    axes: frozenset[str] = frozenset()
    """The axis that the loop walks."""
    known: list[Value] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    """What is set right before the loop."""


def constant(x: Number) -> str:
    """A literal as Triton source."""
    if isinstance(x, float) and x != x:
        return 'float("nan")'
    if isinstance(x, float) and x in (float("inf"), float("-inf")):
        return f'{"-" if x < 0 else ""}float("inf")'
    return repr(x)


NAMES = {
    "max": "nan_max",
    "min": "nan_min",
    "prod": "multiply",
    "argmax": "first_largest",
    "argmin": "first_smallest",
}


def combination(m: Monoid) -> Helper:
    """The function that combines two of its values."""
    count = len(m.identity)
    sides = [[f"{s}{f'_{field}' if count > 1 else ''}" for field in m.fields] for s in "ab"]
    lines: dict[Value, str] = {}
    results = [written(v, lines) for v in m.combine(*(tuple(map(Var, names)) for names in sides))]
    given = ", ".join([*sides[0], *sides[1]])
    body = "\n".join(f"    {line}" for line in [*lines.values(), f"return {', '.join(results)}"])
    name = NAMES.get(m.name, m.name)
    return Helper(name, f"@triton.jit\ndef {name}({given}):\n{body}")


def written(v: Value, lines: dict[Value, str] | None = None) -> str:
    """The value as source; the `lines` that define what has a name are added."""
    match v:
        case Var(name=name):
            return name
        case Const(value=x):
            return constant(x)
        case Map(fn=fn, args=args, name=name):
            inside = (f"({written(a, lines)})" for a in args)
            text = ast.unparse(ast.parse(FUNCTIONS[fn].triton.format(*inside))).replace("'", '"')
            if name is None or lines is None:
                return text
            lines.setdefault(v, f"{name} = {text}")
            return name
    raise AssertionError(v)
