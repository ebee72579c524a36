"""Autotuned kernels take the configuration that they are told to, and nothing is timed.

All else is Triton's own: what pruning leaves, the hooks around each run on trial, what they reset and
restore, and that a known key is not tuned again. So a kernel that changes what it finds is as wrong here as
after a real tuning. Triton 3.6 to 3.9 are alike in this, except where pruning leaves one configuration: from
3.8 on it is taken without a trial.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import InterpreterError

from .runtime import interpreting
from .wire.observation import TunedKernel

PRUNE, BENCH = Autotuner.prune_configs, Autotuner._bench
Tensors = dict[str, torch.Tensor]
QUANTILES = 3
"""A benchmark answers with a list of this many figures: the autotuners compare such lists."""


class StaticAssertionFailed(AssertionError):
    """tl.static_assert under the interpreter; an autotuner leaves out configurations that it refuses."""


class UntimedTuning:
    """What is put in the place of the autotuners' benchmarks, for the rest of this process.

    Until `begin` says otherwise, all take their first configuration. Before the launch that counts, a kernel
    runs on trial `trials` times with the same configuration. `spare` is called where that launch follows its
    last trial with nothing in between.
    """

    def __init__(self, trials: int, spare: Callable[[], None] = lambda: None) -> None:
        self._trials, self._spare = trials, spare
        self._undo_trials = False
        self._configuration = 0
        self._decided = False
        self._tuned: dict[Autotuner, list[tuple[Tensors, Tensors]]] = {}
        """Since the last `begin`; with the arguments after the first and the second run of undone trials."""
        tuning = self
        Autotuner.check_disk_cache = tuned_without_cache
        Autotuner.prune_configs = lambda tuner, kwargs: tuning.ordered(tuner, kwargs)
        Autotuner._bench = lambda tuner, *args, config, **meta: tuning.bench(tuner, args, config, meta)

    def begin(self, configuration: int, *, undo_trials: bool) -> None:
        """From here on all kernels are tuned afresh, and take this configuration.

        It is counted from the first one left after pruning, modulo their number. With `undo_trials` a trial
        leaves no trace but what `taken` says of it.
        """
        for tuner in self._tuned:
            chosen_configs(tuner).clear()
        self._tuned.clear()
        self._configuration, self._undo_trials = configuration, undo_trials

    def taken(self) -> list[TunedKernel]:
        """What was tuned since then."""
        return [
            TunedKernel(
                kernel=tuner.base_fn.__name__,
                configuration=name,
                of=of,
                unsettled=tuple(sorted(set().union(*(differing_tensors(*runs) for runs in undone)))),
            )
            for tuner, undone in self._tuned.items()
            if (of := variants(tuner)) > 1
            for name in dict.fromkeys(config_text(tuner, config) for config in chosen_configs(tuner).values())
        ]

    def ordered(self, tuner: Autotuner, kwargs: dict[str, Any]) -> list[Any]:
        """In the place of prune_configs: what it leaves, the configuration to take first."""
        left = by_parameters(tuner, PRUNE(tuner, kwargs))
        self._tuned.setdefault(tuner, [])
        self._decided = False
        start = self._configuration % max(len(left), 1)
        return left[start:] + left[:start]

    def bench(
        self, tuner: Autotuner, args: Sequence[Any], config: Any, meta: dict[str, Any]
    ) -> Sequence[float]:
        """In the place of _bench: the first that can be run wins, and those after it are not tried."""
        times: Sequence[float] = [math.inf] * QUANTILES
        if not self._decided:
            arguments = {**tuner.nargs, **meta}
            vars(tuner)["do_bench"] = lambda run, **_: self.run_on_trial(tuner, run, arguments, config)
            try:
                times = BENCH(tuner, *args, config=config, **meta)
            except InterpreterError as error:
                if not isinstance(error.__cause__, StaticAssertionFailed):
                    raise
            self._decided = math.isfinite(times[0])
        return times

    def run_on_trial(
        self, tuner: Autotuner, run: Callable[[], Any], arguments: Mapping[str, Any], config: Any
    ) -> list[float]:
        """In the place of do_bench."""
        if self._undo_trials:
            self._tuned[tuner].append(run_twice(run, arguments))
        else:
            for _trial in range(self._trials):
                run()
            if not has_hooks(tuner, config):
                self._spare()
        return [0.0] * QUANTILES


HOOKS = ("reset_to_zero", "restore_value", "user_defined_pre_hook", "user_defined_post_hook")


def has_hooks(tuner: Autotuner, config: Any) -> bool:
    """Whether anything is done around the kernel's runs; so it is where a library's tuner does not say."""
    return config.pre_hook is not None or any(getattr(tuner, name, True) for name in HOOKS)


def tuned_without_cache(tuner: Autotuner, key: Any, configs: Any, bench: Callable[[], Any]) -> bool:
    """In the place of check_disk_cache: what is chosen here is no measurement, and is not kept on disk."""
    bench()
    return False


def run_twice(run: Callable[[], Any], arguments: Mapping[str, Any]) -> tuple[Tensors, Tensors]:
    """Copies of the tensors after each run. At the end all are as before.

    Of torch's operators only those are used that a kernel's own hooks may use: this call is observed.
    """
    tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    before = copies(tensors)
    run()
    first = copies(tensors)
    run()
    second = copies(tensors)
    with torch.no_grad():
        for name, tensor in tensors.items():
            if not is_expanded(tensor):
                tensor.copy_(before[name])
    return first, second


def is_expanded(tensor: torch.Tensor) -> bool:
    """Whether elements share their memory: no kernel writes to such a tensor, and no operator may."""
    return any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))


def copies(tensors: Tensors) -> Tensors:
    return {name: t.detach().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}


def differing_tensors(left: Tensors, right: Tensors) -> set[str]:
    """Names of the tensors that differ in a bit; NaN equals itself."""
    return {
        name
        for name, tensor in left.items()
        if not tensor.flatten().view(torch.uint8).equal(right[name].flatten().view(torch.uint8))
    }


def chosen_configs(tuner: Autotuner) -> dict[Any, Any]:
    """The tuner's configurations by key; none where a library keeps them its own way."""
    return tuner.cache if isinstance(tuner.cache, dict) else {}


def by_parameters(tuner: Autotuner, configs: Iterable[Any]) -> list[Any]:
    """Those first that give the kernel other parameters: the rest are compiled otherwise, no more."""
    first: dict[Any, Any] = {}
    for config in configs:
        first.setdefault((*parameters(tuner, config).items(), config.pre_hook), config)
    return [*dict.fromkeys((*first.values(), *configs))]


def parameters(tuner: Autotuner, config: Any) -> dict[str, Any]:
    """What the kernel itself is given of a configuration."""
    return {name: value for name, value in config.all_kwargs().items() if name in tuner.arg_names}


def variants(tuner: Autotuner) -> int:
    """How many of its configurations differ in this process: the interpreter knows no warps and no stages."""
    return len({config_text(tuner, config) for config in tuner.configs})


def config_text(tuner: Autotuner, config: Any) -> str:
    """What tells a configuration from the tuner's others in this process."""
    return configuration_name(parameters(tuner, config) if interpreting() else config.all_kwargs())


def configuration_name(settings: Mapping[str, Any]) -> str:
    """`BLOCK_M=64 num_warps=4 num_stages=3`; a cluster of one is left out."""
    return " ".join(f"{name}={value}" for name, value in settings.items() if (name, value) != ("num_ctas", 1))
