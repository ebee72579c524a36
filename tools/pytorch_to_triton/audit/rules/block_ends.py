"""Blocks that reach beyond what a mask or their length allows, or end before the row does."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import addends, all_bounds, block_start, range_length
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.covered import is_limited
from pytorch_to_triton.audit.analysis.launch_sizes import declared_size, literal_sizes, most_lanes
from pytorch_to_triton.audit.analysis.launched_tensors import Extent, callers_parameters, size_of, text_of
from pytorch_to_triton.audit.analysis.tails import may_overrun, tail_of
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel


@kernel_rule(
    "critical",
    "correctness",
    bad=(jit(LANES, "tl.store(out_ptr + i, tl.load(x_ptr + i), mask=i < n)"),),
    good=(jit(LANES, "x = tl.load(x_ptr + i % n)"),),
    suspected=Unconfirmed("low", ("out_of_bounds",)),
)
def access_without_mask(kernel: SourceKernel) -> Iterator[Fault]:
    """A block is loaded or stored without a mask.

    Where the tensor does not fill its last block, a load reads what lies beyond it, and a store overwrites
    it: silently another tensor's values, or it is an illegal memory access.

    Fix: pass mask= with a bound for every axis that may end inside a block, and other= where a loaded value
    counts.
    """
    for access in kernel.accesses:
        if access.name == "atomic_cas":
            continue
        tail = tail_of(access, kernel)
        place, pointer = access.pointer or "The address", access.pointer or ""
        verb = "written" if access.writes else "read"
        beyond = "overwrites what lies beyond its end" if access.writes else "reads beyond its end"
        if tail and tail.severity:
            yield Fault(
                access.call,
                f"{place} is {verb} in blocks of {tail.block} over {tail.size}, and no mask bounds them: "
                f"unless {tail.size} fills whole blocks, the last one {beyond}.",
                f"Bound the offsets along {tail.size} with mask=, or assert that it fills whole blocks.",
                pointer=pointer,
                proof=tail.proof,
                severity=tail.severity,
            )
        elif tail is None and may_overrun(access, kernel):
            yield Fault(
                access.call,
                f"{place} is {verb} a whole block at a time and without a mask: unless its size is a "
                f"multiple of the block's, the last block {beyond}.",
                "Add mask=offsets < size"
                + ("." if access.writes else ", and other= where masked lanes count."),
                pointer=pointer,
                severity=None if access.writes else "info",
            )


_SUMMED = jit(
    "row, cols = tl.program_id(0), tl.arange(0, B)",
    "x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)",
    "tl.store(out_ptr + row, tl.sum(x, axis=0))",
)
_LONG = 'INPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [1, 64], "N": [128, 1000, 2048]}\n'
_ROWS = _SUMMED + run("M, N = x.shape", "kernel[(M,)](x, out, N, B=1024)", takes="x, out")


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        _LONG + _ROWS,
        # The length is in the kernel.
        _LONG + _ROWS.replace(", B: tl.constexpr", "").replace("B)", "512)").replace(", B=1024", ""),
    ),
    good=(_LONG + 'REQUIRES = ["N <= 1024"]\n' + _ROWS,),
)
def block_shorter_than_row(kernel: SourceKernel) -> Iterator[Fault]:
    """A row is taken in one block of a fixed length, and rows may be longer.

    No program and no loop goes on where the block ends: the rest of the row is neither read nor written,
    and nothing says so.

    Fix: pass triton.next_power_of_2(n), loop over the row in blocks, or refuse longer rows.
    """
    if is_trial(kernel.file):
        return
    for launch in kernel.launches:
        faults = (_too_short(size, length, launch) for size, length in dict.fromkeys(_rows(kernel)))
        if first := next((fault for fault in faults if fault), None):
            yield first


def _rows(kernel: SourceKernel) -> Iterator[tuple[str, str]]:
    """The sizes that the lanes of a block which nothing moves are compared with, and its length."""
    for access, bound in all_bounds(kernel):
        length = range_length(bound.offsets, kernel)
        if length is None or not isinstance(bound.size, ast.Name):
            continue
        starts = [block_start(part, kernel) for part in addends(access.address, kernel)]
        is_placed = any(start and start[1] == length for start in starts)
        if not is_placed and not _is_walked({bound.size.id, length}, kernel):
            yield bound.size.id, length


def _is_walked(names: set[str], kernel: SourceKernel) -> bool:
    """Whether the kernel has a loop that a size or a length has a part in."""
    loops = [node for node in kernel.nodes if isinstance(node, ast.For | ast.While)]
    sources = [loop.iter if isinstance(loop, ast.For) else loop.test for loop in loops]
    return any(isinstance(node, ast.Name) and node.id in names for node in kernel.origins(*sources)) or (
        any(isinstance(loop, ast.While) for loop in loops)
    )


def _too_short(size: str, length: str, launch: LaunchSite) -> Fault | None:
    kernel, given = launch.kernel, launch.given.get(size)
    extent = size_of(given, launch) if given is not None else None
    most = most_lanes(length, launch)
    if extent is None or most is None or given is None or is_limited(given, launch, kernel):
        return None
    declared = declared_size(extent, launch)
    known = [*(declared.values() if declared else ()), *literal_sizes(extent, launch)]
    longest = max(known, default=None)
    if longest is not None and longest > most:
        proof = f"{declared.text if declared else text_of(extent)} = {longest} in this file."
        return _fault(length, extent, most, launch, proof)
    is_open = longest is None and extent.axis is not None and extent.tensor in callers_parameters(launch)
    return _fault(length, extent, most, launch) if is_open else None


def _fault(length: str, size: Extent, most: int, launch: LaunchSite, proof: str = "") -> Fault:
    return Fault(
        launch.call,
        f"One block of {most} elements has to hold all of {text_of(size)}, and nothing loops over it: "
        "the rest of longer rows is neither read nor written.",
        f"Pass triton.next_power_of_2 of the size for {length}, loop over it, or refuse what is longer.",
        proof=proof,
        severity=None if proof else "medium",
    )
