"""Accumulators of loops, and reductions."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.pointer_dtypes import dtypes_of
from pytorch_to_triton.audit.analysis.promotion import LOW_PRECISION
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = {start}
    for k in range(0, n, B):
        x = tl.load(x_ptr + k + i)
        {step}
    tl.store(out_ptr + i, acc)
"""
_REDUCTION = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {steps}
    tl.store(out_ptr, y)
"""
BAD = (
    _KERNEL.format(start="tl.zeros((B,), dtype=tl.float16)", step="acc += x"),
    _KERNEL.format(start="0.0", step="acc = tl.dot(x, x, out_dtype=tl.float16)"),
    _REDUCTION.format(steps="h = tl.cast(x, tl.bfloat16)\n    y = (h * h).sum(axis=0)"),
)
GOOD = (_REDUCTION.format(steps="y = tl.sum(x.to(tl.float16), dtype=tl.float32)"),)
_FILE = """
INPUTS = {"x": "%s[M, M]"}
DIMS = {"M": [32]}

@triton.jit
def total(x):
    return tl.sum(x, axis=1)

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])
    tl.store(out_ptr + i, %s)

def run(x):
    out = torch.empty(32, dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, BLOCK=32)
    return out
"""
BAD_COMPILED = (
    _FILE % ("float16", "tl.sum(x, axis=1)"),
    _FILE % ("bfloat16", "total(x)"),
)
GOOD_COMPILED = (
    _FILE % ("float32", "tl.sum(x, axis=1)"),
    _FILE % ("float16", "total(x.to(tl.float32))"),
)
_ADDS_IN = {"sum": LOW_PRECISION, "cumsum": ("float16",)}
"""tl.cumsum makes float32 of bfloat16."""


_COMPILED = remark_check(
    "low_precision_sum",
    "{kernel} adds up in {precision}: each addition rounds, where PyTorch adds in float32.",
    "Convert with .to(tl.float32) before the sum, and round once, at the store.",
    BAD_COMPILED,
    GOOD_COMPILED,
)


@kernel_rule("medium", "numerical stability", BAD, GOOD, also=_COMPILED)
def low_precision_sum(kernel: SourceKernel) -> Iterator[Fault]:
    """A sum is kept in float16 or bfloat16, or in whatever dtype a tensor has.

    Each addition is rounded to 11 or 8 bits. A float16 sum of ones stops growing at 2048 and one in
    bfloat16 at 256; float16 is infinite from 65520 on. Triton keeps the dtype of what it adds up: unlike
    torch.sum it does not add in float32.

    Fix: start an accumulator as tl.zeros(shape, dtype=tl.float32), cast before a sum,
    tl.sum(x.to(tl.float32)), and leave out tl.dot's out_dtype; cast once, before the store.
    """
    yield from _accumulators(kernel)
    yield from _reductions(kernel)


def _accumulators(kernel: SourceKernel) -> Iterator[Fault]:
    """Each addition of a loop to a value of low precision, and each tl.dot that adds up in it."""
    found = values(kernel)
    for node in found.expressions:
        before = _added_to(found, node)
        dtype = _carried(found, before, node) if before else None
        if before and dtype:
            yield Fault(
                node,
                f"{before.id} adds up in {dtype}, and each step of the loop rounds it; small terms are lost.",
                f"Keep {before.id} in tl.float32, and cast it where it is stored.",
            )
        elif before and (pointer := _pointer_of_dtype(found, before, node)):
            yield Fault(
                node,
                f"{before.id} adds up in the dtype of {pointer}: for a float16 or bfloat16 tensor each step "
                "of the loop rounds it, and small terms are lost.",
                f"Keep {before.id} in tl.float32, and cast it where it is stored.",
            )
        elif before is None and _dot_in_float16(found, node):
            yield Fault(
                node,
                "This tl.dot adds its products up in float16: small terms are lost, and 65520 is infinite.",
                "Leave out_dtype out, so that the sums are float32, and cast the result where it is stored.",
            )


def _added_to(found: KernelValues, node: ast.expr) -> ast.Name | None:
    """acc of `acc + x` and tl.dot(a, b, acc)."""
    match node:
        case (
            ast.BinOp(left=ast.Name() as name, op=ast.Add())
            | ast.BinOp(op=ast.Add(), right=ast.Name() as name)
        ):
            return name
    call = found.operation(node)
    given = call.option(2, "acc") if call and call.name == "dot" else None
    return given if isinstance(given, ast.Name) else None


def _carried(found: KernelValues, name: ast.Name, node: ast.expr) -> str | None:
    """The dtype of low precision that a name has, where a loop gives it the result of the addition again."""
    held = found.definitions(name)
    if node not in held or len(held) < 2:
        return None
    dtype = found.dtype(name)
    return dtype if dtype in LOW_PRECISION else None


def _pointer_of_dtype(found: KernelValues, name: ast.Name, node: ast.expr) -> str | None:
    """The pointer whose element type an accumulator has, where it certainly may be of low precision."""
    held = found.definitions(name)
    starts = [one for one in held if one is not node]
    if node not in held or len(starts) != 1 or not isinstance(starts[0], ast.expr):
        return None
    pointer = _element_type(found, starts[0])
    dtypes = dtypes_of(pointer, found.kernel) if pointer else frozenset()
    if dtypes.intersection(LOW_PRECISION) or ("any" in dtypes and _is_of_floats(found, node)):
        return pointer
    return None


def _element_type(found: KernelValues, start: ast.expr) -> str | None:
    """`p` of `tl.zeros(shape, dtype=p.dtype.element_ty)`."""
    call = found.operation(start)
    if call is None or call.name not in ("zeros", "full"):
        return None
    named = call.option(1 if call.name == "zeros" else 2, "dtype")
    match found.resolved(named) if named else None:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="dtype"), attr="element_ty"):
            return name if name in found.kernel.parameters else None
    return None


def _is_of_floats(found: KernelValues, node: ast.expr) -> bool:
    """Whether products or casts to tl.float32 show that the kernel is not for integers."""
    path = "triton.language.float32"
    casts = any(found.kernel.scope.path(one) == path for one in found.kernel.nodes)
    return casts or "dot" in found.made_by(node)


def _dot_in_float16(found: KernelValues, node: ast.expr) -> bool:
    call = found.operation(node)
    named = call.option(5, "out_dtype") if call and call.name == "dot" else None
    return named is not None and found.kernel.scope.path(named) == "triton.language.float16"


def _reductions(kernel: SourceKernel) -> Iterator[Fault]:
    """Each sum of a block that certainly is of low precision."""
    found = values(kernel)
    for call in found.operations:
        if call.name not in _ADDS_IN or not call.operands or call.option(3, "dtype"):
            continue
        dtype = found.dtype(call.operands[0])
        if dtype in _ADDS_IN[call.name] and not _is_asked_for_dtype(kernel, call.call):
            block = ast.unparse(call.operands[0])
            yield Fault(
                call.call,
                f"{call.name} of {block} adds up in {dtype}: Triton promotes nothing, and rounds each step.",
                f"Cast before it: tl.{call.name}(({block}).to(tl.float32), ...).",
            )


def _is_asked_for_dtype(kernel: SourceKernel, call: ast.Call) -> bool:
    """`tl.sum(x).dtype`"""
    around = kernel.flow.parents.get(call)
    return isinstance(around, ast.Attribute) and around.attr == "dtype"
