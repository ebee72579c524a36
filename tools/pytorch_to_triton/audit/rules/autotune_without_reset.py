"""Each pointer that is accumulated into, or read and then written at the same place."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.call_arguments import argument, pointer_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

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
    autotune = kernel.decorators.get("triton.autotune")
    if not isinstance(autotune, ast.Call) or not _is_timed(autotune, kernel) or _has_hook(kernel):
        return
    handled = _restored(autotune)
    if handled is None:
        return
    for name, call, what in _changed(kernel):
        if name not in handled:
            handled.add(name)
            setting = "reset_to_zero" if what == "adds to" else "restore_value"
            yield Fault(
                call,
                f"{kernel.node.name} {what} {name}, and autotuning runs it many times on the caller's "
                "tensor: the first call leaves wrong values.",
                f'Add {setting}=["{name}"] to triton.autotune, or write to another tensor.',
            )


def _restored(autotune: ast.Call) -> set[str] | None:
    """The pointers that are reset or restored; None where that is not spelled out."""
    restored: set[str] = set()
    for keyword in autotune.keywords:
        if keyword.arg not in (None, "reset_to_zero", "restore_value"):
            continue
        match keyword.value:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if keyword.arg and all(
                isinstance(element, ast.Constant) for element in elements
            ):
                restored |= {ast.literal_eval(element) for element in elements}
            case _:
                return None
    return restored


def _is_timed(autotune: ast.Call, kernel: SourceKernel) -> bool:
    """Whether there is certainly more than one configuration to choose from."""
    configs = argument(autotune, 0, "configs")
    if isinstance(configs, ast.Name) and (binding := kernel.file.scope.find(configs.id)):
        configs = binding.value
    match configs:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return len(elements) > 1
    return isinstance(configs, ast.ListComp)


def _has_hook(kernel: SourceKernel) -> bool:
    """Whether anything in the file is given a pre_hook, which may restore what it likes."""
    return any(isinstance(node, ast.keyword) and node.arg == "pre_hook" for node in kernel.file.nodes)


def _changed(kernel: SourceKernel) -> Iterator[tuple[str, ast.Call, str]]:
    """Parameter, call and verb of each change that depends on what was there."""
    loaded: set[str] = set()
    calls = sorted(kernel.calls(), key=lambda call: (call[1].end_lineno or 0, call[1].end_col_offset or 0))
    stored = {_place(kernel, call)[0] for path, call in calls if path == "triton.language.store"}
    for path, call in calls:
        name, place = _place(kernel, call)
        if name is None:
            continue
        match path:
            case "triton.language.load":
                loaded.add(place)
            case "triton.language.store" if place in loaded:
                yield name, call, "updates"
            case "triton.language.atomic_add" if name not in stored:
                yield name, call, "adds to"


def _place(kernel: SourceKernel, call: ast.Call) -> tuple[str | None, str]:
    """The parameter that a call's address starts from, and the address; equal ones are the same place.

    None for the parameter where the address is not certain.
    """
    address = argument(call, 0, "pointer")
    if address is None:
        return None, ""
    start = pointer_of(address, kernel.scope, kernel.flow)
    names = [node.id for node in ast.walk(address) if isinstance(node, ast.Name)]
    if start is None or not all(kernel.scope.find(name) for name in (start.arg, *names)):
        return None, ""
    return start.arg, ast.dump(address)
