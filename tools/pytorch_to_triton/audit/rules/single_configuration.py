"""triton.autotune is given just one configuration.

There is nothing to choose, so Triton times nothing; only the wrapper's cost at each launch is left, and the
block sizes are hidden from the code that computes the grid.

Instead, pass the block sizes at the launch, or give triton.autotune several configurations.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import configuration_count, setting
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "low"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)
"""
BAD = (
    f'@triton.autotune(configs=[triton.Config({{"BLOCK": 64}}, num_warps=2)], key=["n"]){_KERNEL}',
    f'CONFIGS = [triton.Config({{"BLOCK": 64}})]\n\n@triton.autotune(CONFIGS, ["n"]){_KERNEL}',
    f'@triton.autotune([triton.Config({{"BLOCK": b}}) for b in (64,)], key=["n"]){_KERNEL}',
)
GOOD = (
    f'@triton.autotune([triton.Config({{"BLOCK": 64}}), triton.Config({{"BLOCK": 128}})], ["n"]){_KERNEL}',
    f'@triton.autotune([triton.Config({{"BLOCK": b}}) for b in SIZES], key=["n"]){_KERNEL}',
    f"""
CONFIGS = [triton.Config({{"BLOCK": 64}})]
CONFIGS.append(triton.Config({{"BLOCK": 128}}))

@triton.autotune(CONFIGS, key=["n"]){_KERNEL}
""",
    f"""
CONFIGS = [triton.Config({{"BLOCK": 64}})]
CONFIGS += [triton.Config({{"BLOCK": 128}})]

@triton.autotune(CONFIGS, key=["n"]){_KERNEL}
""",
    # The configuration resets the output before each launch.
    f'@triton.autotune([triton.Config({{"BLOCK": 64}}, pre_hook=reset)], key=["n"]){_KERNEL}',
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Lists of one configuration, spelled out; a pre_hook is a reason for one."""
    configs = setting(kernel, "configs")
    if configs is None or configuration_count(kernel) != 1 or _has_hook(configs):
        return
    yield Fault(
        kernel.decorators["triton.autotune"],
        f"triton.autotune has one configuration for {kernel.node.name}, so it chooses nothing.",
        "Pass these values at the launch, or add configurations to choose from.",
    )


def _has_hook(configs: ast.expr) -> bool:
    return any(isinstance(node, ast.keyword) and node.arg == "pre_hook" for node in ast.walk(configs))
