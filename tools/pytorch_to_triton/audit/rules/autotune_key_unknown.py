"""The key of triton.autotune names something that is no parameter of the kernel.

Triton leaves such a name out without a word. The configuration that won for the first size is then used for
all.

Instead, name parameters of the kernel, spelled as in its definition.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from pytorch_to_triton.audit.analysis.configurations import names, setting
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "medium"
CATEGORY = "performance"
_CONFIGS = '[triton.Config({"BLOCK": b}) for b in (64, 128)]'
_KERNEL = """
@triton.jit
def kernel(x_ptr, n_rows, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n_rows)
"""
BAD = (
    f'@triton.autotune({_CONFIGS}, key=["n_row"]){_KERNEL}',
    f'@triton.autotune(configs={_CONFIGS}, key=("n_rows", "N")){_KERNEL}',
    f'KEY = ["rows"]\n\n@triton.autotune({_CONFIGS}, KEY){_KERNEL}',
)
GOOD = (
    f'@triton.autotune({_CONFIGS}, key=["n_rows"]){_KERNEL}',
    f"@triton.autotune({_CONFIGS}, key=KEY){_KERNEL}",
    f'@triton.autotune({_CONFIGS}, key=["n_rows", *MORE]){_KERNEL}',
    f'@other\n@triton.autotune({_CONFIGS}, key=["N"])\n@wraps_with_other_parameters{_KERNEL}',
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Names in a literal key, of kernels whose decorators are all known."""
    parameters = kernel.parameters
    for name, place in (names(setting(kernel, "key")) or {}).items() if kernel.plain else ():
        if name not in parameters:
            close = get_close_matches(name, parameters, n=1)
            yield Fault(
                place,
                f"{kernel.node.name} has no parameter {name}: the autotuner ignores it and does not "
                "tune anew when it changes.",
                f"Write {close[0]}."
                if close
                else "Name the parameters that decide which configuration is best.",
                f'"{close[0]}"' if close else "",
            )
