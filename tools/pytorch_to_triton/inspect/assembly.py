"""What PTX and AMD's assembly have in common: instructions, each with the source line that it comes from."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pytorch_to_triton.schema.compiled import Instructions, MatrixInstruction, MemoryInstruction

AccessKind = Literal["load", "store", "async_copy"]

LOCATION = re.compile(r"^\s*\.loc\s+\d+\s+\d+")
PLACE = re.compile(r"([^\s:\[]+):(\d+):\d+")
"""In the comment after a location, the inlined function's own place first: `a.py:3:5 @[ b.py:7:9 ]`."""


@dataclass
class Tally:
    """Counts of a kernel's instructions."""

    accesses: Counter[tuple[AccessKind, int]] = field(default_factory=Counter)
    lines: dict[tuple[AccessKind, int], set[int]] = field(default_factory=dict)
    matrix: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """By name, shape, operands and accumulator."""
    others: Counter[str] = field(default_factory=Counter)
    """By the names of Instructions' plain counts."""

    def access(self, kind: AccessKind, bits: int, line: int | None) -> None:
        """Count an access to global memory with its bits per thread."""
        self.accesses[kind, bits] += 1
        lines = self.lines.setdefault((kind, bits), set())
        if line is not None:
            lines.add(line)

    def instructions(self) -> Instructions:
        """Everything counted; accesses by kind and width, matrix instructions by their number."""
        accesses = tuple(
            MemoryInstruction(kind=kind, bits=bits, count=count, lines=tuple(sorted(self.lines[kind, bits])))
            for (kind, bits), count in sorted(self.accesses.items())
        )
        matrix = tuple(
            MatrixInstruction(name=name, shape=shape, operands=operands, accumulator=sums, count=count)
            for (name, shape, operands, sums), count in self.matrix.most_common()
        )
        names = ("tma_loads", "tma_stores", "atomics", "barriers", "local_accesses")
        return Instructions(accesses=accesses, matrix=matrix, **{name: self.others[name] for name in names})


def locate(text: str, file_name: str) -> Iterator[tuple[str, int | None]]:
    """Each line of assembly without its location lines, and the line of `file_name` that it comes from.

    None where the compiler names none, or only lines of other files.
    """
    line: int | None = None
    for row in text.splitlines():
        if LOCATION.match(row):
            line = next((int(at) for name, at in PLACE.findall(row) if name == file_name and at != "0"), None)
        else:
            yield row, line


def operand_types(first: str, second: str) -> str:
    """`bf16` for two operands of one type, `e4m3 x e5m2` for others."""
    return first if first == second else f"{first} x {second}"
