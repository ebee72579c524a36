"""Compiling in parallel, and timing on the device: each call between events, its L2 cache cold."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import triton
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources

from .. import wire
from ..device import Flush, cold_milliseconds
from .config_selector import TuningSite
from .tuning_config import DeviceLimits, KernelResources, TuningConfig

COVER = 2
"""Flushes before each call: while they run, the host launches the call."""


class TimingDevice:
    """The current device."""

    def __init__(self) -> None:
        self.limits = limits()
        self._flush = Flush()

    @property
    def about(self) -> wire.TuningDeviceItem:
        """Which device and which Triton."""
        return wire.TuningDeviceItem(device=torch.cuda.get_device_name(), triton=triton.__version__)

    def synchronize(self) -> None:
        """Wait until the device is done. Raises where a kernel left it unusable."""
        torch.cuda.synchronize()

    def compiled(
        self, site: TuningSite, configs: Sequence[TuningConfig]
    ) -> dict[TuningConfig, KernelResources | str]:
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
        self,
        site: TuningSite,
        configs: Sequence[TuningConfig],
        ready: Callable[[TuningConfig], Callable[[], Any]],
    ) -> list[float]:
        """Milliseconds of one call of each."""
        return cold_milliseconds(map(ready, configs), len(configs), self._flush, COVER)


def limits() -> DeviceLimits:
    """What the current device grants a block."""
    properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
    return DeviceLimits(properties.get("max_shared_mem"), properties.get("max_num_regs"))


def compiled(site: TuningSite, config: TuningConfig) -> Any:
    """The compiled kernel, or the exception that compiling it raised."""
    try:
        return site.compiled(config)
    except Exception as error:
        return error


def first_line(error: BaseException) -> str:
    """The exception's type and the first line of its message."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
