"""The first product of a program id and a run-time argument in an address, without int64 in it.

Where declared sizes reach 2**31 elements, the first one in an address of such a tensor."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launch_sizes import most_elements
from pytorch_to_triton.audit.examples import jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_COUNTED = 2**31
_WIDE = ("triton.language.int64", "triton.language.uint64")
_NARROW = ("triton.language.int32", "triton.language.uint32")
_ROW = jit("row = tl.program_id(0)", "tl.store(out_ptr + row * n, 0.0)")
_CHOSEN = jit(
    "row = tl.program_id(0).to(INDEX)",
    "tl.store(out_ptr + row * n, 0.0)",
    takes="out_ptr, n, INDEX: tl.constexpr",
)
_CHOICE = run("kernel[(8,)](out, n, INDEX=tl.int64 if out.numel() > 2**31 else tl.int32)")


@kernel_rule(
    "high",
    "correctness",
    bad=(_ROW, _CHOSEN + run("kernel[(8,)](out, n, INDEX=tl.int32)")),
    good=(_ROW.replace("id(0)", "id(0).to(tl.int64)"), _CHOSEN + _CHOICE),
    suspected=Unconfirmed("info", ("offset_overflow",)),
)
def offset_may_overflow(kernel: SourceKernel) -> Iterator[Fault]:
    """An offset is computed in 32 bits from a program id and a stride.

    tl.program_id, and every integer argument below 2**31, are int32: their product wraps around in tensors
    of more than 2**31 elements, and the kernel reads and writes far outside of them. That is a limit, not a
    mistake, unless INPUTS and DIMS declare tensors so large. One finding stands for all such products of a
    kernel.

    Fix: widen the program id first: tl.program_id(0).to(tl.int64) * stride. Where 64 bits cost time, let the
    launch choose: .to(INDEX) with `INDEX: tl.constexpr`, tl.int64 for large tensors alone.
    """
    counts: dict[ast.BinOp, int | None] = {}
    for address, pointer in _addresses(kernel):
        for node in kernel.direct_origins(address):
            if isinstance(node, ast.BinOp) and _may_overflow(node, kernel):
                counts[node] = counts.get(node) or _too_many(pointer, kernel)
    if not counts:
        return
    first, *more = sorted(counts, key=lambda node: (counts[node] is None, node.lineno, node.col_offset))
    also = f" It is one of {len(more) + 1} such products in {kernel.name}." if more else ""
    elements = counts[first]
    yield Fault(
        first,
        f"{ast.unparse(first)} is computed in 32 bits and wraps around once it passes 2**31 - 1.{also}",
        "Convert the program id with .to(tl.int64) before it is multiplied.",
        proof=f"At the declared sizes the tensor has up to {elements:,} elements." if elements else "",
        severity="high" if elements else None,
    )


def _too_many(pointer: str | None, kernel: SourceKernel) -> int | None:
    """How many elements the tensor of a pointer has by INPUTS and DIMS, where 32 bits do not count them."""
    given = ((launch, launch.given.get(pointer or "")) for launch in kernel.launches)
    counts = [most_elements(value, launch) for launch, value in given if value is not None]
    return max((count for count in counts if count and count > _COUNTED), default=None)


def _addresses(kernel: SourceKernel) -> Iterator[tuple[ast.expr, str | None]]:
    """What it accesses, with the pointer, and what it returns to kernels that access it."""
    yield from ((access.address, access.pointer) for access in kernel.accesses)
    returned = [node.value for node in kernel.nodes if isinstance(node, ast.Return) and node.value]
    for caller, call in kernel.callers if not kernel.is_launched else ():
        if any(call in caller.direct_origins(access.address) for access in caller.accesses):
            yield from ((value, None) for value in returned)


def _may_overflow(product: ast.BinOp, kernel: SourceKernel) -> bool:
    around = kernel.parents.get(product)
    # `pid - pid // n * n` takes a product off.
    is_taken_off = (
        isinstance(around, ast.BinOp) and isinstance(around.op, ast.Sub) and around.right is product
    )
    if not isinstance(product.op, ast.Mult) or is_taken_off:
        return False
    sides = (product.left, product.right)
    strides = [side for side in sides if isinstance(side, ast.Name) and side.id in kernel.runtime_parameters]
    if not strides:
        return False
    if len(strides) == 1 and any(_is_narrowed(side, kernel) for side in sides):
        return True
    made_from = kernel.origins(product)
    if any(_is_wide(node, kernel) for node in made_from):
        return False
    has_program = len(strides) == 1 and any(kernel.is_a(node, "program_id") for node in made_from)
    passes_program, passes_wide = _values_passed(made_from, kernel)
    return (has_program or passes_program) and not passes_wide


def _is_narrowed(value: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a place that was loaded, and made 32 bits wide."""
    dtype = _cast_to(kernel.resolved(value), kernel)
    is_narrow = dtype is not None and kernel.scope.path(dtype) == "triton.language.int32"
    return is_narrow and any(kernel.is_loaded(node) for node in kernel.origins(value))


def _cast_to(value: ast.expr, kernel: SourceKernel) -> ast.expr | None:
    """The dtype of `value.to(dtype)` and of tl.cast; None of what is no cast."""
    called = kernel.operation(value)
    return called.option(1, "dtype") if called and called.name in ("to", "cast") else None


def _is_left_to_callers(dtype: ast.expr | None, kernel: SourceKernel) -> bool:
    """Whether it is a tl.constexpr for which not every launch and call is seen to give 32 bits."""
    if not isinstance(dtype, ast.Name) or dtype.id not in kernel.constexprs:
        return False
    launches = [(launch.flow, launch.given.get(dtype.id)) for launch in kernel.launches]
    calls = [(caller, value) for caller, _, value in kernel.passed(dtype.id)]
    paths = [value and flow.scope.path(flow.resolved(value)) for flow, value in (*launches, *calls)]
    return not paths or any(path not in _NARROW for path in paths)


def _values_passed(made_from: frozenset[ast.AST], kernel: SourceKernel) -> tuple[bool, bool]:
    """Whether other kernels of the file pass, for the parameters among some nodes, program ids and int64."""
    names = [node.arg for node in made_from if isinstance(node, ast.arg)]
    given = [
        (node, caller)
        for name in (names if not kernel.is_launched else ())
        for caller, _, value in kernel.passed(name)
        for node in caller.origins(value)
    ]
    is_program_id = any(caller.is_a(node, "program_id") for node, caller in given)
    return is_program_id, any(_is_wide(*passed) for passed in given)


def _is_wide(node: ast.AST, kernel: SourceKernel) -> bool:
    """Whether it says int64, or is of unknown width: what a function or memory gives."""
    match node:
        case ast.arg(annotation=ast.expr() as annotation):
            return "64" in ast.unparse(annotation)
        case ast.Attribute() | ast.Name():
            return kernel.scope.path(node) in _WIDE
        case ast.Constant(value="int64"):
            return True
        case ast.Call():
            path = kernel.scope.path(node.func)
            own = isinstance(node.func, ast.Name) and kernel.scope.holder(node.func.id) is not None
            chosen = _is_left_to_callers(_cast_to(node, kernel), kernel)
            return chosen or kernel.is_loaded(node) or (path is None and own)
    return False
