"""What the printer's parts share: variables, blocks of statements, literals."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytorch_to_triton.draft.ir.values import Number, Value


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
