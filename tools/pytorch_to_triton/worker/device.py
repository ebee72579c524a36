"""Calls on the device: a cold L2 cache, events, and how much memory a call takes."""

import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

FLUSH_BYTES = 512 * 2**20
"""Written before each call: several times any L2 cache, and long enough to hide the launch from the clock."""
MOST_COVER = 16
"""At most this many flushes are queued to give the host time to launch."""
MUCH_CACHED = 2**32
FLUSH_OF_MEMORY = 16
"""On a small device, at most one part in this many of its memory."""


class Flush:
    """Leaves the L2 cache full of other data, as whatever ran before would.

    Written, not read: a kernel's own last writes stay in the cache when its time is taken, and in return it
    has to evict as many bytes of these.
    """

    def __init__(self) -> None:
        size = min(FLUSH_BYTES, torch.cuda.mem_get_info()[1] // FLUSH_OF_MEMORY)
        self._data = torch.empty(size, dtype=torch.int8, device="cuda")
        self._value = 0

    def __call__(self, times: int = 1) -> None:
        for _ in range(times):
            self._value = (self._value + 1) % 127
            self._data.fill_(self._value)


@dataclass(frozen=True)
class ColdCall:
    """How long a call took whose L2 cache was cold."""

    milliseconds: float
    """Between two events."""
    hidden: bool
    """Whether the device was busy with flushes until the host had launched the whole call: else it may have
    waited for the host, and that time is in it."""
    follows: bool
    """Whether its first flush was launched before the call before had ended: the device did not wait."""


def cold_calls(
    calls: Iterable[Callable[[], object]], count: int, flush: Flush, cover: int = 1
) -> list[ColdCall]:
    """Make `count` calls, with `cover` flushes before each.

    What `calls` does to give the next call is not timed.
    """
    stream = torch.cuda.current_stream()
    event: Callable[[], Any] = partial(torch.cuda.Event, enable_timing=True)
    pairs = [(event(), event()) for _ in range(count)]
    hidden: list[tuple[bool, bool]] = []
    before: Any = None
    for call, (start, end) in zip(calls, pairs, strict=True):
        flush(1)
        follows = before is None or not before.query()
        flush(cover - 1)
        start.record(stream)
        call()
        end.record(stream)
        hidden.append((not start.query(), follows))
        before = end
    torch.cuda.synchronize()
    return [ColdCall(start.elapsed_time(end), *was) for (start, end), was in zip(pairs, hidden, strict=True)]


def cold_milliseconds(
    calls: Iterable[Callable[[], object]], count: int, flush: Flush, cover: int = 1
) -> list[float]:
    """What each of `cold_calls` took."""
    return [call.milliseconds for call in cold_calls(calls, count, flush, cover)]


def forget_persisting() -> None:
    """Let no line of the L2 cache persist, whatever window a kernel's author has set.

    cudaCtxResetPersistingL2Cache of CUDA's runtime; AMD's has no such thing.
    """
    if torch.version.cuda is None:
        return
    for name in (f"libcudart.so.{torch.version.cuda.partition('.')[0]}", "libcudart.so"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(name).cudaCtxResetPersistingL2Cache()
            return


def peak_bytes(call: Callable[[], Any]) -> int:
    """Memory that a call takes beyond what was allocated before, what it returns included."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    returned = call()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del returned
    return peak


def synchronize(device: str) -> None:
    """Wait until the device has done everything; a CPU always has."""
    if device == "cuda":
        torch.cuda.synchronize()


def is_usable(device: str) -> bool:
    """False once an illegal memory access has made this process's device context useless."""
    try:
        synchronize(device)
    except RuntimeError:
        return False
    return True


def release_cached(device: str) -> None:
    """Give memory that torch only keeps for later back to the device, where it is much: others need it."""
    if device != "cpu" and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > MUCH_CACHED:
        torch.cuda.empty_cache()
