"""Tuning one target: each autotuned kernel that a call launches, at each key, one after the other."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
import triton
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources

from .. import wire
from ..calls.tensors import OutputLeaf
from ..device import Flush, cold_milliseconds
from ..job_report import JobReport
from .config_search import ConfigSearch
from .config_selector import ConfigSelector, TuningSite
from .fresh_calls import FreshCalls, disagreement
from .tuning_config import DeviceLimits, KernelResources, config_json, too_large

Clock = Callable[[], float]
"""Seconds since some moment."""


COVER = 2
"""Flushes before each call: while they run, the host launches the call."""


class TimingDevice:
    def __init__(self) -> None:
        properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
        self.limits = DeviceLimits(properties.get("max_shared_mem"), properties.get("max_num_regs"))
        self._flush = Flush()

    @property
    def about(self) -> wire.TuningDeviceItem:
        return wire.TuningDeviceItem(device=torch.cuda.get_device_name(), triton=triton.__version__)

    def synchronize(self) -> None:
        """Wait until the device is done. Raises where a kernel left it unusable."""
        torch.cuda.synchronize()

    def compiled(
        self, site: TuningSite, configs: Sequence[triton.Config]
    ) -> dict[triton.Config, KernelResources | str]:
        """Compiles all in parallel threads: the compiler holds no lock of Python's for most of its time."""
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            kernels = [*pool.map(lambda config: compiled(site, config), configs)]
        return {c: self.resources(kernel) for c, kernel in zip(configs, kernels, strict=True)}

    def resources(self, kernel: Any) -> KernelResources | str:
        """What a compiled kernel takes; a reason where it was not compiled or does not fit the device."""
        if isinstance(kernel, Exception):
            return f"it cannot be compiled: {first_line(kernel)}"
        metadata = kernel.metadata
        threads = metadata.num_warps * driver.active.get_current_target().warp_size
        granted = self.limits.shared_bytes
        if granted is not None and metadata.shared > granted:
            return KernelResources(shared_bytes=metadata.shared, threads=threads)
        try:
            # Asking for its launcher loads it; its registers are counted only then.
            _ = kernel.run
        except OutOfResources as error:
            return f"it needs {error.required} of {error.name}, and a block gets {error.limit}"
        return KernelResources(metadata.shared, kernel.n_regs, kernel.n_spills, threads)

    def round(
        self, configs: Sequence[triton.Config], ready: Callable[[triton.Config], Callable[[], Any]]
    ) -> list[float]:
        return cold_milliseconds(map(ready, configs), len(configs), self._flush, COVER)


def compiled(site: TuningSite, config: triton.Config) -> Any:
    """The compiled kernel, not yet loaded, or the exception that compiling it raised."""
    try:
        return site.launch(config, site.args, {**site.kwargs, "warmup": True})
    except Exception as error:
        return error


def first_line(error: BaseException) -> str:
    """The exception's type and the first line of its message."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class SiteTuning(ConfigSearch):
    """The search for one site's configuration on a device, whose items are reported."""

    def __init__(self, tuning: "TargetTuning", site: TuningSite, until: float) -> None:
        super().__init__()
        self.tuning, self.site, self.until = tuning, site, until
        self.limits = tuning.timer.limits
        self.began = tuning.clock()

    def late(self) -> bool:
        return self.tuning.clock() >= self.until

    def unsuited(self, configs: Sequence[triton.Config]) -> dict[triton.Config, str]:
        refused = self.site.refused(configs)
        left = [c for c in configs if c not in refused]
        return {**refused, **too_large(left, self.site.sizes, self.site.tuner.keys)}

    def compiled(self, configs: Sequence[triton.Config]) -> dict[triton.Config, KernelResources | str]:
        self.tuning.report.during(f"compiling {self.site.kernel}")
        return self.tuning.timer.compiled(self.site, configs)

    def disagreement(self, config: triton.Config) -> str:
        self.tuning.report.during(f"checking {self.site.kernel} with {config_json(config)}")
        self.tuning.selector.select(self.site, config)
        try:
            outputs = self.tuning.calls.outputs()
            self.tuning.timer.synchronize()
        except Exception as error:
            self.tuning.timer.synchronize()
            return f"it cannot be run: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        return disagreement(outputs, self.tuning.expected)

    def round(self, configs: Sequence[triton.Config]) -> list[float]:
        timing = f"timing {self.site.kernel}"
        if self.tuning.report.phase != timing:
            self.tuning.report.during(timing)
        return self.tuning.timer.round(configs, self.ready)

    def ready(self, config: triton.Config) -> Callable[[], Any]:
        """The call of the whole target with this configuration and fresh inputs."""
        self.tuning.selector.select(self.site, config)
        self.tuning.calls.refresh()
        return self.tuning.calls

    def dropped(self, config: triton.Config, why: str) -> None:
        self.tuning.report.item(wire.ConfigDroppedItem(**self.about(config), dropped=why))

    def timed(self, config: triton.Config, median_ms: float, calls: int) -> None:
        self.tuning.report.item(wire.ConfigTimedItem(**self.about(config), median_ms=median_ms, calls=calls))

    def best(self, config: triton.Config, median_ms: float) -> None:
        report, most, now = self.tuning.report, self.tuning.seconds, self.tuning.clock()
        about, seconds = self.about(config), now - self.began
        report.item(wire.ConfigBestItem(**about, median_ms=median_ms, seconds=seconds))
        message = f"{self.site.kernel}: {median_ms:.4g} ms with {config_json(config)}"
        report.progress(min(now - self.tuning.began, most), most, message)

    def about(self, config: triton.Config) -> dict[str, Any]:
        return {"kernel": self.site.kernel, "key": self.site.key, "config": config_json(config)}


@dataclass(frozen=True)
class TargetTuning:
    """What the searches for all sites share."""

    report: JobReport
    calls: FreshCalls
    timer: TimingDevice
    seconds: float
    """How long the searches for all sites may take."""
    clock: Clock
    began: float
    selector: ConfigSelector
    expected: dict[str, OutputLeaf]
    """What the call gives back with the first configuration of every kernel that works."""


def tune(
    report: JobReport, calls: FreshCalls, timer: TimingDevice, seconds: float, clock: Clock
) -> dict[str, int]:
    """Tune what one call launches, for about `seconds` by `clock`; how many kernels by key there were.

    The first item is the device, the others are those of SiteTuning. Raises what the call raises where a
    kernel works with none of its configurations.
    """
    report.item(timer.about)
    began = clock()
    with ConfigSelector() as selector:
        report.during("the first call")
        expected = calls.outputs()
        timer.synchronize()
        tuning = TargetTuning(report, calls, timer, seconds, clock, began, selector, expected)
        sites = [*selector.sites.values()]
        for number, site in enumerate(sites):
            left = max(began + seconds - clock(), 0.0)
            search = SiteTuning(tuning, site, clock() + left / (len(sites) - number))
            selector.select(site, search.fastest(site.configs) or selector.selected(site))
    return {"sites": len(sites)}
