"""Places that several programs write: each its own result, or what they loaded there and changed."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import is_block, is_loaded, range_length
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.programs import is_updated, program_axes, program_ids, shared_axes
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Suspicion, kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_kernel = example(
    "\n@triton.jit\ndef kernel(x_ptr, ids_ptr, out_ptr, n, B: tl.constexpr):\n    row = tl.program_id(0)\n",
    "\ndef run(x, ids, out):\n    kernel[(triton.cdiv(x.numel(), 64),)](x, ids, out, x.numel(), B=64)\n",
)
_PART = "part = tl.sum(tl.load(x_ptr + row * B + tl.arange(0, B)))"
_LOCK = "while tl.atomic_cas(ids_ptr, 0, 1) == 1:"
_DST = "dst = out_ptr + tl.load(ids_ptr + row) * n + tl.arange(0, B)"


@kernel_rule(
    "high",
    "correctness",
    bad=(_kernel(_PART, "tl.store(out_ptr, part)"),),
    good=(
        _kernel("out_ptr += tl.load(ids_ptr + row)", "tl.store(out_ptr, tl.load(x_ptr + row))"),
        _kernel(_PART, "if row == 0:", "    tl.store(out_ptr, part)"),
        _kernel("tl.store(out_ptr, n)"),
        _kernel(_PART, "tl.store(out_ptr, part)").replace(
            "    kernel[(", "    kernel[(1,)](x, ids, out, 1, 1)\n    kernel[("
        ),
    ),
)
def same_place_in_all_programs(kernel: SourceKernel) -> Iterator[Fault]:
    """Every program of a grid stores its own result at the same place.

    The programs run in any order, and the last store stays: the results of all others are lost.

    Fix: give each program its own place by its tl.program_id, or combine the results with tl.atomic_add.
    """
    for access, axis in _shared(kernel):
        if not is_updated(access, kernel):
            yield Fault(
                access.call,
                f"The value depends on tl.program_id({axis}), and its place in {access.pointer} does not: "
                "all programs along this axis write there, and one result stays.",
                f"Add an offset made of tl.program_id({axis}) to {access.pointer}, or use an atomic.",
            )


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        _kernel(_PART, "tl.store(out_ptr, tl.load(out_ptr) + part)"),
        _kernel(_DST, "total = tl.load(dst) + tl.load(x_ptr + row)", "tl.store(dst, total)"),
        _kernel(
            "bins = tl.load(ids_ptr + row * B + tl.arange(0, B))",
            "count = tl.load(out_ptr + bins)",
            "count += 1",
            "tl.store(out_ptr + bins, count)",
        ),
    ),
    good=(
        # The lock lets one program in at a time.
        _kernel(_PART, _LOCK, "    pass", "tl.store(out_ptr, tl.load(out_ptr) + part)"),
        _kernel(_DST, _LOCK, "    pass", "tl.store(dst, tl.load(dst) + tl.load(x_ptr + row))"),
        # Where a sequence starts is loaded, and each program has its own steps of it.
        _kernel(_DST, "dst += row", "tl.store(dst, tl.load(dst) + tl.load(x_ptr + row))"),
        # Rows that are changed in place are as a rule listed once.
        _kernel(_DST, "tl.store(dst, tl.load(dst) * 0.5)"),
    ),
    suspected=Suspicion("low", ("race",)),
)
def unguarded_read_modify_write(kernel: SourceKernel) -> Iterator[Fault]:
    """Programs that share a place load from it, change the value and store it back.

    Between one program's load and its store others do the same, and what they added is lost. How much,
    differs from run to run. Where the place comes from a loaded index, it is shared wherever an index occurs
    twice: the embedding of a token that occurs twice gets one of its two gradients.

    Fix: use tl.atomic_add (or tl.atomic_max and the like), or give each program its own place and sum up
    later.
    """
    for access, axis in _shared(kernel):
        if is_updated(access, kernel):
            yield Fault(
                access.call,
                f"All programs along axis {axis} load from the same place in {access.pointer}, change the "
                "value and store it: updates of programs that run at the same time are lost.",
                f"Use tl.atomic_add on {access.pointer}, or store partial results by tl.program_id({axis}).",
                certain=True,
            )
    if any(access.name in ("atomic_cas", "atomic_xchg") for access in kernel.accesses):
        return
    for access in kernel.accesses:
        index = _shared_index(access, kernel) if _accumulates(access, kernel) else None
        if index is not None:
            yield Fault(
                access.call,
                f"The place in {access.pointer} comes from {ast.unparse(index)}: where an index occurs "
                "twice, the loads and stores of both overlap, and one of the two sums is lost.",
                f"Use tl.atomic_add on {access.pointer}.",
            )


def _shared(kernel: SourceKernel) -> Iterator[tuple[KernelAccess, int]]:
    """Each store at a place that all programs along an axis of the grid share, with the axis."""
    for access in kernel.accesses:
        if access.name == "store":
            yield from ((access, axis) for axis in sorted(shared_axes(access, kernel)))


def _accumulates(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether it stores a sum or a difference with what the same place holds."""
    found = values(kernel)
    total = found.bare(access.value) if access.value is not None and access.name == "store" else None
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add | ast.Sub):
        return False
    return is_updated(access, kernel) and any(
        isinstance(found.bare(side), ast.Call) and is_loaded(found.bare(side), kernel)
        for side in (total.left, total.right)
    )


def _shared_index(access: KernelAccess, kernel: SourceKernel) -> ast.expr | None:
    """A loaded index in the address that alone differs between programs, or between lanes."""
    own = kernel.flow.origins(access.address, stop=lambda node: is_loaded(node, kernel))
    loads = [node for node in own if isinstance(node, ast.Call) and is_loaded(node, kernel)]
    direct = {axis for call, axis in program_ids(kernel) if call in own}
    is_own_block = any(isinstance(node, ast.expr) and range_length(node, kernel) for node in own)
    for load in sorted(loads, key=lambda one: one.lineno):
        if program_axes(kernel, load) - direct or (is_block(load, kernel) and not is_own_block):
            return load
    return None
