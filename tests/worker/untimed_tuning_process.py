"""Run by test_untimed_tuning.py in a process of its own: what it does to autotuners, as JSON."""

import json
from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner

from pytorch_to_triton.worker.untimed_tuning import UntimedTuning

TRIALS = 2
TOO_LARGE = 4096
BLOCKS = (64, TOO_LARGE, 128)
REMEMBERED = 100.0


class Kernel:
    """In place of a JIT function: adds 1 to each element of y, and notes the settings of each run."""

    __name__ = "kernel"

    def __init__(self) -> None:
        self.fn, self.arg_names, self.runs = named, ["y", "n", "BLOCK"], []

    def run(self, y: torch.Tensor, n: int, BLOCK: int, num_warps: int, **options: Any) -> None:
        if BLOCK == TOO_LARGE:
            raise CompileTimeAssertionFailure(None, None, "too large")
        self.runs.append([BLOCK, num_warps])
        y.add_(1)


def named() -> None: ...


def configs(*blocks: int, **options: Any) -> list[Any]:
    return [triton.Config({"BLOCK": block}, **options) for block in blocks]


def autotuned(offered: list[Any], **options: Any) -> Autotuner:
    kernel = Kernel()
    options = {"reset_to_zero": None, "restore_value": None, **options}
    return Autotuner(kernel, kernel.arg_names, offered, ["n"], **options)


def runs(tuner: Autotuner, n: int) -> list[list[int]]:
    """Block and warps of each run that one launch leads to."""
    tuner.fn.runs.clear()
    tuner.run(torch.zeros(3), n, grid=(1,), warmup=False)
    return list(tuner.fn.runs)


def taken(configuration: int, tuner: Autotuner) -> int:
    """The block of the launch that counts, in a case with this configuration."""
    tuning.begin(configuration, undo_trials=False)
    return runs(tuner, 1)[-1][0]


def value_after(launches: int = 1, *, undo_trials: bool = False, **options: Any) -> float:
    """What a launch leaves of REMEMBERED, after launches at the same key."""
    tuner = autotuned(configs(64, 128), **options)
    tuning.begin(0, undo_trials=undo_trials)
    for _ in range(launches):
        y = torch.full((3,), REMEMBERED)
        tuner.run(y, 1, grid=(1,), warmup=False)
    return y[0].item()


def zeroed(kwargs: dict[str, Any], **when: bool) -> None:
    kwargs["y"].zero_()


def leaving(*blocks: int) -> Callable[..., list[Any]]:
    """An early_config_prune."""
    return lambda offered, named, **kwargs: [c for c in offered if c.kwargs["BLOCK"] in blocks]


tuning = UntimedTuning(TRIALS)
tuner = autotuned(configs(*BLOCKS))
found: dict[str, Any] = {"of the first": [runs(tuner, 1), runs(tuner, 1), runs(tuner, 2)]}
tuning.begin(1, undo_trials=False)
found["of the refused"] = [runs(tuner, 1), runs(tuner, 1), runs(tuner, 2)]
found["reported"] = [vars(kernel) for kernel in tuning.taken()]
found["counted past the last"] = taken(3, tuner)
pruned = {"early_config_prune": leaving(32, 128)}
found["of those left"] = [
    taken(n, autotuned(configs(32, 64, 128), prune_configs_by=pruned)) for n in range(3)
]
modelled = {"perf_model": lambda BLOCK, **kwargs: -BLOCK, "top_k": 2}
found["of the best by a model"] = [
    taken(n, autotuned(configs(32, 64, 128), prune_configs_by=modelled)) for n in range(3)
]
warps = autotuned([*configs(32, num_warps=1), *configs(32, num_warps=2), *configs(64, num_warps=1)])
tuning.begin(1, undo_trials=False)
found["of other warps"] = runs(warps, 1)[-1]
found["cached on disk"] = taken(1, autotuned(configs(32, 64), cache_results=True))
found["left"] = {
    "as it is": value_after(),
    "known key": value_after(2),
    "reset_to_zero": value_after(reset_to_zero=["y"]),
    "reset_to_zero, known key": value_after(2, reset_to_zero=["y"]),
    "restore_value": value_after(restore_value=["y"]),
    "pre_hook": value_after(pre_hook=zeroed),
    "undone": value_after(undo_trials=True),
}
tuner = autotuned(configs(64, 128))
tuning.begin(0, undo_trials=True)
runs(tuner, 1)
found["unsettled"] = tuning.taken()[0].unsettled
print(json.dumps(found))
