"""Autotuned kernels under validation: each new key takes the next configuration, and nothing is timed.

So all configurations are compared with the truth, not only those that happen to be fastest here, and a
validation does not wait for benchmarks. As in a real tuning the kernel runs on trial before the run that
counts: one that adds to what it finds is still detected.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from triton.runtime.autotuner import Autotuner

from .tuning_config import TuningConfig

TRIAL_RUNS = 2
QUANTILES = 3
"""A benchmark answers with a list of this many figures: the autotuners compare such lists."""


class Rotation:
    """What is put in the place of the autotuners' benchmarks, for the rest of this process.

    `start` is the configuration of the first key of each kernel: processes that share the cases differ in it.
    """

    def __init__(self, start: int) -> None:
        self._first = start
        self._next: dict[int, int] = {}
        self._tried: dict[str, dict[str, Any]] = {}
        self._decided = False
        self._prune = Autotuner.prune_configs
        self._bench = Autotuner._bench
        rotation = self
        Autotuner.do_bench = property(lambda tuner: run_on_trial)
        Autotuner.check_disk_cache = run_without_cache
        Autotuner.prune_configs = lambda tuner, kwargs: rotation.rotated(tuner, kwargs)
        Autotuner._bench = lambda tuner, *args, config, **meta: rotation.bench(tuner, args, config, meta)

    def summary(self) -> list[dict[str, Any]]:
        """By kernel, of how many configurations (`of`) which ones were taken (`tried`)."""
        return [{"kernel": name, **found} for name, found in self._tried.items()]

    def rotated(self, tuner: Autotuner, kwargs: dict[str, Any]) -> list[Any]:
        """The configurations that are left after the author's pruning, the next one first."""
        left = list(self._prune(tuner, kwargs))
        start = self._next.get(id(tuner), self._first) % max(len(left), 1)
        self._next[id(tuner)] = start + 1
        self._decided = False
        return left[start:] + left[:start]

    def bench(
        self, tuner: Autotuner, args: Sequence[Any], config: Any, meta: dict[str, Any]
    ) -> Sequence[float]:
        """The first one that the device can run wins; those after it are left out."""
        if self._decided:
            return [math.inf] * QUANTILES
        times: Sequence[float] = self._bench(tuner, *args, config=config, **meta)
        if math.isfinite(times[0]):
            self._decided = True
            known = self._tried.setdefault(tuner.base_fn.__name__, {"of": len(tuner.configs), "tried": []})
            if (taken := TuningConfig.of(config).as_json) not in known["tried"]:
                known["tried"].append(taken)
        return times


def run_on_trial(kernel_call: Callable[[], Any], *_: Any, **__: Any) -> list[float]:
    """In the place of do_bench."""
    for _trial in range(TRIAL_RUNS):
        kernel_call()
    return [0.0] * QUANTILES


def run_without_cache(tuner: Autotuner, key: Any, configs: Any, bench: Callable[[], Any]) -> bool:
    """What is chosen here is no measurement: nothing of it is kept on disk."""
    bench()
    return False
