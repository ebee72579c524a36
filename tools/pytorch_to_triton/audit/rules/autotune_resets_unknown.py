"""reset_to_zero or restore_value of triton.autotune names something that is no parameter of the kernel.

The autotuner looks the tensor up by that name before each trial, and the first launch raises KeyError.

Instead, name pointer parameters of the kernel, spelled as in its definition.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from pytorch_to_triton.audit.analysis.configurations import configuration_count, names, setting
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_CONFIGS = '[triton.Config({"BLOCK": b}) for b in (64, 128)], key=["n"]'
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK))))
"""
BAD = (
    f'@triton.autotune({_CONFIGS}, reset_to_zero=["out"]){_KERNEL}',
    f'@triton.autotune({_CONFIGS}, restore_value=("x_ptr", "y_ptr")){_KERNEL}',
)
GOOD = (
    f'@triton.autotune({_CONFIGS}, reset_to_zero=["out_ptr"]){_KERNEL}',
    f"@triton.autotune({_CONFIGS}, reset_to_zero=NAMES){_KERNEL}",
    f'@triton.autotune({_CONFIGS}, pre_hook=zero, reset_to_zero=["out"]){_KERNEL}',
    # One configuration is never tried, so nothing is reset.
    f'@triton.autotune([triton.Config({{"BLOCK": 64}})], key=["n"], reset_to_zero=["out"]){_KERNEL}',
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Names in literal lists, where Triton itself does the resetting."""
    is_tried = (configuration_count(kernel) or 0) > 1
    if not kernel.plain or not is_tried or setting(kernel, "pre_hook") is not None:
        return
    for option in ("reset_to_zero", "restore_value"):
        for name, place in (names(setting(kernel, option)) or {}).items():
            if name not in kernel.parameters:
                close = get_close_matches(name, kernel.parameters, n=1)
                yield Fault(
                    place,
                    f"{kernel.node.name} has no parameter {name}: the first launch raises KeyError.",
                    f"Write {close[0]}." if close else "Name the pointer that the kernel changes.",
                    f'"{close[0]}"' if close else "",
                )
