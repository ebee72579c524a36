"""Reading the assembly of AMD's GPUs: llvm.org/docs/AMDGPU, CDNA and RDNA."""

import re

from pytorch_to_triton.inspect.assembly import Tally, locate, operand_types
from pytorch_to_triton.schema.compiled import Instructions

INSTRUCTION = re.compile(r"^\s+([a-z]\w+)(.*)")
MEMORY = re.compile(r"(global|buffer|flat)_(load|store|atomic)_(\w+)")
DWORDS = re.compile(r"dword(?:x(\d))?$")
BITS = re.compile(r"[bui](\d+)$")
NAMED_BITS = {"byte": 8, "short": 16}
MATRIX = re.compile(r"v_(mfma|smfmac|wmma|swmmac)_(?:scale_)?([a-z0-9]+)_(\d+x\d+x\d+)_?([a-z0-9_]*)")
TYPE = re.compile(r"bf16|f8f6f4|fp8|bf8|xf32|f16|f32|f64|iu8|iu4|i8")
SPILLED = re.compile(r"Folded (?:Spill|Reload)")
"""How LLVM marks what it spills through buffer instructions."""


def read_amdgcn(text: str, file_name: str) -> Instructions:
    """What stands in a kernel's assembly; source lines are those of `file_name`."""
    tally = Tally()
    for row, line in locate(text, file_name):
        match = INSTRUCTION.match(row)
        if match:
            _count(tally, match[1], match[2], line)
    return tally.instructions()


def _count(tally: Tally, name: str, rest: str, line: int | None) -> None:
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
