"""Atomics on floats, and on memory that nothing has set to zero."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import is_loaded
from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.promotion import FLOATS
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    {steps}
"""
BAD = (_KERNEL.format(steps="tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i).to(tl.float32)))"),)
GOOD = (
    _KERNEL.format(
        steps="x = tl.load(x_ptr + i, mask=i < n, other=0)\n    tl.atomic_add(out_ptr, tl.sum(x))"
    ),
)


_FILE = """
INPUTS = {"x": "%s[N]"}
DIMS = {"N": [64]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    %s

def run(x):
    out = torch.zeros(64, dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, BLOCK=64)
    return out
"""
BAD_COMPILED = (_FILE % ("float32", "tl.atomic_add(out_ptr, tl.sum(x))"),)
GOOD_COMPILED = (
    _FILE % ("int32", "tl.atomic_add(out_ptr, tl.sum(x))"),
    _FILE % ("float32", "tl.atomic_max(out_ptr, tl.max(x))"),
)
_FIX = "Where runs must agree, store one partial sum a program and add those in a second kernel."


_COMPILED = remark_check(
    "float_atomics",
    "{kernel} adds floats by atomics, whose order, and so the last digits, differ from run to run.",
    _FIX,
    BAD_COMPILED,
    GOOD_COMPILED,
)


@kernel_rule("info", "numerical stability", BAD, GOOD, also=_COMPILED)
def float_atomics(kernel: SourceKernel) -> Iterator[Fault]:
    """Atomics add floats, in whatever order the programs arrive.

    Rounding depends on the order: two runs on the same input differ in their last digits.

    Fix: where runs must agree, store one partial sum a program, and add those in a second kernel or with
    torch.sum.
    """
    known = values(kernel)
    for access in kernel.accesses:
        if access.name == "atomic_add" and access.value and _is_float(known, access.value):
            where = f"{access.pointer} adds up" if access.pointer else "This adds up"
            yield Fault(
                access.call,
                f"{where} floats in the order in which programs arrive: runs differ in their last digits.",
                _FIX,
            )


def _is_float(known: KernelValues, value: ast.expr) -> bool:
    return known.dtype(value) in FLOATS or any(_fills_with_float(known, term) for term in known.terms(value))


def _fills_with_float(known: KernelValues, term: ast.AST) -> bool:
    """A load whose other value is written as a float."""
    load = known.operation(term)
    other = load.option(2, "other") if load and load.name == "load" else None
    return isinstance(other, ast.Constant) and isinstance(other.value, float)


_EMPTY = frozenset({"empty", "empty_like", "new_empty", "empty_strided"})
_ACCUMULATING = frozenset(f"atomic_{name}" for name in ("add", "max", "min", "and", "or", "xor"))
_HARMLESS = frozenset({"stride", "shape", "size", "numel", "device", "dtype", "ndim", "dim", "is_contiguous"})
_ZERO_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))
"""
ZERO_BAD = (
    _ZERO_KERNEL
    + """
def run(x):
    out = torch.empty(1, device=x.device)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)
    return out
""",
)
ZERO_GOOD = (
    _ZERO_KERNEL
    + """
def run(x):
    out = torch.empty(1, device=x.device)
    out.zero_()
    kernel[(1,)](x, out, x.numel(), B=64)
    return out
""",
    # It stands in for a tensor that is not wanted.
    """
@triton.jit
def kernel(x_ptr, bias_ptr, HAS_BIAS: tl.constexpr):
    if HAS_BIAS:
        tl.atomic_add(bias_ptr, tl.load(x_ptr))

def run(x):
    unused = torch.empty(1, device=x.device)
    kernel[(1,)](x, unused, HAS_BIAS=False)
""",
)


@kernel_rule("critical", "correctness", ZERO_BAD, ZERO_GOOD)
def atomic_into_uninitialised(kernel: SourceKernel) -> Iterator[Fault]:
    """Atomics add to a tensor that torch.empty made.

    torch.empty leaves in memory what was there before, and an atomic only changes what it finds: the sum
    starts at garbage. It looks right as long as the memory happens to be zero.

    Fix: make the tensor with torch.zeros (or torch.full with the smallest value for tl.atomic_max).
    """
    accumulated = _accumulated_names(kernel) if kernel.launches else {}
    if accumulated and _has_hook(kernel):
        return
    for pointer, how in accumulated.items():
        for launch in kernel.launches:
            given = launch.given(kernel).get(pointer)
            if isinstance(given, ast.Name) and (made := _left_empty(given, launch)):
                yield Fault(
                    made,
                    f"{given.id} holds what was in memory before, and {kernel.node.name} changes {pointer} "
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
        if access.pointer and access.pointer not in other and not kernel.flow.conditions(access.call)
    }


def _has_hook(kernel: SourceKernel) -> bool:
    """Whether anything in the file is given a pre_hook, which may fill the tensor before each run."""
    return any(
        isinstance(node, ast.keyword) and node.arg == "pre_hook" for node in ast.walk(kernel.file.tree)
    )


def _names_handed_on(kernel: SourceKernel) -> frozenset[str]:
    """The pointers that it passes to functions of its own file, which may write through them, too."""
    passed = [
        given
        for call in (node for node in kernel.nodes if isinstance(node, ast.Call))
        if isinstance(call.func, ast.Name) and kernel.scope.holder(call.func.id) is not None
        if not (kernel.scope.path(call.func) or "").startswith("triton.language.")
        for given in (*call.args, *(keyword.value for keyword in call.keywords))
    ]
    return kernel.flow.parameters(*passed, stop=lambda node: is_loaded(node, kernel))


def _left_empty(tensor: ast.Name, launch: LaunchSite) -> ast.Call | None:
    """The call that allocates a tensor without filling it, where nothing else uses it before the launch."""
    bindings = launch.scope.bindings.get(tensor.id, ())
    made = bindings[0].value if len(bindings) == 1 else None
    if launch.function is None or not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return None
    if made.func.attr not in _EMPTY or launch.flow.loops(launch.call):
        return None
    before = (
        node
        for top in launch.function.body
        for node in ast.walk(top)
        if isinstance(node, ast.Name)
        and node.id == tensor.id
        and isinstance(node.ctx, ast.Load)
        and (node.lineno, node.col_offset) < (tensor.lineno, tensor.col_offset)
    )
    return made if all(_only_asks(node, launch) for node in before) else None


def _only_asks(tensor: ast.Name, launch: LaunchSite) -> bool:
    """`tensor.shape` and the like."""
    around = launch.flow.parents.get(tensor)
    return isinstance(around, ast.Attribute) and around.attr in _HARMLESS
