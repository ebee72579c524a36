"""The lanes of a block lie apart in memory."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault, SourceLine
from pytorch_to_triton.audit.rule import Rule, RuleCheck
from pytorch_to_triton.schema.verdict import CaseResult, StridedAccess

_FILE = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [40], "N": [36]}
CASES = ("M=40 N=36",)

def reference(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    one = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    %s
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) * 2, mask=mask)

def run(x):
    out = torch.empty_like(x)
    kernel[(%d,)](x, out, 40, 36, BLOCK=64)
    return out
"""
BAD = (
    _FILE % ("at, mask = i * N + one, i < M", 36),
    _FILE % ("at, mask = (M - 1 - i[None, :]) * N + one, i[None, :] < M", 36),
)
GOOD = (
    _FILE % ("at, mask = one * N + i, i < N", 40),
    _FILE % ("at, mask = i[:, None] * N + i[None, :], (i[:, None] < M) & (i[None, :] < N)", 1),
    _FILE % ("at, mask = (7 * i) % M * N + one, i < M", 36),
    _FILE % ("at, mask = 4 * i + one, i < M * N // 4", 4),
)


def _check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Lines at which every block that was looked at lies so."""
    by_line: defaultdict[SourceLine, list[tuple[CaseResult, StridedAccess]]] = defaultdict(list)
    for case in measured.verdict.cases:
        for access in case.accesses:
            by_line[SourceLine(access.line, Path(access.file))].append((case, access))
    for at, seen in by_line.items():
        case, access = max(seen, key=lambda one: one[1].step_bytes)
        yield Fault(
            at,
            f"Neighboring lanes of this block of {access.tensor} lie {access.step_bytes:,} bytes apart in "
            "memory: each moves a sector of its own.",
            "Let the last axis of the block run along the tensor's axis of stride 1.",
            proof=(
                f"Under the interpreter, neighboring lanes lie {access.step_bytes:,} bytes apart in case "
                f"{case.name} (blocks of {access.lanes:,}), and so in {len(seen)} of "
                f"{len(measured.verdict.cases)} cases."
            ),
        )


_ABOUT = """\
The lanes of a block lie apart in memory.

Each lane then moves a sector of 32 bytes or more for the few bytes that it needs, and the memory's speed is
divided by that.

Fix: let the last axis of the block run along the tensor's axis of stride 1."""
RULES = (
    Rule("strided_lanes", _ABOUT, "medium", "memory access", (RuleCheck(MeasuredTarget, _check, BAD, GOOD),)),
)
