"""Each pointer that is accumulated into, or read and then written at the same place."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.configurations import configuration_count, names, setting
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_CONFIGS = '[triton.Config({"B": b}) for b in (64, 128)], key=["n"]'
_SCALE = """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, 2 * x, mask=i < n)
"""
_SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))
"""
BAD = (f"@triton.autotune({_CONFIGS})\n{_SCALE}",)
GOOD = (
    f'@triton.autotune({_CONFIGS}, reset_to_zero=["out_ptr"])\n{_SUM}',
    f"@triton.autotune({_CONFIGS}, **options)\n{_SUM}",
)


@kernel_rule("critical", "correctness", BAD, GOOD)
def autotune_without_reset(kernel: SourceKernel) -> Iterator[Fault]:
    """An autotuned kernel changes memory that it also reads, and nothing restores it between trials.

    Triton times every configuration on the caller's own tensors, dozens of times each. A kernel that adds
    to its output, or updates a tensor in place, does so with every trial: the first call for each key
    returns nonsense.

    Fix: name the pointer in triton.autotune's reset_to_zero (a sum that starts at zero) or restore_value
    (an update in place), or let the kernel write to another tensor.
    """
    is_choice = (configuration_count(kernel) or 0) > 1
    if not is_choice and not isinstance(setting(kernel, "configs"), ast.ListComp):
        return
    given = (setting(kernel, option) for option in ("reset_to_zero", "restore_value"))
    lists = [names(one) for one in given if one is not None]
    if None in lists or _may_restore(kernel):
        return
    handled = {name for one in lists for name in one or ()}
    for access, what in _changed(kernel):
        if access.pointer and access.pointer not in handled:
            handled.add(access.pointer)
            option = "reset_to_zero" if what == "adds to" else "restore_value"
            yield Fault(
                access.call,
                f"{kernel.node.name} {what} {access.pointer}, and autotuning runs it many times on the "
                "caller's tensor: the first call leaves wrong values.",
                f'Add {option}=["{access.pointer}"] to triton.autotune, or write to another tensor.',
            )


def _may_restore(kernel: SourceKernel) -> bool:
    """Whether a pre_hook of the file, or what `**` hides, may restore what it likes."""
    autotune = kernel.decorators["triton.autotune"]
    hidden = isinstance(autotune, ast.Call) and any(keyword.arg is None for keyword in autotune.keywords)
    return hidden or any(isinstance(one, ast.keyword) and one.arg == "pre_hook" for one in kernel.file.nodes)


def _changed(kernel: SourceKernel) -> Iterator[tuple[KernelAccess, str]]:
    """Each access that changes what it finds, with a verb: an atomic sum, or a store after a load."""
    same = values(kernel).same
    stored = {access.pointer for access in kernel.accesses if access.name == "store"}
    for access in kernel.accesses:
        if access.name == "atomic_add" and access.pointer not in stored:
            yield access, "adds to"
        elif access.name == "store" and any(
            one.name == "load" and one.pointer == access.pointer and same(one.address, access.address)
            for one in kernel.accesses
            if _end(one.call) < _end(access.call)
        ):
            yield access, "updates"


def _end(call: ast.Call) -> tuple[int, int]:
    return call.end_lineno or 0, call.end_col_offset or 0
