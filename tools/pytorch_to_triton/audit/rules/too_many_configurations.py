"""triton.autotune has very many configurations to try.

Each one is compiled and timed at the first launch with every new key: about half a second for a small
kernel, several for one with tl.dot. Hundreds of configurations hold the first call up for minutes.

Instead, keep those that win on real shapes, or leave unlikely ones out with `prune_configs_by`.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import configuration_count, setting
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "info"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n, M: tl.constexpr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, M)[:, None] * n + tl.arange(0, N)[None, :], n)
"""
_ALL = """[
    triton.Config({"M": m, "N": n}, num_warps=w, num_stages=s)
    for m in (32, 64, 128, 256) for n in [32, 64, 128, 256] for w in [2, 4, 8] for s in [2, 3, 4]
]"""
BAD = (
    f'@triton.autotune({_ALL}, key=["n"]){_KERNEL}',
    f"WARPS = [1, 2, 4, 8, 16]\nCONFIGS = {_ALL.replace('[2, 4, 8]', 'WARPS')}\n"
    f'@triton.autotune(configs=CONFIGS, key=["n"]){_KERNEL}',
)
GOOD = (
    f'@triton.autotune({_ALL}, key=["n"], prune_configs_by={{"early_config_prune": prune}}){_KERNEL}',
    # How many pass the condition is not known.
    f'@triton.autotune({_ALL.replace("[2, 3, 4]", "[2, 3, 4] if m * n < 4096")}, key=["n"]){_KERNEL}',
    f'@triton.autotune([triton.Config({{"M": m, "N": 64}}) for m in (32, 64)], key=["n"]){_KERNEL}',
)
_MANY = 60


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Configurations that literals multiply to more than anyone waits for."""
    count = configuration_count(kernel)
    if count is not None and count > _MANY and setting(kernel, "prune_configs_by") is None:
        yield Fault(
            kernel.decorators["triton.autotune"],
            f"Triton compiles and times {count} configurations of {kernel.node.name} at the first launch of "
            "every key.",
            "Keep those that win on real shapes, or leave unlikely ones out with prune_configs_by.",
        )
