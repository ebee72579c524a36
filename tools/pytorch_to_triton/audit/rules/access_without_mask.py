"""Blocks whose offsets nothing bounds: certainly beyond a size of the file, or perhaps."""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.tails import may_overrun, tail_of
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Suspicion, kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_kernel = example("\n@triton.jit\ndef kernel(x_ptr, n, B: tl.constexpr, FULL: tl.constexpr = False):\n")
_I, _PID = "i = tl.arange(0, B)", "i = tl.program_id(0) * B + tl.arange(0, B)"
_COPY = _kernel(_PID, "tl.store(x_ptr + i, tl.load(x_ptr + i))")
_RUN = """
def run(x):
    n = x.shape[0]{}
    kernel[(triton.cdiv(n, 1024),)](x, n, B=1024)
"""
_LOOP = """
@triton.jit
def kernel(x_ptr, out_ptr, M, K, B: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        cols = k * BK + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + cols[None, :], mask=rows[:, None] < M, other=0.0)
        total += tl.sum(x, axis=1)
    tl.store(out_ptr + rows, total, mask=rows < M)

def run(x, out):
    M, K = x.shape
    kernel[(triton.cdiv(M, 32),)](x, out, M, K, B=32, BK=64)
"""


@kernel_rule(
    "critical",
    "correctness",
    bad=(
        _kernel(_PID, "tl.store(x_ptr + i, tl.load(x_ptr + i), mask=i < n)"),
        _kernel("tl.store(x_ptr + tl.program_id(0) * n + tl.arange(0, B), 0.0)"),
        _kernel(_I, "tl.atomic_add(x_ptr + i, 1)"),
        _COPY + _RUN.format(""),
        # The mask bounds the rows, and the loop walks over K in whole blocks.
        _LOOP,
    ),
    good=(
        _kernel(
            _I, "x = tl.load(x_ptr + i, mask=i < n)", "tl.store(x_ptr + tl.arange(0, 8), tl.load(x_ptr))"
        ),
        _kernel(_PID, "x = tl.load(x_ptr + i % n)"),
        _kernel(
            _I, "if FULL:", "    x = tl.load(x_ptr + i)", "else:", "    x = tl.load(x_ptr + i, mask=i < n)"
        ),
        _kernel("tl.store(x_ptr + tl.arange(0, B), 0.0)")
        + "\ndef run(x):\n    kernel[(1,)](x, 1, B=x.shape[1])\n",
        _kernel(
            "p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))",
            "x = tl.load(p, boundary_check=(0,))",
        ),
        # What does not fill whole blocks is refused, or declared away.
        _COPY + _RUN.format("\n    assert n % 1024 == 0"),
        'INPUTS = {"x": "float32[N]"}\nDIMS = {"N": [1024]}\nREQUIRES = ["N % 1024 == 0"]\n'
        + _COPY
        + _RUN.format(""),
    ),
    suspected=Suspicion("low", ("out_of_bounds",)),
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
