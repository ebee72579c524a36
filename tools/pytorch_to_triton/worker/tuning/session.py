"""Tuning one target: each autotuned kernel that a call launches, at each key, one after the other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import wire
from ..calls.tensors import OutputLeaf
from ..job_report import JobReport
from .config_search import ConfigSearch
from .config_selector import ConfigSelector, TuningSite
from .fresh_calls import FreshCalls, disagreement
from .timing_device import TimingDevice
from .tuning_config import DeviceLimits, KernelResources, TuningConfig, too_large

Clock = Callable[[], float]
"""Seconds since some moment."""


@dataclass(frozen=True)
class TimeBudget:
    """How long the tuning may take."""

    seconds: float
    clock: Clock
    began: float

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.began

    def share(self, sites_left: int) -> float:
        """The clock's time until which one of this many sites may be tuned."""
        now = self.clock()
        return now + max(self.began + self.seconds - now, 0.0) / sites_left


@dataclass
class SiteTuning:
    """The search for one site's configuration: where configurations are tried, and what is reported of it."""

    report: JobReport
    calls: FreshCalls
    timer: TimingDevice
    budget: TimeBudget
    selector: ConfigSelector
    expected: dict[str, OutputLeaf]
    """What the call gives back with the first configuration of every kernel that works."""
    site: TuningSite
    began: float
    """In seconds of the budget."""

    def run(self, until: float) -> None:
        """The site's launches take the fastest configuration found by then from here on."""
        search = ConfigSearch(
            bench=self,
            log=self,
            late=lambda: self.budget.clock() >= until,
            suits=lambda configs: unsuited(self.site, configs),
        )
        best = search.run(self.site.configs)
        self.selector.select(self.site, best or self.selector.selected(self.site))

    @property
    def limits(self) -> DeviceLimits:
        """What the device grants a block."""
        return self.timer.limits

    def compiled(self, configs: Sequence[TuningConfig]) -> dict[TuningConfig, KernelResources | str]:
        """What each takes of the device; text: why it cannot be compiled."""
        self.report.during(f"compiling {self.site.kernel}")
        return self.timer.compiled(self.site, configs)

    def disagreement(self, config: TuningConfig) -> str:
        """What is wrong with the target's results when the site takes this configuration."""
        self.report.during(f"checking {self.site.kernel} with {config.as_json}")
        self.selector.select(self.site, config)
        try:
            outputs = self.calls.outputs()
            self.timer.synchronize()
        except Exception as error:
            self.timer.synchronize()
            return f"it cannot be run: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        return disagreement(outputs, self.expected)

    def round(self, configs: Sequence[TuningConfig]) -> list[float]:
        """Milliseconds of one call of the whole target for each configuration."""
        timing = f"timing {self.site.kernel}"
        if self.report.phase != timing:
            self.report.during(timing)
        return self.timer.round(self.site, configs, self.ready)

    def ready(self, config: TuningConfig) -> Callable[[], Any]:
        """The call with this configuration and fresh inputs."""
        self.selector.select(self.site, config)
        self.calls.refresh()
        return self.calls

    def dropped(self, config: TuningConfig, why: str) -> None:
        """It is out without a time."""
        self.report.item(wire.ConfigDroppedItem(**self.about(config), dropped=why))

    def timed(self, config: TuningConfig, median_ms: float, calls: int) -> None:
        """What a race found for it so far."""
        self.report.item(wire.ConfigTimedItem(**self.about(config), median_ms=median_ms, calls=calls))

    def best(self, config: TuningConfig, median_ms: float) -> None:
        """The fastest so far."""
        spent = self.budget.spent()
        seconds = spent - self.began
        self.report.item(wire.ConfigBestItem(**self.about(config), median_ms=median_ms, seconds=seconds))
        message = f"{self.site.kernel}: {median_ms:.4g} ms with {config.as_json}"
        self.report.progress(min(spent, self.budget.seconds), self.budget.seconds, message)

    def about(self, config: TuningConfig) -> dict[str, Any]:
        """Which configuration of which kernel, at which key."""
        return {"kernel": self.site.kernel, "key": self.site.key, "config": config.as_json}


def tune(
    report: JobReport, calls: FreshCalls, timer: TimingDevice, seconds: float, clock: Clock
) -> wire.TuneAnswer:
    """Tune what one call launches, for about `seconds` by `clock`.

    The first item is the device, the others are those of SiteTuning. Raises what the call raises where a
    kernel works with none of its configurations.
    """
    report.item(timer.about)
    budget = TimeBudget(seconds, clock, clock())
    with ConfigSelector() as selector:
        report.during("the first call")
        expected = calls.outputs()
        timer.synchronize()
        sites = [*selector.sites.values()]
        for number, site in enumerate(sites):
            until = budget.share(len(sites) - number)
            SiteTuning(report, calls, timer, budget, selector, expected, site, budget.spent()).run(until)
    return wire.TuneAnswer(sites=len(sites))


def unsuited(site: TuningSite, configs: Sequence[TuningConfig]) -> dict[TuningConfig, str]:
    """Why each configuration is not even compiled: the author's own pruning, or its blocks' sizes."""
    refused = site.refused(configs)
    left = [c for c in configs if c not in refused]
    return {**refused, **too_large(left, site.sizes, site.tuner.keys)}
