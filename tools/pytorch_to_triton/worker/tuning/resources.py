"""What compiled configurations take of the device, and which of them are left out for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from .tuning_config import TuningConfig


@dataclass(frozen=True)
class KernelResources:
    """Of one compiled kernel; None where unknown."""

    shared_bytes: int | None = None
    """Shared memory of a block."""
    registers: int | None = None
    """Of a thread."""
    spills: int | None = None
    """Registers of a thread that live in local memory instead."""
    threads: int | None = None
    """Of a block."""


@dataclass(frozen=True)
class DeviceLimits:
    """What the device grants a block; None where unknown."""

    shared_bytes: int | None = None
    registers: int | None = None
    """Of all threads of a block together."""


def over_budget(
    resources: Mapping[TuningConfig, KernelResources], limits: DeviceLimits
) -> dict[TuningConfig, str]:
    """Why each config is left out: it does not fit the device, or it spills and others that fit do not."""
    dropped = {c: why for c, r in resources.items() if (why := misfit(r, limits))}
    fitting = {c: r for c, r in resources.items() if c not in dropped}
    if any(r.spills == 0 for r in fitting.values()):
        spilling = {c: r.spills for c, r in fitting.items() if r.spills}
        dropped |= {c: f"it spills {n} registers, and others spill none" for c, n in spilling.items()}
    return dropped


def misfit(resources: KernelResources, limits: DeviceLimits) -> str:
    """What the kernel needs and the device does not have; empty where it fits."""
    shared, granted = resources.shared_bytes, limits.shared_bytes
    if shared is not None and granted is not None and shared > granted:
        return f"it needs {shared} bytes of shared memory, and a block gets {granted}"
    if resources.registers and resources.threads and limits.registers:
        needed = resources.registers * resources.threads
        if needed > limits.registers:
            return f"it needs {needed} registers, and a block gets {limits.registers}"
    return ""
