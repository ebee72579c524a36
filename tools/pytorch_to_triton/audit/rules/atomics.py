"""Atomics on floats, and on memory that nothing has set to zero."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import has_hook
from pytorch_to_triton.audit.analysis.launched_tensors import allocation
from pytorch_to_triton.audit.examples import LANES, declared, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import FLOATS
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

_TOTAL = "x = tl.load(x_ptr + tl.arange(0, B))"
_FIX = "Where runs must agree, store one partial sum a program and add those in a second kernel."


def _compiled(dtype: str, step: str) -> str:
    out = "torch.zeros(64, dtype=x.dtype, device=x.device)"
    added = jit(_TOTAL, step, takes="x_ptr, out_ptr, B: tl.constexpr")
    return declared(added, "kernel[(1,)](x, out, B=64)", out=out, x=f"{dtype}[N]", N=64)


_COMPILED = remark_check(
    "float_atomics",
    "{kernel} adds floats by atomics, whose order, and so the last digits, differ from run to run.",
    _FIX,
    bad=(_compiled("float32", "tl.atomic_add(out_ptr, tl.sum(x))"),),
    good=(
        _compiled("int32", "tl.atomic_add(out_ptr, tl.sum(x))"),
        _compiled("float32", "tl.atomic_max(out_ptr, tl.max(x))"),
    ),
)


@kernel_rule(
    "info",
    "numerical stability",
    bad=(jit(_TOTAL, "tl.atomic_add(out_ptr, tl.sum(x.to(tl.float32)))"),),
    good=(jit(_TOTAL, "tl.atomic_add(out_ptr, tl.sum(x))"),),
    also=_COMPILED,
)
def float_atomics(kernel: SourceKernel) -> Iterator[Fault]:
    """Atomics add floats, in whatever order the programs arrive.

    Rounding depends on the order: two runs on the same input differ in their last digits.

    Fix: where runs must agree, store one partial sum a program, and add those in a second kernel or with
    torch.sum.
    """
    for access in kernel.accesses:
        if access.name == "atomic_add" and access.value and _is_float(kernel, access.value):
            where = f"{access.pointer} adds up" if access.pointer else "This adds up"
            yield Fault(
                access.call,
                f"{where} floats in the order in which programs arrive: runs differ in their last digits.",
                _FIX,
            )


def _is_float(kernel: SourceKernel, value: ast.expr) -> bool:
    return kernel.dtype(value) in FLOATS or any(
        _fills_with_float(kernel, term) for term in kernel.terms(value)
    )


def _fills_with_float(kernel: SourceKernel, term: ast.AST) -> bool:
    """A load whose other value is written as a float."""
    load = kernel.operation(term)
    other = load.option(2, "other") if load and load.name == "load" else None
    return isinstance(other, ast.Constant) and isinstance(other.value, float)


_EMPTY = frozenset({"empty", "empty_like", "new_empty", "empty_strided"})
_ACCUMULATING = frozenset(f"atomic_{name}" for name in ("add", "max", "min", "and", "or", "xor"))
_HARMLESS = frozenset({"stride", "shape", "size", "numel", "device", "dtype", "ndim", "dim", "is_contiguous"})
_SUM = jit(LANES, "tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))")
_MADE, _LAUNCHED = "out = torch.empty(1, device=x.device)", "kernel[(1,)](x, out, x.numel(), B=64)"


@kernel_rule(
    "critical",
    "correctness",
    bad=(_SUM + run(_MADE, _LAUNCHED, takes="x"),),
    good=(_SUM + run(_MADE, "out.zero_()", _LAUNCHED, takes="x"),),
)
def atomic_into_uninitialised(kernel: SourceKernel) -> Iterator[Fault]:
    """Atomics add to a tensor that torch.empty made.

    torch.empty leaves in memory what was there before, and an atomic only changes what it finds: the sum
    starts at garbage. It looks right as long as the memory happens to be zero.

    Fix: make the tensor with torch.zeros (or torch.full with the smallest value for tl.atomic_max).
    """
    accumulated = _accumulated_names(kernel) if kernel.launches else {}
    if accumulated and has_hook(kernel.file.nodes):
        return
    for pointer, how in accumulated.items():
        for launch in kernel.launches:
            given = launch.given.get(pointer)
            if isinstance(given, ast.Name) and (made := _left_empty(given, launch)):
                yield Fault(
                    made,
                    f"{given.id} holds what was in memory before, and {kernel.name} changes {pointer} "
                    f"only by tl.{how}: the result starts from garbage.",
                    f"Make {given.id} with torch.zeros, or fill it with the value that tl.{how} starts from.",
                )


def _accumulated_names(kernel: SourceKernel) -> dict[str, str]:
    """The pointers that every run changes, by accumulating atomics alone, each with the first one's name."""
    changes = [access for access in kernel.accesses if access.writes]
    other = {access.pointer for access in changes if access.name not in _ACCUMULATING}
    if None in {access.pointer for access in changes}:
        return {}
    other |= _names_handed_on(kernel)
    return {
        access.pointer: access.name
        for access in reversed(changes)
        if access.pointer and access.pointer not in other and not kernel.conditions(access.call)
    }


def _names_handed_on(kernel: SourceKernel) -> frozenset[str]:
    """The pointers that it passes to functions of its own file, which may write through them, too."""
    passed = [
        given
        for call in (node for node in kernel.nodes if isinstance(node, ast.Call))
        if isinstance(call.func, ast.Name) and kernel.scope.holder(call.func.id) is not None
        if not (kernel.scope.path(call.func) or "").startswith("triton.language.")
        for given in (*call.args, *(keyword.value for keyword in call.keywords))
    ]
    return kernel.parameters_in(*passed, stop=kernel.is_loaded)


def _left_empty(tensor: ast.Name, launch: LaunchSite) -> ast.Call | None:
    """The call that allocates a tensor without filling it, where nothing else uses it before the launch."""
    path, made = allocation(tensor.id, launch) or ("", None)
    is_empty = path.rpartition(".")[2] in _EMPTY and launch.function and not launch.flow.loops(launch.call)
    before = (
        launch.flow.parents.get(node)
        for top in launch.flow.body
        for node in ast.walk(top)
        if isinstance(node, ast.Name)
        and node.id == tensor.id
        and isinstance(node.ctx, ast.Load)
        and (node.lineno, node.col_offset) < (tensor.lineno, tensor.col_offset)
    )
    is_untouched = all(isinstance(around, ast.Attribute) and around.attr in _HARMLESS for around in before)
    return made if is_empty and is_untouched else None
