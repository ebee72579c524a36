"""Reading Triton's own intermediate text: which blocks are read and written, in which loops, and its dots."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

LOCATION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
PLACE = re.compile(r'"([^"]+)":(\d+):\d+')
NAMED = re.compile(r"#loc\d*")
AT_END = re.compile(r"loc\((.*?)\)\s*$")
POINTERS = re.compile(r"tensor<((?:\d+x)+)!tt\.ptr<([^>]+)>")
VALUES = re.compile(r"tensor<((?:\d+x)+)([a-z]\w*)[,>]")
READS = re.compile(r"\b(?:tt\.load|ttg\.async_copy_global_to_local|amdg(?:pu)?\.buffer_load\w*)\b")
ACCESSES = re.compile(rf"{READS.pattern}|\b(?:tt\.store|amdg(?:pu)?\.buffer_store)\b")
LOOP = re.compile(r"\bscf\.(?:for|while)\b|\} do \{$")
PREFETCHES = re.compile(r"\b(?:ttg\.async_copy_global_to_local|ttng\.async_tma_copy_global_to_local)\b")
DOT = re.compile(r"\b(?:tt\.dot|tt\.dot_scaled|ttng\.warp_group_dot|ttng\.tc_gen5_mma\w*)\b")
OPERANDS = re.compile(r": *tensor<(?:\d+x)+(\w+)")
RESULT = re.compile(r"-> *tensor<(?:\d+x)+(\w+)")
PRECISION = re.compile(r"inputPrecision = (\w+)")
SUMMING = re.compile(r'"tt\.(?:reduce|scan)".*\baxis = (\d+)')
SHORT_ADDITION = re.compile(r"\barith\.addf\b.* : (f16|bf16)\b")
SUMMED = re.compile(r"^\s*\}\) : \(tensor<((?:\d+x)+)")
FLOAT_ATOMIC = re.compile(r"\btt\.atomic_rmw fadd\b")


@dataclass(frozen=True)
class BlockAccess:
    """A load or store of a block of elements; scalars are left out."""

    kind: Literal["load", "store"]
    elements: int
    element_bits: int
    line: int | None


@dataclass(frozen=True)
class Loop:
    """A loop that moves blocks from global memory."""

    line: int | None
    loads: tuple[int | None, ...]
    """Lines of loads that go through registers, which an iteration waits for."""
    prefetches: int
    """Copies to shared memory that overlap with the computation."""
    dots: int = 0
    """Matrix products."""


@dataclass(frozen=True)
class Dot:
    """A matrix product as the kernel's source has it."""

    operands: str
    """Element type of its first operand, such as f32."""
    precision: str
    """`tf32`, `bf16x6` and the like; empty for `ieee`, which the text leaves out."""
    line: int | None
    result: str = ""
    """Element type of its sums."""


@dataclass(frozen=True)
class ShortSum:
    """A sum, or a running one, that is kept in a short float type."""

    type: str
    """`f16` or `bf16`."""
    terms: int
    line: int | None


class SourceRows:
    """The rows of a text of Triton's, and the lines of one file that they come from."""

    def __init__(self, text: str, file_name: str) -> None:
        self.rows = text.splitlines()
        self._meanings = dict(LOCATION.findall(text))
        self._file = file_name

    def lines_with(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, int | None]]:
        """The rows in which the pattern occurs, each with its line."""
        return ((row, self.line_of(row)) for row in self.rows if pattern.search(row))

    def line_of(self, row: str) -> int | None:
        """The line of the file that an operation comes from: of inlined code, the innermost in the file."""
        match = AT_END.search(row)
        return self._resolve(match[1]) if match else None

    def _resolve(self, text: str, depth: int = 20) -> int | None:
        for path, line in PLACE.findall(text):
            if path.rpartition("/")[2] == self._file:
                return int(line)
        names = NAMED.findall(text) if depth else ()
        lines = (self._resolve(self._meanings.get(name, ""), depth - 1) for name in names)
        return next((line for line in lines if line is not None), None)


def block_accesses(ttgir: SourceRows) -> list[BlockAccess]:
    """Each load and store of a block in TTGIR."""
    accesses = []
    for row, line in ttgir.lines_with(ACCESSES):
        if block := POINTERS.search(row) or VALUES.search(row):
            elements = prod(int(size) for size in block[1].split("x") if size)
            kind: Literal["load", "store"] = "load" if READS.search(row) else "store"
            accesses.append(BlockAccess(kind, elements, _bits(block[2]), line))
    return accesses


def loops(ttgir: SourceRows) -> list[Loop]:
    """The innermost loops in TTGIR that move blocks from global memory."""
    all_loops = []
    for head, body in _innermost_loops(ttgir.rows):
        loads = tuple(
            ttgir.line_of(row)
            for row in body
            if READS.search(row) and not PREFETCHES.search(row) and (POINTERS.search(row) or "buffer" in row)
        )
        prefetches = sum(bool(PREFETCHES.search(row)) for row in body)
        if loads or prefetches:
            products = sum(bool(DOT.search(row)) for row in body)
            # The location of a loop stands after its closing brace.
            line = ttgir.line_of(body[-1]) or ttgir.line_of(head)
            all_loops.append(Loop(line, loads, prefetches, products))
    return all_loops


def dots(ttir: SourceRows) -> list[Dot]:
    """The matrix products in TTIR."""

    def stated(pattern: re.Pattern[str], row: str) -> str:
        return match[1] if (match := pattern.search(row)) else ""

    return [
        Dot(stated(OPERANDS, row), stated(PRECISION, row), line, stated(RESULT, row))
        for row, line in ttir.lines_with(DOT)
    ]


def short_sums(ttir: SourceRows) -> list[ShortSum]:
    """The sums along an axis in TTIR whose additions are those of a short float type."""
    sums = []
    axis: int | None = None
    kind = ""
    for row in ttir.rows:
        if head := SUMMING.search(row):
            axis, kind = int(head[1]), ""
        elif axis is not None and (addition := SHORT_ADDITION.search(row)):
            kind = addition[1]
        elif axis is not None and (end := SUMMED.search(row)):
            if kind:
                sums.append(ShortSum(kind, int(end[1].split("x")[axis]), ttir.line_of(row)))
            axis = None
    return sums


def float_atomics(ttir: SourceRows) -> list[int | None]:
    """The lines of the additions of floats by atomics in TTIR."""
    return [line for _, line in ttir.lines_with(FLOAT_ATOMIC)]


def _innermost_loops(rows: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The head and the body, closing line included, of each loop without one inside."""
    open_blocks: list[tuple[int, bool]] = []
    """Row of each open block, and whether it is a loop without one inside so far."""
    for number, row in enumerate(rows):
        if row.lstrip().startswith("}") and open_blocks:
            start, innermost = open_blocks.pop()
            if innermost:
                yield rows[start], rows[start + 1 : number + 1]
        if row.rstrip().endswith("{"):
            is_loop = bool(LOOP.search(row))
            if is_loop:
                open_blocks = [(start, False) for start, _ in open_blocks]
            open_blocks.append((number, is_loop))


def _bits(kind: str) -> int:
    """Of an element in memory: 32 of f32, 8 of f8E4M3FN and i1, 64 of a pointer."""
    width = re.match(r"[a-z]+(\d+)", kind)
    return max(8, int(width[1])) if width else 64
