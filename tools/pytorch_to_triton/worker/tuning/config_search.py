"""The search for the fastest configuration: successive halving, then neighbours of the best.

Nothing here knows a device: what compiles, agrees and takes how long is asked of a `SearchBench`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from .tuning_config import DeviceLimits, KernelResources, TuningConfig, neighbours, over_budget

FIRST_CALLS = 5
"""Of each configuration before the slower half is left behind; doubled for each half that remains."""
COMPILED_AT_ONCE = 16
"""Configurations between two checks of the clock; all of them may compile in parallel."""
TOO_LATE = "time ran out before it was compiled"
LEAST_GAIN = 0.01
"""A neighbour replaces the best only where it is faster by this share; less may be chance."""


class SearchBench(Protocol):
    """One kernel at one key, where it can be tried."""

    @property
    def limits(self) -> DeviceLimits:
        """What the device grants."""

    def compiled(self, configs: Sequence[TuningConfig]) -> dict[TuningConfig, KernelResources | str]:
        """What each takes of the device, without running it; text: why it cannot be compiled."""

    def disagreement(self, config: TuningConfig) -> str:
        """What is wrong with its results, or with running it at all; empty where nothing is."""

    def round(self, configs: Sequence[TuningConfig]) -> list[float]:
        """One call of each, each with fresh inputs and a cold cache; milliseconds."""


class SearchLog(Protocol):
    """Receives what was found, as it is found."""

    def dropped(self, config: TuningConfig, why: str) -> None:
        """It is out without a time."""

    def timed(self, config: TuningConfig, median_ms: float, calls: int) -> None:
        """What a race found for it so far."""

    def best(self, config: TuningConfig, median_ms: float) -> None:
        """The fastest up to now."""


@dataclass(frozen=True)
class Won:
    """How a race ended."""

    config: TuningConfig
    median_ms: float
    champion_ms: float
    """The champion's median in the same rounds; without one the winner's own."""


@dataclass
class ConfigSearch:
    """One search; whatever was tried once is not tried again."""

    bench: SearchBench
    log: SearchLog
    late: Callable[[], bool]
    """Whether the time is up; what is being timed then is still compared."""
    suits: Callable[[Sequence[TuningConfig]], dict[TuningConfig, str]]
    """Why each config that does not suit the problem is left out."""
    tried: set[TuningConfig] = field(default_factory=set)

    def run(self, configs: Iterable[TuningConfig]) -> TuningConfig | None:
        """The fastest found until it is late or no neighbour is faster; None where no config works."""
        ready = self.admitted(configs)
        if not ready:
            return None
        won = self.race(ready)
        self.log.best(won.config, won.median_ms)
        best = won.config
        while not self.late() and (fresh := self.admitted(neighbours(best))):
            won = self.race(fresh, champion=best)
            if won.median_ms > won.champion_ms * (1 - LEAST_GAIN):
                break
            best = won.config
            self.log.best(best, won.median_ms)
        return best

    def admitted(self, configs: Iterable[TuningConfig]) -> list[TuningConfig]:
        """Those worth timing: new, suited to the problem, within the device's limits, and right."""
        fresh = [c for c in dict.fromkeys(configs) if c not in self.tried]
        self.tried.update(fresh)
        suited = self.without(fresh, self.suits(fresh))
        resources = self.compiled(suited)
        broken = {c: why for c, why in resources.items() if isinstance(why, str)}
        sound = {c: r for c, r in resources.items() if isinstance(r, KernelResources)}
        left = self.without(suited, {**broken, **over_budget(sound, self.bench.limits)})
        return [c for c in left if self.agrees(c)]

    def compiled(self, configs: Sequence[TuningConfig]) -> dict[TuningConfig, KernelResources | str]:
        """What each takes of the device; of those that there is no time to compile, that."""
        resources: dict[TuningConfig, KernelResources | str] = {}
        for first in range(0, len(configs), COMPILED_AT_ONCE):
            batch = configs[first : first + COMPILED_AT_ONCE]
            in_time = not (resources and self.late())
            resources |= self.bench.compiled(batch) if in_time else dict.fromkeys(batch, TOO_LATE)
        return resources

    def without(
        self, configs: Sequence[TuningConfig], dropped: dict[TuningConfig, str]
    ) -> list[TuningConfig]:
        """The configs but those dropped, which go to the log."""
        for config, why in dropped.items():
            self.log.dropped(config, why)
        return [c for c in configs if c not in dropped]

    def agrees(self, config: TuningConfig) -> bool:
        """Whether its results are the expected ones; else it goes to the log."""
        why = self.bench.disagreement(config)
        if why:
            self.log.dropped(config, why)
        return not why

    def race(self, configs: Sequence[TuningConfig], champion: TuningConfig | None = None) -> Won:
        """The fastest: each half that is left gets twice as many calls as the last.

        A `champion` takes part in every round and is not among those that may win.
        """
        beside = [champion] if champion else []
        samples: dict[TuningConfig, list[float]] = {c: [] for c in (*beside, *configs)}
        left, calls = [*configs], FIRST_CALLS
        while True:
            self.sample(samples, [*beside, *left], calls)
            left.sort(key=lambda c: median(samples[c]))
            for config in left:
                self.log.timed(config, median(samples[config]), len(samples[config]))
            if len(left) == 1 or self.late():
                first, measure = left[0], champion or left[0]
                return Won(first, median(samples[first]), median(samples[measure]))
            if not champion:
                self.log.best(left[0], median(samples[left[0]]))
            left, calls = left[: len(left) // 2], 2 * calls

    def sample(
        self, samples: dict[TuningConfig, list[float]], contestants: Sequence[TuningConfig], calls: int
    ) -> None:
        """That many rounds; at least one, however late it is."""
        for _ in range(calls):
            for config, ms in zip(contestants, self.bench.round(contestants), strict=True):
                samples[config].append(ms)
            if self.late():
                return
