"""How many configurations an autotuner chooses from."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import configuration_count, setting
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel


def _tuned(configs: str, more: str = "") -> str:
    kernel = (
        "\n@triton.jit\ndef kernel(x_ptr, n, B: tl.constexpr):\n    tl.store(x_ptr + tl.arange(0, B), n)\n"
    )
    return f'@triton.autotune({configs}, key=["n"]{more}){kernel}'


_MANY = 60
_GRID = '[triton.Config({"B": b}, w, s) for b in [32, 64, 128] for w in WARPS for s in STAGES]'
_ALL = "WARPS = [1, 2, 4, 8, 16]\nSTAGES = (1, 2, 3, 4, 5)\nCONFIGS = " + _GRID + "\n"


@kernel_rule(
    "low",
    "performance",
    bad=(_tuned('[triton.Config({"B": 64})]'), _tuned('[triton.Config({"B": b}) for b in (64,)]')),
    good=(
        _tuned('[triton.Config({"B": 64})] + [triton.Config({"B": 128})]'),
        _tuned('[triton.Config({"B": b}) for b in SIZES]'),
        # The configuration resets the output before each launch.
        _tuned('[triton.Config({"B": 64}, pre_hook=reset)]'),
    ),
)
def single_configuration(kernel: SourceKernel) -> Iterator[Fault]:
    """triton.autotune is given just one configuration.

    There is nothing to choose, so Triton times nothing; only the wrapper's cost at each launch is left, and
    the block sizes are hidden from the code that computes the grid.

    Fix: pass the block sizes at the launch, or give triton.autotune several configurations.
    """
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


@kernel_rule(
    "info",
    "performance",
    bad=(_ALL + _tuned("CONFIGS"),),
    good=(
        _ALL + _tuned("CONFIGS", ', prune_configs_by={"early_config_prune": prune}'),
        # How many pass the condition is not known.
        _ALL.replace("in STAGES]", "in STAGES if w > s]") + _tuned("CONFIGS"),
    ),
)
def too_many_configurations(kernel: SourceKernel) -> Iterator[Fault]:
    """triton.autotune has very many configurations to try.

    Each one is compiled and timed at the first launch with every new key: about half a second for a small
    kernel, several for one with tl.dot. Hundreds of configurations delay the first call by minutes.

    Fix: keep those that win on real shapes, or drop unlikely ones with `prune_configs_by`.
    """
    count = configuration_count(kernel)
    if count is not None and count > _MANY and setting(kernel, "prune_configs_by") is None:
        yield Fault(
            kernel.decorators["triton.autotune"],
            f"Triton compiles and times {count} configurations of {kernel.node.name} at the first launch of "
            "every key.",
            "Keep those that win on real shapes, or drop unlikely ones with prune_configs_by.",
        )
