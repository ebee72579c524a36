"""Reading PTX and AMD's assembly: instructions, each with the source line that it comes from.

PTX: docs.nvidia.com/cuda/parallel-thread-execution, from version 8.0 on. AMD: llvm.org/docs/AMDGPU.
"""

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
OPCODE = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)(.*)")
VECTOR = re.compile(r"\.v(\d)\b")
WIDTH = re.compile(r"\.[busf](\d+)$")
COPIED = re.compile(r"\]\s*,\s*\[[^]]*\]\s*,\s*(0x[0-9a-f]+|\d+)")
"""Bytes that one cp.async copies: what follows both addresses."""
MMA = re.compile(r"mma\.sync.*?\.(m\d+n\d+k\d+)\.row\.col.*?\.(f16|f32|f64|s32)\.(\w+)\.(\w+)\.\w+")
WGMMA = re.compile(r"wgmma\.mma_async.*?\.(m\d+n\d+k\d+)\.(f16|f32|s32)\.(\w+)\.(\w+)")
TCGEN = re.compile(r"tcgen05\.mma\.(?!.*\bcommit).*?kind::(\w+)")
BARRIERS = ("bar.sync", "barrier.sync", "barrier.cta.sync")
INSTRUCTION = re.compile(r"^\s+([a-z]\w+)(.*)")
MEMORY = re.compile(r"(global|buffer|flat)_(load|store|atomic)_(\w+)")
DWORDS = re.compile(r"dword(?:x(\d))?$")
BITS = re.compile(r"[bui](\d+)$")
NAMED_BITS = {"byte": 8, "short": 16}
MATRIX = re.compile(r"v_(mfma|smfmac|wmma|swmmac)_(?:scale_)?([a-z0-9]+)_(\d+x\d+x\d+)_?([a-z0-9_]*)")
TYPE = re.compile(r"bf16|f8f6f4|fp8|bf8|xf32|f16|f32|f64|iu8|iu4|i8")
SPILLED = re.compile(r"Folded (?:Spill|Reload)")
"""How LLVM marks what it spills through buffer instructions."""


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


def read_ptx(text: str, file_name: str) -> Instructions:
    """What stands in a kernel's PTX; source lines are those of `file_name`."""
    tally = Tally()
    for row, line in locate(text, file_name):
        match = OPCODE.match(row)
        if match:
            _count_ptx(tally, match[1].rstrip(";"), match[2], line)
    return tally.instructions()


def _count_ptx(tally: Tally, opcode: str, operands: str, line: int | None) -> None:
    head = opcode.partition(".")[0]
    if head in ("ld", "st"):
        _count_access(tally, opcode, line)
    elif head == "cp":
        _count_copy(tally, opcode, operands, line)
    elif head in ("atom", "red"):
        tally.others["atomics"] += ".shared" not in opcode
    elif head in ("mma", "wgmma", "tcgen05"):
        _count_matrix(tally, opcode)
    elif opcode.startswith(BARRIERS):
        tally.others["barriers"] += 1


def _count_access(tally: Tally, opcode: str, line: int | None) -> None:
    if ".local" in opcode:
        tally.others["local_accesses"] += 1
    width = WIDTH.search(opcode)
    if ".global" in opcode and width:
        vector = VECTOR.search(opcode)
        bits = int(width[1]) * (int(vector[1]) if vector else 1)
        tally.access("load" if opcode.startswith("ld") else "store", bits, line)


def _count_copy(tally: Tally, opcode: str, operands: str, line: int | None) -> None:
    if ".async.bulk" in opcode:
        if ".global.shared" in opcode:
            tally.others["tma_stores"] += 1
        elif ".shared" in opcode and ".global" in opcode:
            tally.others["tma_loads"] += 1
        return
    copied = COPIED.search(operands)
    if opcode.startswith("cp.async") and copied:
        tally.access("async_copy", 8 * int(copied[1], 0), line)


def _count_matrix(tally: Tally, opcode: str) -> None:
    if match := MMA.match(opcode):
        _, first, second = match.groups()[1:]
        tally.matrix["mma.sync", _shape(match[1]), operand_types(first, second), match[2]] += 1
    elif match := WGMMA.match(opcode):
        tally.matrix["wgmma", _shape(match[1]), operand_types(match[3], match[4]), match[2]] += 1
    elif match := TCGEN.match(opcode):
        tally.matrix["tcgen05.mma", "", match[1], ""] += 1


def _shape(text: str) -> str:
    """m16n8k16 as 16x8x16."""
    return "x".join(re.findall(r"\d+", text))


def read_amdgcn(text: str, file_name: str) -> Instructions:
    """What stands in a kernel's assembly; source lines are those of `file_name`."""
    tally = Tally()
    for row, line in locate(text, file_name):
        match = INSTRUCTION.match(row)
        if match:
            _count_amdgcn(tally, match[1], match[2], line)
    return tally.instructions()


def _count_amdgcn(tally: Tally, name: str, rest: str, line: int | None) -> None:
    if name.startswith("scratch_") or (name.startswith("buffer_") and SPILLED.search(rest)):
        tally.others["local_accesses"] += 1
    elif match := MEMORY.match(name):
        _count_memory(tally, match[2], match[3], rest, line)
    elif match := MATRIX.match(name):
        types = TYPE.findall(match[4])
        operands = operand_types(types[0], types[-1]) if types else match[4]
        tally.matrix[match[1], match[3], operands, match[2]] += 1
    elif name in ("s_barrier", "s_barrier_signal"):
        tally.others["barriers"] += 1


def _count_memory(tally: Tally, what: str, width: str, rest: str, line: int | None) -> None:
    if what == "atomic":
        tally.others["atomics"] += 1
        return
    to_shared = width.startswith("lds_") or re.search(r"\blds\b", rest)
    bits = _bits(width)
    if bits:
        tally.access("async_copy" if to_shared else "load" if what == "load" else "store", bits, line)


def _bits(width: str) -> int | None:
    """32 of `dword`, 128 of `dwordx4` and `b128`, 16 of `ushort`, `short_d16_hi` and `d16_b16`."""
    name = width.removeprefix("lds_").removesuffix("_hi").removesuffix("_d16")
    if dwords := DWORDS.match(name):
        return 32 * int(dwords[1] or 1)
    if bits := BITS.search(name):
        return int(bits[1])
    return next((bits for end, bits in NAMED_BITS.items() if name.endswith(end)), None)
