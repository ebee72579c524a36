"""A configuration of a kernel: as JSON, its neighbours, whether its blocks suit the problem, and whether what
it takes of the device does.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any

import triton

MOST_WARPS = 32
"""A block has at most 1024 threads, on AMD's GPUs with 64 a warp half as many warps."""
MOST_STAGES = 8
TOO_LARGE = 2
"""A block may be this many times as large as the power of two that holds the problem."""
SMALL_BLOCK = 32
"""Blocks up to this are never too large: matrix products need 16 or 32 along each side."""


OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override", "pre_hook")
ALWAYS_SHOWN = ("num_warps", "num_stages")
DEFAULT = triton.Config({})


def config_json(config: triton.Config) -> dict[str, Any]:
    """Meta-parameters, `num_warps`, `num_stages`, and the other options that are not the default."""
    options = {name: getattr(config, name) for name in OPTIONS}
    shown = {n: v for n, v in options.items() if n in ALWAYS_SHOWN or v != getattr(DEFAULT, n)}
    return {name: plain(value) for name, value in {**config.kwargs, **shown}.items()}


def blocks_of(config: triton.Config) -> dict[str, int]:
    """The sizes of its blocks: meta-parameters named BLOCK or BLOCK_... that are powers of two."""
    return {n: v for n, v in config.kwargs.items() if n.startswith("BLOCK") and is_power_of_two(v)}


def changed(config: triton.Config, **settings: Any) -> triton.Config:
    """The same with other settings."""
    other = copy.copy(config)
    vars(other).update(settings)
    return other


def neighbours(config: triton.Config) -> Iterator[triton.Config]:
    """Half and twice the warps, a stage less and one more, each block half and twice as large."""
    for num_warps in (config.num_warps // 2, config.num_warps * 2):
        if 1 <= num_warps <= MOST_WARPS:
            yield changed(config, num_warps=num_warps)
    for num_stages in (config.num_stages - 1, config.num_stages + 1):
        if 1 <= num_stages <= MOST_STAGES:
            yield changed(config, num_stages=num_stages)
    for block, size in blocks_of(config).items():
        for other in (size // 2, size * 2):
            if other:
                yield changed(config, kwargs={**config.kwargs, block: other})


def too_large(
    configs: Sequence[triton.Config], sizes: Mapping[str, int], keys: Sequence[str]
) -> dict[triton.Config, str]:
    """Why each config whose blocks are much larger than the problem is left out; never all of them.

    `sizes` are the integers among the launch's arguments. BLOCK_M is compared with the argument M if
    there is one, else, like BLOCK, with the largest of `keys`, the arguments that the author tunes by.
    """
    reasons = {c: why for c in configs if (why := excess(c, sizes, keys))}
    if configs and len(reasons) == len(set(configs)):
        del reasons[min(reasons, key=lambda c: prod(blocks_of(c).values()))]
    return reasons


def excess(config: triton.Config, sizes: Mapping[str, int], keys: Sequence[str]) -> str:
    """Which block is much too large for what; empty where none is."""
    by_name = {name.lower(): (name, size) for name, size in sizes.items()}
    known_sizes = [(name, sizes[name]) for name in keys if name in sizes]
    largest = max(known_sizes, key=lambda pair: pair[1], default=None)
    for block, size in blocks_of(config).items():
        walked = by_name.get(block.rpartition("_")[2].lower(), largest)
        if walked and size > max(TOO_LARGE * power_of_two_over(walked[1]), SMALL_BLOCK):
            return f"{block}={size} is more than twice what {walked[0]}={walked[1]} fills"
    return ""


def is_power_of_two(value: Any) -> bool:
    return type(value) is int and value > 0 and value & (value - 1) == 0


def power_of_two_over(size: int) -> int:
    """The smallest power of two that is at least `size`, and at least 1."""
    return 1 << max(size - 1, 0).bit_length()


def plain(value: Any) -> Any:
    """The value as JSON; what JSON cannot hold as {"repr": text}, the same in every process."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    return {"repr": getattr(value, "__qualname__", "") or repr(value)}


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
    resources: Mapping[triton.Config, KernelResources], limits: DeviceLimits
) -> dict[triton.Config, str]:
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
