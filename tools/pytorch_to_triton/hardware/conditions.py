"""The state of a GPU while something is timed on it, read from the driver through NVML."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from pytorch_to_triton.jobs.together import together
from pytorch_to_triton.schema.benchmark import Conditions

_POLL_SECONDS = 0.1
_BUSY_PERCENT = 10
"""A device that is so busy before anything runs on it is somebody else's too."""
IDLE = "GpuIdle"
HARMLESS = ("ApplicationsClocksSetting", "None")
"""Reasons to clock down that say nothing against a timing."""


@dataclass
class Watching:
    """What was seen so far; `conditions` once it is over."""

    driver: str | None = None
    problem: str = ""
    clocks: list[int] = field(default_factory=list)
    max_clock: int | None = None
    temperatures: list[int] = field(default_factory=list)
    throttled: set[str] = field(default_factory=set)
    others: tuple[str, ...] = ()

    def forget(self) -> None:
        """Start anew: what was seen so far belongs to something else."""
        self.clocks.clear()
        self.temperatures.clear()
        self.throttled.clear()

    @property
    def conditions(self) -> Conditions:
        """All that was seen."""
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
async def watched_device(uuid: str | None) -> AsyncIterator[Watching]:
    """Look at the device now and then until the block ends; enter it before anything of ours runs there.

    `uuid` as torch tells it; None takes the first device. Where NVML cannot be used, the conditions say why.
    """
    watching = Watching()
    handle = await anyio.to_thread.run_sync(_opened, watching, uuid)
    if handle is None:
        yield watching
        return
    async with together() as group:
        group.start_soon(_follow, watching, handle)
        try:
            yield watching
        finally:
            group.cancel_scope.cancel()


def _opened(watching: Watching, uuid: str | None) -> Any:
    """NVML's handle of the device, None where there is none; who else uses it is asked here, once."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = (
            pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}") if uuid else pynvml.nvmlDeviceGetHandleByIndex(0)
        )
        watching.driver = pynvml.nvmlSystemGetDriverVersion()
        watching.max_clock = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
        watching.others = _others(pynvml, handle)
    except Exception as error:  # NVML's own kinds, a missing library, a missing package
        watching.problem = f"not available: {type(error).__name__}: {error}"
        return None
    return handle


def _others(pynvml: Any, handle: Any) -> tuple[str, ...]:
    """Processes that compute on the device now, or that it is busy although none can be seen."""
    found = [
        f"process {process.pid} ({(process.usedGpuMemory or 0) >> 20} MiB)"
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    ]
    busy = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
    if not found and busy > _BUSY_PERCENT:
        found.append(f"unseen processes that keep it busy {busy} % of the time")
    return tuple(found)


async def _follow(watching: Watching, handle: Any) -> None:
    while True:
        await anyio.to_thread.run_sync(_look, watching, handle)
        await anyio.sleep(_POLL_SECONDS)


def _look(watching: Watching, handle: Any) -> None:
    """One reading; what the driver does not tell is left out."""
    import pynvml

    try:
        reasons = throttle_reasons(pynvml, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        clock = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
        temperature = pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    except pynvml.NVMLError:
        return
    watching.temperatures.append(temperature)
    if IDLE not in reasons:  # then the clocks are low because nothing runs, e.g. while something is compiled
        watching.clocks.append(clock)
        watching.throttled |= {name for name in reasons if name not in HARMLESS}


def throttle_reasons(pynvml: Any, reasons: int) -> list[str]:
    """The names of the bits that are set, as NVML has them."""
    prefix = "nvmlClocksEventReason"
    known = {
        name.removeprefix(prefix): getattr(pynvml, name) for name in dir(pynvml) if name.startswith(prefix)
    }
    return [name for name, bit in known.items() if isinstance(bit, int) and bit and reasons & bit == bit]
