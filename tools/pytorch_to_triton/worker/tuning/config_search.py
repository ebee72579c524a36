"""The search for the fastest configuration: successive halving, then neighbours of the best."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import triton

from .tuning_config import DeviceLimits, KernelResources, neighbours, over_budget

FIRST_CALLS = 5
"""Of each configuration before the slower half is left behind; doubled for each half that remains."""
COMPILED_AT_ONCE = 16
"""Configurations between two checks of the clock; all of them may compile in parallel."""
TOO_LATE = "time ran out before it was compiled"
LEAST_GAIN = 0.01
"""A neighbour replaces the best only where it is faster by this share; less may be chance."""


@dataclass(frozen=True)
class Won:
    """How a race ended."""

    config: triton.Config
    median_ms: float
    champion_ms: float
    """The champion's median in the same rounds; without one the winner's own."""


class ConfigSearch(ABC):
    """One search for one kernel at one key; whatever was tried once is not tried again.

    It knows no device and no clock: subclasses do.
    """

    limits: DeviceLimits
    """What the device grants."""

    def __init__(self) -> None:
        self._tried: set[triton.Config] = set()

    @abstractmethod
    def late(self) -> bool:
        """Whether the time is up; what is being timed then is still compared."""

    @abstractmethod
    def unsuited(self, configs: Sequence[triton.Config]) -> dict[triton.Config, str]:
        """Why each that does not suit the problem is not even compiled."""

    @abstractmethod
    def compiled(self, configs: Sequence[triton.Config]) -> dict[triton.Config, KernelResources | str]:
        """What each takes of the device, without running it; text: why it cannot be compiled."""

    @abstractmethod
    def disagreement(self, config: triton.Config) -> str:
        """What is wrong with its results, or with running it at all; empty where nothing is."""

    @abstractmethod
    def round(self, configs: Sequence[triton.Config]) -> list[float]:
        """One call of each, each with fresh inputs and a cold cache; milliseconds."""

    @abstractmethod
    def dropped(self, config: triton.Config, why: str) -> None:
        """It is out without a time."""

    @abstractmethod
    def timed(self, config: triton.Config, median_ms: float, calls: int) -> None:
        """What a race found for it so far."""

    @abstractmethod
    def best(self, config: triton.Config, median_ms: float) -> None:
        """The fastest up to now."""

    def fastest(self, configs: Iterable[triton.Config]) -> triton.Config | None:
        """The fastest until it is late or no neighbour is faster; None where no config works."""
        ready = self._admitted(configs)
        if not ready:
            return None
        won = self._race(ready)
        self.best(won.config, won.median_ms)
        champion = won.config
        while not self.late() and (fresh := self._admitted(neighbours(champion))):
            won = self._race(fresh, champion)
            if won.median_ms > won.champion_ms * (1 - LEAST_GAIN):
                break
            champion = won.config
            self.best(champion, won.median_ms)
        return champion

    def _admitted(self, configs: Iterable[triton.Config]) -> list[triton.Config]:
        """Those worth timing: new, suited to the problem, within the device's limits, and right."""
        fresh = [c for c in dict.fromkeys(configs) if c not in self._tried]
        self._tried.update(fresh)
        suited = self._without(fresh, self.unsuited(fresh))
        resources = self._compiled_in_time(suited)
        broken = {c: why for c, why in resources.items() if isinstance(why, str)}
        sound = {c: r for c, r in resources.items() if isinstance(r, KernelResources)}
        left = self._without(suited, {**broken, **over_budget(sound, self.limits)})
        return [c for c in left if self._without([c], {c: why} if (why := self.disagreement(c)) else {})]

    def _compiled_in_time(
        self, configs: Sequence[triton.Config]
    ) -> dict[triton.Config, KernelResources | str]:
        """What each takes of the device; of those that there is no time to compile, that."""
        resources: dict[triton.Config, KernelResources | str] = {}
        for first in range(0, len(configs), COMPILED_AT_ONCE):
            batch = configs[first : first + COMPILED_AT_ONCE]
            in_time = not (resources and self.late())
            resources |= self.compiled(batch) if in_time else dict.fromkeys(batch, TOO_LATE)
        return resources

    def _without(
        self, configs: Sequence[triton.Config], dropped: Mapping[triton.Config, str]
    ) -> list[triton.Config]:
        """The configs but those dropped, which are reported."""
        for config, why in dropped.items():
            self.dropped(config, why)
        return [c for c in configs if c not in dropped]

    def _race(self, configs: Sequence[triton.Config], champion: triton.Config | None = None) -> Won:
        """The fastest: each half that is left gets twice as many calls as the last.

        A `champion` takes part in every round and is not among those that may win.
        """
        beside = [champion] if champion else []
        samples: dict[triton.Config, list[float]] = {c: [] for c in (*beside, *configs)}
        left, calls = [*configs], FIRST_CALLS
        while True:
            self._sample(samples, [*beside, *left], calls)
            left.sort(key=lambda c: median(samples[c]))
            for config in left:
                self.timed(config, median(samples[config]), len(samples[config]))
            if len(left) == 1 or self.late():
                first, measure = left[0], champion or left[0]
                return Won(first, median(samples[first]), median(samples[measure]))
            if not champion:
                self.best(left[0], median(samples[left[0]]))
            left, calls = left[: len(left) // 2], 2 * calls

    def _sample(
        self, samples: Mapping[triton.Config, list[float]], contestants: Sequence[triton.Config], calls: int
    ) -> None:
        """That many rounds; at least one, however late it is."""
        for _ in range(calls):
            for config, ms in zip(contestants, self.round(contestants), strict=True):
                samples[config].append(ms)
            if self.late():
                return
