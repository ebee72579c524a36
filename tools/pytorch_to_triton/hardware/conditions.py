"""The state of a GPU while something is timed on it, read from the driver through NVML."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.benchmark import Conditions

_POLL_SECONDS = 0.1
_BUSY_PERCENT = 10
"""A device that is busier before anything of ours runs on it has other users."""
IDLE = "GpuIdle"
HARMLESS = ("ApplicationsClocksSetting", "None")
"""Reasons to clock down that do not harm a timing."""


@dataclass
class DeviceMonitor:
    """What was measured so far; `conditions` once it is over."""

    driver: str | None = None
    problem: str = ""
    clocks: list[int] = field(default_factory=list)
    max_clock: int | None = None
    temperatures: list[int] = field(default_factory=list)
    throttled: set[str] = field(default_factory=set)
    others: tuple[str, ...] = ()

    def reset(self) -> None:
        """Drop what was measured so far."""
        self.clocks.clear()
        self.temperatures.clear()
        self.throttled.clear()

    @property
    def conditions(self) -> Conditions:
        """A summary of all readings."""
        return Conditions(
            driver=self.driver,
            provenance=self.problem or "NVML",
            sm_clock_mhz=(min(self.clocks), max(self.clocks)) if self.clocks else None,
            max_sm_clock_mhz=self.max_clock,
            temperature_celsius=max(self.temperatures, default=None),
            throttled_by=tuple(sorted(self.throttled)),
            other_processes=self.others,
        )


@asynccontextmanager
async def monitored_device(uuid: str | None) -> AsyncIterator[DeviceMonitor]:
    """Poll the device until the block ends; enter it before anything of ours runs there.

    `uuid` as torch reports it; None takes the first device. Without NVML, the conditions say why.
    """
    monitor = DeviceMonitor()
    handle = await anyio.to_thread.run_sync(_open, monitor, uuid)
    if handle is None:
        yield monitor
        return
    async with task_group() as group:
        group.start_soon(_follow, monitor, handle)
        try:
            yield monitor
        finally:
            group.cancel_scope.cancel()


def _open(monitor: DeviceMonitor, uuid: str | None) -> Any:
    """NVML's handle of the device, None where there is none; who else uses it is asked here, once."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = (
            pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}") if uuid else pynvml.nvmlDeviceGetHandleByIndex(0)
        )
        monitor.driver = pynvml.nvmlSystemGetDriverVersion()
        monitor.max_clock = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
        monitor.others = _others(pynvml, handle)
    except Exception as error:  # NVML's own kinds, a missing library, a missing package
        monitor.problem = f"not available: {type(error).__name__}: {error}"
        return None
    return handle


def _others(pynvml: Any, handle: Any) -> tuple[str, ...]:
    """Processes that compute on the device now, or that it is busy although none can be seen."""
    processes = [
        f"process {process.pid} ({(process.usedGpuMemory or 0) >> 20} MiB)"
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    ]
    busy = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
    if not processes and busy > _BUSY_PERCENT:
        processes.append(f"unseen processes that keep it busy {busy} % of the time")
    return tuple(processes)


async def _follow(monitor: DeviceMonitor, handle: Any) -> None:
    while True:
        await anyio.to_thread.run_sync(_read, monitor, handle)
        await anyio.sleep(_POLL_SECONDS)


def _read(monitor: DeviceMonitor, handle: Any) -> None:
    """One reading; what the driver does not report is left out."""
    import pynvml

    try:
        reasons = throttle_reasons(pynvml, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        clock = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
        temperature = pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    except pynvml.NVMLError:
        return
    monitor.temperatures.append(temperature)
    if IDLE not in reasons:  # then the clocks are low because nothing runs, e.g. while something is compiled
        monitor.clocks.append(clock)
        monitor.throttled |= {name for name in reasons if name not in HARMLESS}


def throttle_reasons(pynvml: Any, reasons: int) -> list[str]:
    """The names of the bits that are set, as NVML has them."""
    prefix = "nvmlClocksEventReason"
    known = {
        name.removeprefix(prefix): getattr(pynvml, name) for name in dir(pynvml) if name.startswith(prefix)
    }
    return [name for name, bit in known.items() if isinstance(bit, int) and bit and reasons & bit == bit]
