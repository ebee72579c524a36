"""Lanes that lie apart in memory: by the source, as measured, and as the compiler narrows them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.audit.analysis.addresses import is_block, is_loaded
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.launched_tensors import rank_of, size_of, stride_of
from pytorch_to_triton.audit.analysis.polynomials import polynomial
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.evidence import CompiledCode, MeasuredTarget
from pytorch_to_triton.audit.fault import Fault, SourceLine
from pytorch_to_triton.audit.rule import evidence_rule, kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel
from pytorch_to_triton.schema.verdict import CaseResult, StridedAccess

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, rows, cols, stride_row, stride_col, B: tl.constexpr):
    col = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i * {step} + col, mask=i < rows, other=0.0)
    tl.store(out_ptr + col, tl.sum(x))

def run(x, out):
    rows, cols = x.shape
    kernel[(cols,)](x, out, rows, cols, x.stride(0), x.stride(1), B=1024)
"""
BAD = (_KERNEL.format(step="cols"),)
GOOD = (
    # A stride that nobody knows.
    """
@triton.jit
def kernel(x_ptr, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i * stride, 0.0, mask=i < n)

def run(x):
    kernel[(1,)](x, x.stride(0), x.numel(), B=64)
""",
)
_FEW = 4
"""Elements from lane to lane that still share sectors."""


@kernel_rule("low", "memory access", BAD, GOOD)
def strided_access(kernel: SourceKernel) -> Iterator[Fault]:
    """Neighboring lanes of a block access memory that lies far apart.

    Memory is read in sectors of 32 bytes. Where consecutive lanes are a row apart, each one fetches a
    sector for itself and uses one element of it, so most of the bandwidth is lost.

    Fix: let a tl.arange run along the axis whose stride is 1: give a program a block of several columns, or
    a two-dimensional block, or store the tensor the other way around.
    """
    strided = [
        (access, steps)
        for access in kernel.accesses
        if access.pointer and access.name in ("load", "store") and (steps := _steps(kernel, access))
    ]
    if strided:
        (first, steps), *_ = strided
        tensors = ", ".join(dict.fromkeys(str(access.pointer) for access, _ in strided))
        yield Fault(
            first.call,
            f"Neighboring lanes lie {' and '.join(steps)} elements apart in {tensors}: each of them "
            "fetches a memory sector of its own.",
            "Let a tl.arange run along the axis whose stride is 1, in a two-dimensional block for one.",
        )


def _steps(kernel: SourceKernel, access: KernelAccess) -> list[str]:
    """What each range of an address is multiplied with; empty unless all of that certainly is large."""
    known = values(kernel)
    parts = (known.bare(node) for node in known.origins(access.address) if isinstance(node, ast.expr))
    by_key = {known.key(part): part for part in parts}
    steps: list[str] = []
    for monomial, count in (polynomial(access.address, kernel, access.pointer) or {}).items():
        factors = [by_key[key] for key in monomial]
        ranges = [factor for factor in factors if is_block(factor, kernel) and not is_loaded(factor, kernel)]
        large = [factor for factor in factors if factor not in ranges and _is_large(factor, kernel)]
        if not ranges:
            continue
        if not all(known.is_a(one, "arange") for one in ranges) or not (large or count > _FEW):
            return []
        steps.append(ast.unparse(large[0]) if large else str(count))
    return list(dict.fromkeys(steps))


def _is_large(factor: ast.expr, kernel: SourceKernel) -> bool:
    """A large literal, or a parameter that every launch gives a size or a row's stride."""
    literal = literal_integer(kernel.flow.resolved(factor))
    if literal is not None:
        return literal > _FEW
    if not isinstance(factor, ast.Name) or factor.id not in kernel.parameters:
        return False
    if kernel.flow.feeds(factor.id) or not kernel.launches:
        return False
    given = [(launch, launch.given(kernel).get(factor.id)) for launch in kernel.launches]
    return all(value is not None and _is_row(value, launch) for launch, value in given)


def _is_row(value: ast.expr, launch: LaunchSite) -> bool:
    """`x.shape[1]`, or `x.stride(0)` of what certainly has more axes."""
    if whole := literal_integer(value):
        return whole > _FEW
    if size_of(value, launch):
        return True
    stride = stride_of(value, launch)
    if stride is None or stride.axis is None:
        return False
    rank = rank_of(stride.tensor, launch)
    return rank is not None and 0 <= stride.axis < rank - 1


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
LANES_BAD = (
    _FILE % ("at, mask = i * N + one, i < M", 36),
    _FILE % ("at, mask = (M - 1 - i[None, :]) * N + one, i[None, :] < M", 36),
)
LANES_GOOD = (
    _FILE % ("at, mask = one * N + i, i < N", 40),
    _FILE % ("at, mask = i[:, None] * N + i[None, :], (i[:, None] < M) & (i[None, :] < N)", 1),
    _FILE % ("at, mask = (7 * i) % M * N + one, i < M", 36),
    _FILE % ("at, mask = 4 * i + one, i < M * N // 4", 4),
)


@evidence_rule(MeasuredTarget, "medium", "memory access", LANES_BAD, LANES_GOOD)
def strided_lanes(measured: MeasuredTarget) -> Iterator[Fault]:
    """The lanes of a block lie apart in memory.

    Each lane then moves a sector of 32 bytes or more for the few bytes that it needs, and the memory's speed
    is divided by that.

    Fix: let the last axis of the block run along the tensor's axis of stride 1.
    """
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


_NARROW_FILE = """
INPUTS = {"x": "%s[N]"}
DIMS = {"N": [4096]}

@triton.jit
def kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + %s)
    tl.store(out_ptr + i, x)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](%s, out, %s, BLOCK=1024)
    return out
"""
NARROW_BAD = (
    _NARROW_FILE % ("float32", "2 * i", "x", "16"),
    _NARROW_FILE % ("float32", "(i % 32) * stride + i // 32", "x", "16"),
    _NARROW_FILE % ("float16", "2 * i", "x", "16"),
    _NARROW_FILE % ("float16", "(i % 32) * stride + i // 32", "x", "16"),
)
NARROW_GOOD = (
    _NARROW_FILE % ("float32", "stride + i", "x", "16"),
    _NARROW_FILE % ("float32", "i", "x[1:]", "16"),
    _NARROW_FILE % ("float16", "stride + i", "x", "1001"),
    _NARROW_FILE % ("float16", "tl.load(x_ptr + i).to(tl.int32)", "x", "16"),
    _NARROW_FILE % ("float16", "i", "x", "16"),
)
_SINGLE_BITS = 16
_WIDEST_BITS = 128


@evidence_rule(CompiledCode, "medium", "memory access", NARROW_BAD, NARROW_GOOD)
def narrow_access(code: CompiledCode) -> Iterator[Fault]:
    """A thread loads or stores less at once than its part of the block would allow.

    A warp then needs several times the instructions for the same bytes. Where elements that are neighbors in
    the block are not neighbors in memory, each short one takes an instruction and a sector of 32 bytes of its
    own.

    Fix: let the last axis of the block run along the axis of the tensor that has stride 1.
    """
    # Narrow for their pattern alone: no alignment is in doubt, and no index was loaded.
    if not code.knows_alignment:
        return
    for at, remark in code.remarks("narrow_access"):
        bits, possible = remark.figures["bits"], remark.figures["possible"]
        is_single = bits <= _SINGLE_BITS and possible >= _WIDEST_BITS
        if not code.gathers_at(at.lineno):
            yield Fault(
                at,
                f"A thread of {code.compiled.name} moves {bits} bits at once here where {possible} are "
                f"possible: it takes {possible // bits} times the instructions.",
                "Let the last axis of the block run along the tensor's axis of stride 1.",
                proof=code.proof(remark),
                severity=None if is_single else "low",
            )
