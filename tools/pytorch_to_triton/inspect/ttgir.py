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
WRITES = re.compile(r"\b(?:tt\.store|amdg(?:pu)?\.buffer_store)\b")
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


class Locations:
    """The places that a text's `#loc` names stand for, in one file."""

    def __init__(self, text: str, file_name: str) -> None:
        self._meanings = dict(LOCATION.findall(text))
        self._file = file_name

    def line_of(self, row: str) -> int | None:
        """The line of the file that an operation comes from: of inlined code, the innermost in the file."""
        match = AT_END.search(row)
        return self._resolve(match[1]) if match else None

    def _resolve(self, text: str, depth: int = 20) -> int | None:
        for path, line in PLACE.findall(text):
            if path.rpartition("/")[2] == self._file:
                return int(line)
        if depth:
            for name in NAMED.findall(text):
                line = self._resolve(self._meanings.get(name, ""), depth - 1)
                if line is not None:
                    return line
        return None


def block_accesses(ttgir: str, file_name: str) -> list[BlockAccess]:
    """Each load and store of a block in TTGIR, lines being those of `file_name`."""
    locations = Locations(ttgir, file_name)
    accesses = []
    for row in ttgir.splitlines():
        block = POINTERS.search(row) or VALUES.search(row)
        if block is None:
            continue
        kind: Literal["load", "store"] = "load" if READS.search(row) else "store"
        if kind == "load" or WRITES.search(row):
            elements = prod(int(size) for size in block[1].split("x") if size)
            accesses.append(BlockAccess(kind, elements, _bits(block[2]), locations.line_of(row)))
    return accesses


def loops(ttgir: str, file_name: str) -> list[Loop]:
    """The innermost loops in TTGIR that move blocks from global memory."""
    locations = Locations(ttgir, file_name)
    all_loops = []
    for head, body in _innermost_loops(ttgir.splitlines()):
        loads = tuple(
            locations.line_of(row)
            for row in body
            if READS.search(row) and not PREFETCHES.search(row) and (POINTERS.search(row) or "buffer" in row)
        )
        prefetches = sum(bool(PREFETCHES.search(row)) for row in body)
        if loads or prefetches:
            products = sum(bool(DOT.search(row)) for row in body)
            # The location of a loop stands after its closing brace.
            line = locations.line_of(body[-1]) or locations.line_of(head)
            all_loops.append(Loop(line, loads, prefetches, products))
    return all_loops


def dots(ttir: str, file_name: str) -> list[Dot]:
    """The matrix products in TTIR."""
    locations = Locations(ttir, file_name)
    products = []
    for row in ttir.splitlines():
        if DOT.search(row):
            operands, precision, result = (text.search(row) for text in (OPERANDS, PRECISION, RESULT))
            products.append(
                Dot(
                    operands=operands[1] if operands else "",
                    precision=precision[1] if precision else "",
                    line=locations.line_of(row),
                    result=result[1] if result else "",
                )
            )
    return products


def short_sums(ttir: str, file_name: str) -> list[ShortSum]:
    """The sums along an axis in TTIR whose additions are those of a short float type."""
    locations = Locations(ttir, file_name)
    sums = []
    axis: int | None = None
    kind = ""
    for row in ttir.splitlines():
        if head := SUMMING.search(row):
            axis, kind = int(head[1]), ""
        elif axis is not None and (addition := SHORT_ADDITION.search(row)):
            kind = addition[1]
        elif axis is not None and (end := SUMMED.search(row)):
            if kind:
                terms = int(end[1].split("x")[axis])
                sums.append(ShortSum(kind, terms, locations.line_of(row)))
            axis = None
    return sums


def float_atomics(ttir: str, file_name: str) -> list[int | None]:
    """The lines of the additions of floats by atomics in TTIR."""
    locations = Locations(ttir, file_name)
    return [locations.line_of(row) for row in ttir.splitlines() if FLOAT_ATOMIC.search(row)]


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
