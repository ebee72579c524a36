"""Lanes that lie apart in memory: by the source, as measured, and as the compiler narrows them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.audit.analysis.launched_tensors import rank_of, size_of, stride_of
from pytorch_to_triton.audit.analysis.movement import polynomial
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.evidence import CompiledCode, MeasuredTarget
from pytorch_to_triton.audit.examples import ROW, declared, jit, run
from pytorch_to_triton.audit.fault import Fault, SourceLine
from pytorch_to_triton.audit.rule import compiled_rule, kernel_rule, measured_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel
from pytorch_to_triton.schema.verdict import CaseResult, StridedAccess

_APART = jit(ROW, "x = tl.load(x_ptr + i * n + tl.program_id(0), mask=i < n, other=0.0)")
_STORED_APART = jit(ROW, "tl.store(out_ptr + i * n + tl.program_id(0), 1.0, mask=i < n)")
_FEW = 4
"""Elements from lane to lane that still share sectors."""


@kernel_rule(
    "low",
    "memory access",
    bad=tuple(k + run("kernel[(x.shape[1],)](x, out, x.shape[1], B=1024)") for k in (_APART, _STORED_APART)),
    # A stride that nobody knows.
    good=(_APART + run("kernel[(1,)](x, out, x.stride(0), B=64)"),),
)
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
    parts = (kernel.bare(node) for node in kernel.origins(access.address) if isinstance(node, ast.expr))
    by_key = {kernel.key(part): part for part in parts}
    steps: list[str] = []
    for monomial, count in (polynomial(access.address, kernel, access.pointer) or {}).items():
        factors = [by_key[key] for key in monomial]
        ranges = [factor for factor in factors if kernel.is_block(factor) and not kernel.is_loaded(factor)]
        large = [factor for factor in factors if factor not in ranges and _is_large(factor, kernel)]
        if not ranges:
            continue
        if not all(kernel.is_a(one, "arange") for one in ranges) or not (large or count > _FEW):
            return []
        steps.append(ast.unparse(large[0]) if large else str(count))
    return list(dict.fromkeys(steps))


def _is_large(factor: ast.expr, kernel: SourceKernel) -> bool:
    """A large literal, or a parameter that every launch gives a size or a row's stride."""
    literal = literal_integer(kernel.resolved(factor))
    if literal is not None:
        return literal > _FEW
    if not isinstance(factor, ast.Name) or factor.id not in kernel.parameters:
        return False
    if kernel.feeds(factor.id) or not kernel.launches:
        return False
    given = [(launch, launch.given.get(factor.id)) for launch in kernel.launches]
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


def _doubled(at: str, mask: str, programs: int) -> str:
    offsets = ("j = tl.program_id(0)", ROW, f"at, mask = {at}, {mask}")
    store = "tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask) * 2, mask=mask)"
    launch = f"kernel[({programs},)](x, out, 40, 36, B=64)"
    kernel = jit(*offsets, store, takes="x_ptr, out_ptr, m, n, B: tl.constexpr")
    reference = '\nCASES = ("m=40 n=36",)\n\ndef reference(x):\n    return x * 2\n'
    return reference + declared(kernel, launch, x="float32[m, n]", m=40, n=36)


@measured_rule(
    "medium",
    "memory access",
    bad=(
        _doubled("i * n + j", "i < m", 36),
        _doubled("(m - 1 - i[None, :]) * n + j", "i[None, :] < m", 36),
    ),
    good=(
        _doubled("i[:, None] * n + i[None, :]", "(i[:, None] < m) & (i[None, :] < n)", 1),
        _doubled("(7 * i) % m * n + j", "i < m", 36),
        _doubled("4 * i + j", "i < m * n // 4", 4),
    ),
)
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


def _copied(dtype: str, at: str, x: str = "x", stride: int = 16) -> str:
    kernel = jit(ROW, f"tl.store(out_ptr + i, tl.load(x_ptr + {at}))")
    return declared(kernel, f"kernel[(1,)]({x}, out, {stride}, B=1024)", x=f"{dtype}[N]", N=4096)


_SINGLE_BITS = 16
_WIDEST_BITS = 128


@compiled_rule(
    "medium",
    "memory access",
    bad=(_copied("float32", "2 * i"), _copied("float16", "(i % 32) * n + i // 32")),
    good=(
        _copied("float32", "i", "x[1:]"),
        _copied("float16", "n + i", stride=1001),
        _copied("float16", "tl.load(x_ptr + i).to(tl.int32)"),
        _copied("float16", "n + i"),
    ),
)
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
