"""Sums, differences and products of loaded small integers that are made wider afterwards."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.intervals import Interval, held_by, result
from pytorch_to_triton.audit.analysis.pointer_dtypes import dtypes_of
from pytorch_to_triton.audit.analysis.promotion import FLOATS
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_NARROW = ("int8", "uint8", "int16")
_WIDE = (*FLOATS, "int32", "int64")
_DECLARED = """
INPUTS = {{"q": "int8[M, N]{0}", "zero": "int8[M]{0}"}}
DIMS = {{"M": [1, 64], "N": [1, 128]}}
"""
_KERNEL = """
@triton.jit
def kernel(q_ptr, zero_ptr, out_ptr, N, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    zero = tl.load(zero_ptr + row)
    q = tl.load(q_ptr + row * N + cols, mask=cols < N, other=0)
    {}
    tl.store(out_ptr + row * N + cols, out, mask=cols < N)

def run(q, zero):
    q, zero = q.contiguous(), zero.contiguous()
    M, N = q.shape
    out = torch.empty((M, N), dtype=torch.float32, device=q.device)
    kernel[(M,)](q, zero, out, N, B=triton.next_power_of_2(N))
    return out
"""
BAD = (
    _DECLARED.format("") + _KERNEL.format("out = (q - zero).to(tl.float32) * 0.5"),
    _DECLARED.format("") + _KERNEL.format("out = q * zero"),
)
GOOD = (
    # PyTorch wraps as well.
    _DECLARED.format("")
    + "\ndef reference(q, zero):\n    return (q - zero[:, None]).float()\n"
    + _KERNEL.format("out = (q - zero).to(tl.float32)"),
)


@kernel_rule("high", "correctness", BAD, GOOD)
def narrow_integers_wrap(kernel: SourceKernel) -> Iterator[Fault]:
    """Small integers are added, subtracted or multiplied before they are widened.

    The sum of two int8 is an int8 in Triton: 127 - (-1) is -128, and the conversion that follows keeps it.

    Fix: convert what was loaded first: `q.to(tl.float32) - zero.to(tl.float32)`.
    """
    for node in kernel.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            continue
        loads = [_load(side, kernel) for side in (node.left, node.right)]
        one, other = (held_by(load.pointer, kernel) if load and load.pointer else None for load in loads)
        if one is None or other is None or one.dtype != other.dtype or one.dtype not in _NARROW:
            continue
        made = result(node.op, one, other)
        if made.fits or not _is_widened(node, kernel) or _is_meant(node.op, kernel):
            continue
        text = ast.unparse(node)
        yield Fault(
            node,
            f"{text} is computed in {one.dtype}, and reaches {_worst(made)}: it wraps around before it is "
            "widened.",
            "Convert both sides first, to tl.float32 or tl.int32.",
        )


def _worst(made: Interval) -> int:
    return made.low if -made.low > made.high else made.high


def _load(value: ast.expr, kernel: SourceKernel) -> KernelAccess | None:
    """The load that a value is as it stands, names and new axes aside."""
    known = values(kernel)
    value = known.resolved(value)
    while isinstance(value, ast.Subscript):
        value = known.resolved(value.value)
    return next((one for one in kernel.accesses if one.call is value and one.name == "load"), None)


def _is_widened(made: ast.BinOp, kernel: SourceKernel) -> bool:
    """Whether the value is converted, summed up, combined with floats or stored as something wider."""
    known = values(kernel)
    for called in known.operations:
        is_wider = called.name == "sum" or (
            called.name in ("to", "cast") and known.dtype(called.call) in _WIDE
        )
        if is_wider and called.operands and _is(called.operands[0], made, kernel):
            return True
    for node in known.expressions:
        if isinstance(node, ast.BinOp):
            for side, factor in ((node.left, node.right), (node.right, node.left)):
                if _is(side, made, kernel) and _is_wide(factor, kernel):
                    return True
    stores = (one for one in kernel.accesses if one.writes and one.pointer and one.value is not None)
    return any(
        one.value is not None
        and one.pointer is not None
        and _is(one.value, made, kernel)
        and _are_wide(dtypes_of(one.pointer, kernel))
        for one in stores
    )


def _is(value: ast.expr, made: ast.BinOp, kernel: SourceKernel) -> bool:
    return values(kernel).resolved(value) is made


def _is_wide(value: ast.expr, kernel: SourceKernel) -> bool:
    load = _load(value, kernel)
    if load and load.pointer:
        return _are_wide(dtypes_of(load.pointer, kernel))
    known = values(kernel)
    number = known.resolved(value)
    return known.dtype(value) in _WIDE or (isinstance(number, ast.Constant) and type(number.value) is float)


def _are_wide(dtypes: frozenset[str]) -> bool:
    return bool(dtypes) and dtypes <= {*_WIDE}


def _is_meant(op: ast.operator, kernel: SourceKernel) -> bool:
    """Whether the reference, too, computes with its inputs as they are."""
    reference = next((one for one, _ in kernel.file.functions if one.name == "reference"), None)
    return reference is not None and any(
        isinstance(node, ast.BinOp)
        and type(node.op) is type(op)
        and not any(isinstance(inner, ast.Call) for inner in ast.walk(node))
        for node in ast.walk(reference)
    )
