"""Reading PTX: docs.nvidia.com/cuda/parallel-thread-execution, from version 8.0 on."""

import re

from pytorch_to_triton.inspect.assembly import Tally, locate, operand_types
from pytorch_to_triton.schema.compiled import Instructions

OPCODE = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)(.*)")
VECTOR = re.compile(r"\.v(\d)\b")
WIDTH = re.compile(r"\.[busf](\d+)$")
COPIED = re.compile(r"\]\s*,\s*\[[^]]*\]\s*,\s*(0x[0-9a-f]+|\d+)")
"""Bytes that one cp.async copies: what follows both addresses."""
MMA = re.compile(r"mma\.sync.*?\.(m\d+n\d+k\d+)\.row\.col.*?\.(f16|f32|f64|s32)\.(\w+)\.(\w+)\.\w+")
WGMMA = re.compile(r"wgmma\.mma_async.*?\.(m\d+n\d+k\d+)\.(f16|f32|s32)\.(\w+)\.(\w+)")
TCGEN = re.compile(r"tcgen05\.mma\.(?!.*\bcommit).*?kind::(\w+)")
BARRIERS = ("bar.sync", "barrier.sync", "barrier.cta.sync")


def read_ptx(text: str, file_name: str) -> Instructions:
    """What stands in a kernel's PTX; source lines are those of `file_name`."""
    tally = Tally()
    for row, line in locate(text, file_name):
        match = OPCODE.match(row)
        if match:
            _count(tally, match[1].rstrip(";"), match[2], line)
    return tally.instructions()


def _count(tally: Tally, opcode: str, operands: str, line: int | None) -> None:
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
