"""Reading SASS, NVIDIA's machine code: its instructions by kind, in loops and outside of them.

Names: docs.nvidia.com/cuda/cuda-binary-utilities, instruction set references.
"""

import re
from collections import Counter
from dataclasses import dataclass

from pytorch_to_triton.inspect.control_flow import Blocks
from pytorch_to_triton.schema.compiled import InstructionKind

ROW = re.compile(r"^\S+:\S+\t(?:(@!?U?P\w+) )?(\S+?)(?:\s+(.*?))?\s*;")
"""Triton puts what the scheduler waits for before the instruction."""
LABEL = re.compile(r"^(\w+):$")
WHERE_TO = re.compile(r"(?:\b(LBB\d+)|0x([0-9a-f]+))$")
INSTRUCTION_BYTES = 16
KINDS: dict[InstructionKind, re.Pattern[str]] = {
    "special_functions": re.compile(r"MUFU"),
    "tensor_cores": re.compile(r"(?:[A-Z]|[A-Z]G)MMA\b|UTC\w*MMA"),
    "conversions": re.compile(r"[FI]2|FRND"),
    "floating_point": re.compile(r"[FHD](?:ADD|MUL|FMA|SET|SEL|MNMX|CHK)"),
    "shared_memory": re.compile(r"(?:LD|ST)SM?\b|ATOMS|SHFL"),
    "memory": re.compile(r"(?:LD|ST)[GL]?\b|LDGSTS|ATOMG?\b|REDG?\b|UTMA|UBLK"),
    "barriers": re.compile(r"BAR|SYNCS|WARPSYNC|WARPGROUP|MEMBAR|U?CGABAR|(?:LDG)?DEPBAR|FENCE|ERRBAR"),
    "branches": re.compile(r"BR[AX]|JMP|CALL|RET\b|EXIT|BSSY|BSYNC|BREAK"),
    "other": re.compile(r"U?LDC|S2U?R|CS2R|VOTE|ELECT|R2UR|NOP|CCTL"),
}
"""How an instruction's name begins; the first that fits. All others compute with integers."""
GLOBAL = re.compile(r"LDG(?:STS)?\b|STG|ATOMG?\b|REDG?\b")
COPIED_WHOLE = re.compile(r"UTMA(?:LDG|STG|REDG)|UBLKCP")
TENSOR = KINDS["tensor_cores"]
MARKS = (GLOBAL, TENSOR, re.compile(r"SHFL\.BFLY|C?REDUX"))
"""What the assembler takes over from PTX one by one, unless it unrolls or moves code."""
WAITING = re.compile(r"SYNCS|NANOSLEEP")
PRODUCT = re.compile(r"(\w)(G?)MMA\.(?:SP\.)?(\d+x\d+x\d+|\d+)\b(.*)")
SHORT_SHAPES = {"16816": (16, 8, 16), "1688": (16, 8, 8), "16832": (16, 8, 32), "884": (8, 8, 4)}
OPERANDS = {"BF16": "bfloat16", "TF32": "tf32", "E4M3": "float8_e4m3fn", "E5M2": "float8_e4m3fn"}
BY_LETTER = {"H": "float16", "D": "float64"}
WIDTH = re.compile(r"\.[US]?(8|16|64|128|256)\b")


@dataclass(frozen=True)
class CodeSection:
    """Instructions of a kernel that run equally often."""

    depth: int
    """0 outside of loops."""
    marks: tuple[int, ...]
    """How many instructions of each of MARKS it holds, those of loops inside included."""
    counts: dict[InstructionKind, int]
    """Instructions that a warp issues, those of loops inside left out."""
    bits: int | None
    """That a thread reads and writes in global memory; None where blocks are copied as one."""
    flops: dict[str, int] | None
    """Of a warp's matrix products, by the data sheets' names of operands; None where a shape is not shown."""


def read_sass(text: str) -> tuple[CodeSection, ...]:
    """What is outside of loops, then each loop in the order of the text.

    Code that only calls lead to, such as the slow path of a division, is left out, and so are the loops in
    which a thread waits. Both sides of a branch are counted.
    """
    rows, labels = _rows(text)
    branches: dict[int, int] = {}
    ends = set[int]()
    for n, (guard, name, operands) in enumerate(rows):
        where = WHERE_TO.search(operands) if name.startswith("BRA") and ".DIV" not in name else None
        if where:
            branches[n] = labels[where[1]] if where[1] else int(where[2], 16) // INSTRUCTION_BYTES
        if (name.startswith(("EXIT", "RET")) or n in branches) and not guard and "!UP" not in operands:
            ends.add(n)
    blocks = Blocks(len(rows), {n: to for n, to in branches.items() if to < len(rows)}, frozenset(ends))
    inside: dict[int | None, list[str]] = {None: []}
    for block in sorted(blocks.reachable):
        inside.setdefault(blocks.innermost(block), []).extend(rows[n][1] for n in blocks.rows(block))
    sections = [_section(0, inside[None], inside[None])]
    for n, loop in enumerate(blocks.loops):
        whole = [rows[row][1] for block in loop.blocks for row in blocks.rows(block)]
        section = _section(blocks.depth(loop), inside.get(n, []), whole)
        if any(section.marks) or not any(map(WAITING.match, whole)):
            sections.append(section)
    return tuple(sections)


def kind_of(name: str) -> InstructionKind:
    """The kind of an instruction, by its name with its suffixes."""
    return next((kind for kind, pattern in KINDS.items() if pattern.match(name)), "integers")


def _rows(text: str) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    """Guard, name and operands of each instruction, and the rows that labels stand before."""
    rows: list[tuple[str, str, str]] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if match := ROW.match(line):
            rows.append((match[1] or "", match[2], match[3] or ""))
        elif label := LABEL.match(line):
            labels[label[1]] = len(rows)
    return rows, labels


def _section(depth: int, names: list[str], whole: list[str]) -> CodeSection:
    counts = Counter(map(kind_of, names))
    copied = any(map(COPIED_WHOLE.match, names))
    return CodeSection(
        depth=depth,
        marks=tuple(sum(bool(mark.match(name)) for name in whole) for mark in MARKS),
        counts=dict(counts.most_common()),
        bits=None if copied else sum(_bits(name) for name in names if GLOBAL.match(name)),
        flops=_flops([name for name in names if TENSOR.match(name)]),
    )


def _bits(name: str) -> int:
    return int(width[1]) if (width := WIDTH.search(name)) else 32


def _flops(names: list[str]) -> dict[str, int] | None:
    """Two for a multiply-add; four warps share the product of a warp group."""
    total = Counter[str]()
    for name in names:
        match = PRODUCT.match(name)
        sizes = match and (SHORT_SHAPES.get(match[3]) or tuple(map(int, match[3].split("x"))))
        operands = match and next(
            (of for mark, of in OPERANDS.items() if mark in match[4]), BY_LETTER.get(match[1])
        )
        if not match or not operands or not sizes or len(sizes) != 3:
            return None
        total[operands] += 2 * sizes[0] * sizes[1] * sizes[2] // (4 if match[2] else 1)
    return dict(total)
