"""Sums and integers in dtypes too short for what they come to."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from pytorch_to_triton.audit.analysis.launch_sizes import declaration_of
from pytorch_to_triton.audit.analysis.launched_tensors import owner_of
from pytorch_to_triton.audit.analysis.masked_lanes import load_of
from pytorch_to_triton.audit.analysis.pointer_dtypes import dtypes_of
from pytorch_to_triton.audit.examples import ROW, declared, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import FLOATS, LOW_PRECISION
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel
from pytorch_to_triton.inputs.input_spec import INTEGERS, TensorSpec, default_range


@dataclass(frozen=True)
class Interval:
    """Integers of a dtype from low to high, both included."""

    dtype: str
    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Whether the dtype holds them all."""
        least, end = next(bounds for name, bounds in INTEGERS.items() if name == self.dtype)
        return least <= self.low and self.high < end


def held_by(pointer: str, kernel: SourceKernel) -> Interval | None:
    """What a declared input may hold that launches pass for a pointer; None where nothing is declared."""
    dtypes = dtypes_of(pointer, kernel)
    declaration = declaration_of(kernel.file)
    given = (launch.given.get(pointer) for launch in kernel.launches)
    names = {ast.unparse(owner_of(value)) for value in given if value}
    spec = declaration.inputs.get(names.pop()) if declaration and len(names) == 1 else None
    if len(dtypes) != 1 or not isinstance(spec, TensorSpec):
        return None
    dtype = next((name for name in INTEGERS if {name} == dtypes), None)
    if dtype is None:
        return None
    least, end = default_range(dtype)
    low, high = _number(spec.low, least), _number(spec.high, end)
    outside = _number(spec.outside, low)
    if low is None or high is None or outside is None:
        return None
    return Interval(dtype, min(low, outside), max(high - 1, outside))


def result(op: ast.operator, one: Interval, other: Interval) -> Interval:
    """What a sum, a difference or a product comes to where nothing wraps around."""
    pairs = [*product((one.low, one.high), (other.low, other.high))]
    match op:
        case ast.Add():
            made = [first + second for first, second in pairs]
        case ast.Sub():
            made = [first - second for first, second in pairs]
        case _:
            made = [first * second for first, second in pairs]
    return Interval(one.dtype, min(made), max(made))


def _number(bound: str | None, default: int | None) -> int | None:
    """A bound that is a literal; None of one that depends on sizes."""
    if bound is None:
        return default
    try:
        return int(bound)
    except ValueError:
        return None


def _accumulated(start: str, step: str) -> str:
    return jit(
        ROW, f"acc = {start}", "for k in range(0, n, B):", "    x = tl.load(x_ptr + k + i)", f"    {step}"
    )


_ADDS_IN = {"sum": LOW_PRECISION, "cumsum": ("float16",)}
"""tl.cumsum makes float32 of bfloat16."""


def _compiled(dtype: str, total: str) -> str:
    load = "x = tl.load(x_ptr + i[:, None] * B + i[None, :])"
    kernel = jit("return tl.sum(x, axis=1)", takes="x").replace("kernel", "total")
    kernel += jit(ROW, load, f"tl.store(out_ptr + i, {total})")
    out = "torch.empty(32, dtype=x.dtype, device=x.device)"
    return declared(kernel, "kernel[(1,)](x, out, 32, B=32)", out=out, x=f"{dtype}[M, M]", M=32)


_COMPILED = remark_check(
    "low_precision_sum",
    "{kernel} adds up in {precision}: each addition rounds, where PyTorch adds in float32.",
    "Convert with .to(tl.float32) before the sum, and round once, at the store.",
    bad=(_compiled("float16", "tl.sum(x, axis=1)"), _compiled("bfloat16", "total(x)")),
    good=(_compiled("float32", "tl.sum(x, axis=1)"), _compiled("float16", "total(x.to(tl.float32))")),
)


@kernel_rule(
    "medium",
    "numerical stability",
    bad=(
        _accumulated("tl.zeros((B,), dtype=tl.float16)", "acc += x"),
        _accumulated("0.0", "acc = tl.dot(x, x, out_dtype=tl.float16)"),
    ),
    good=(jit("y = tl.sum(tl.load(x_ptr + tl.arange(0, B)).to(tl.float16), dtype=tl.float32)"),),
    also=_COMPILED,
)
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
    for node in kernel.expressions:
        before = _added_to(kernel, node)
        held = kernel.definitions(before) if before else ()
        dtype = kernel.dtype(before) if before and node in held and len(held) > 1 else None
        if before and dtype in LOW_PRECISION:
            yield Fault(
                node,
                f"{before.id} adds up in {dtype}, and each step of the loop rounds it; small terms are lost.",
                f"Keep {before.id} in tl.float32, and cast it where it is stored.",
            )
        elif before and (pointer := _pointer_of_dtype(kernel, before, node)):
            yield Fault(
                node,
                f"{before.id} adds up in the dtype of {pointer}: for a float16 or bfloat16 tensor each step "
                "of the loop rounds it, and small terms are lost.",
                f"Keep {before.id} in tl.float32, and cast it where it is stored.",
            )
        elif before is None and _dot_in_float16(kernel, node):
            yield Fault(
                node,
                "This tl.dot adds its products up in float16: small terms are lost, and 65520 is infinite.",
                "Leave out_dtype out, so that the sums are float32, and cast the result where it is stored.",
            )


def _added_to(kernel: SourceKernel, node: ast.expr) -> ast.Name | None:
    """acc of `acc + x` and tl.dot(a, b, acc)."""
    match node:
        case (
            ast.BinOp(left=ast.Name() as name, op=ast.Add())
            | ast.BinOp(op=ast.Add(), right=ast.Name() as name)
        ):
            return name
    call = kernel.operation(node)
    given = call.option(2, "acc") if call and call.name == "dot" else None
    return given if isinstance(given, ast.Name) else None


def _pointer_of_dtype(kernel: SourceKernel, name: ast.Name, node: ast.expr) -> str | None:
    """The pointer whose element type an accumulator has, where it certainly may be of low precision."""
    held = kernel.definitions(name)
    starts = [definition for definition in held if definition is not node]
    if node not in held or len(starts) != 1 or not isinstance(starts[0], ast.expr):
        return None
    pointer = _element_type(kernel, starts[0])
    dtypes = dtypes_of(pointer, kernel) if pointer else frozenset()
    if dtypes.intersection(LOW_PRECISION) or ("any" in dtypes and _is_of_floats(kernel, node)):
        return pointer
    return None


def _element_type(kernel: SourceKernel, start: ast.expr) -> str | None:
    """`p` of `tl.zeros(shape, dtype=p.dtype.element_ty)`."""
    call = kernel.operation(start)
    if call is None or call.name not in ("zeros", "full"):
        return None
    named = call.option(1 if call.name == "zeros" else 2, "dtype")
    match kernel.resolved(named) if named else None:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="dtype"), attr="element_ty"):
            return name if name in kernel.parameters else None
    return None


def _is_of_floats(kernel: SourceKernel, node: ast.expr) -> bool:
    """Whether products or casts to tl.float32 show that the kernel is not for integers."""
    path = "triton.language.float32"
    casts = any(kernel.scope.path(one) == path for one in kernel.nodes)
    return casts or "dot" in kernel.made_by(node)


def _dot_in_float16(kernel: SourceKernel, node: ast.expr) -> bool:
    call = kernel.operation(node)
    named = call.option(5, "out_dtype") if call and call.name == "dot" else None
    return named is not None and kernel.scope.path(named) == "triton.language.float16"


def _reductions(kernel: SourceKernel) -> Iterator[Fault]:
    """Each sum of a block that certainly is of low precision."""
    for call in kernel.calls(*_ADDS_IN):
        if not call.operands or call.option(3, "dtype"):
            continue
        dtype = kernel.dtype(call.operands[0])
        is_asked = getattr(kernel.parents.get(call.call), "attr", "") == "dtype"  # `tl.sum(x).dtype`
        if dtype in _ADDS_IN[call.name] and not is_asked:
            block = ast.unparse(call.operands[0])
            yield Fault(
                call.call,
                f"{call.name} of {block} adds up in {dtype}: Triton promotes nothing, and rounds each step.",
                f"Cast before it: tl.{call.name}(({block}).to(tl.float32), ...).",
            )


_NARROW = ("int8", "uint8", "int16")
_WIDE = (*FLOATS, "int32", "int64")


def _quantised(out: str, spec: str = "int8[N]") -> str:
    loads = "q = tl.load(q_ptr + i, mask=i < n, other=0)", "zero = tl.load(zero_ptr + i)"
    kernel = jit(
        ROW, *loads, f"tl.store(out_ptr + i, {out})", takes="q_ptr, zero_ptr, out_ptr, n, B: tl.constexpr"
    )
    made = "torch.empty(q.shape, dtype=torch.float32, device=q.device)"
    call = "kernel[(1,)](q, zero, out, len(q), B=64)"
    return declared(kernel, call, out=made, q=spec, zero=spec, N=64)


@kernel_rule(
    "high",
    "correctness",
    bad=(
        _quantised("(q - zero).to(tl.float32) * 0.5"),
        _quantised("q * zero"),
        _quantised("q * zero", "int16[N] in -1000..1000"),
    ),
    # PyTorch wraps as well.
    good=(
        "def reference(q, zero):\n    return (q - zero).float()\n" + _quantised("(q - zero).to(tl.float32)"),
    ),
)
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
        text, worst = ast.unparse(node), max(made.high, made.low, key=abs)
        yield Fault(
            node,
            f"{text} is computed in {one.dtype}, and reaches {worst}: it wraps around before it is widened.",
            "Convert both sides first, to tl.float32 or tl.int32.",
        )


def _load(value: ast.expr, kernel: SourceKernel) -> KernelAccess | None:
    """The load that a value is as it stands, names and new axes aside."""
    value = kernel.resolved(value)
    while isinstance(value, ast.Subscript):
        value = kernel.resolved(value.value)
    return load_of(value, kernel)


def _is_widened(made: ast.BinOp, kernel: SourceKernel) -> bool:
    """Whether the value is converted, summed up, combined with floats or stored as something wider."""
    for called in kernel.operations:
        is_wider = called.name == "sum" or (
            called.name in ("to", "cast") and kernel.dtype(called.call) in _WIDE
        )
        if is_wider and called.operands and kernel.resolved(called.operands[0]) is made:
            return True
    for node in kernel.expressions:
        if isinstance(node, ast.BinOp):
            for side, factor in ((node.left, node.right), (node.right, node.left)):
                if kernel.resolved(side) is made and _is_wide(factor, kernel):
                    return True
    return any(
        access.writes and access.value and kernel.resolved(access.value) is made
        for access in kernel.accesses
        if access.pointer and _are_wide(dtypes_of(access.pointer, kernel))
    )


def _is_wide(value: ast.expr, kernel: SourceKernel) -> bool:
    load = _load(value, kernel)
    if load and load.pointer:
        return _are_wide(dtypes_of(load.pointer, kernel))
    number = kernel.resolved(value)
    return kernel.dtype(value) in _WIDE or (isinstance(number, ast.Constant) and type(number.value) is float)


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
