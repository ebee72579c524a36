"""One callable's process, in which nothing else runs, and a process that calls nothing; a call may be
forward, backward, or both.
"""

import dataclasses
import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile
from triton.runtime.jit import JITFunction

from ..calls.exchange import CallInputs, Exchange, outputs_of, written_to
from ..calls.gradients import call_and_gradients, with_gradients
from ..calls.tensors import leaves, write_values
from ..device import MOST_COVER, Flush, cold_calls, cold_milliseconds, forget_persisting, peak_bytes
from ..integrity.settings import SettingsSnapshot
from ..loading.target import Loaded, Role, load
from ..random_numbers import seed_call
from ..tuning.config_selector import chosen_configs, note_keys
from .input_pool import Pool, variant

Target = Callable[[CallInputs], Any]
Timed = Callable[[], dict[str, Any]]
"""Does the timed work; returns the results by path."""
Ready = Callable[[Target, CallInputs], Timed]
"""Does what comes before it."""


def forward(target: Target, call: CallInputs) -> Timed:
    """The call without gradients."""

    def timed() -> dict[str, Any]:
        with torch.no_grad():
            return dict(leaves(target(call)))

    return timed


def backward(target: Target, call: CallInputs) -> Timed:
    """The backward pass of a call that was made before."""
    outputs, gradients = call_and_gradients(target, call)
    return lambda: {**outputs, **gradients()}


def both(target: Target, call: CallInputs) -> Timed:
    """The call and its backward pass."""
    return lambda: with_gradients(target, call)


PASSES: dict[str, Ready] = {"forward": forward, "backward": backward, "both": both}


FIRST_CALLS = 3
LAUNCHES = 5
"""Launches that are looked at before the first round: all must be hidden."""


class TimedImplementation:
    """What this process times, and its current calls; its public methods are commands."""

    loaded: Loaded
    flush: Flush
    flags: SettingsSnapshot
    pool: Pool

    def __init__(self, folder: Path, setting: Mapping[str, Any]) -> None:
        self.exchange = Exchange(folder)
        self.passes: str = setting["passes"]
        self.tf32: bool = setting["tf32"]
        self.cover = 1
        self.offsets: list[int] = []
        self.calls: list[CallInputs] = []
        self.timed: list[Timed] = []
        self.results: list[dict[str, Any]] = []

    def load(self, target: dict[str, Any], role: Role, compiled: str | None, caches: str) -> dict[str, Any]:
        """Load the target; `compiled` is a mode of torch.compile. Caches start empty, so that a first call is
        one; all processes get the same precision."""
        os.environ["TRITON_CACHE_DIR"] = f"{caches}/triton"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{caches}/inductor"
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        torch.backends.cudnn.allow_tf32 = self.tf32
        note_keys()
        self.loaded = self.exchange.with_state(load(target, role))
        self.loaded.to_gpu()
        if compiled == "default":
            # A pool of compiling processes takes longer to start than these few kernels to compile.
            inductor: Any = importlib.import_module("torch._inductor.config")
            inductor.compile_threads = 1
        if compiled:
            self.loaded = in_one_graph(self.loaded, compiled)
        self.flush = Flush()
        self.flags = SettingsSnapshot()
        return {}

    def start(self, inputs: list[str]) -> dict[str, Any]:
        """Read a size's inputs and make the first calls."""
        torch.compiler.reset()
        self.pool = Pool([self.exchange.call(name, "cuda") for name in inputs])
        self.fill([0])
        began = time.perf_counter()
        self.go_untimed()
        first = time.perf_counter() - began
        for _ in range(FIRST_CALLS):
            self.fill([0])
            self.go_untimed()
        self.fill([0])
        peak = peak_bytes(self.timed[0])
        self.find_cover()
        outputs = [t for t in self.results[0].values() if isinstance(t, torch.Tensor)] if self.results else []
        return {
            "first_call_ms": 1e3 * first,
            "peak_bytes": peak,
            "input_bytes": sum(t.nbytes for t in self.pool.bases[0].tensors().values()),
            "output_bytes": sum(t.nbytes for t in outputs),
            "free_bytes": torch.cuda.mem_get_info()[0],
            "call_ms": self.host_ms(),
        }

    def fill(self, offsets: list[int]) -> None:
        """Make one call ready for each offset (input_pool.py), in as many slots of the pool."""
        self.calls, self.timed, self.results = [], [], []
        self.offsets = offsets
        self.calls = [self.pool.filled(slot, offset) for slot, offset in enumerate(offsets)]
        for offset, call in zip(offsets, self.calls, strict=True):
            seed_call(str(offset))
            self.timed.append(PASSES[self.passes](self.target, call))
        torch.cuda.synchronize()

    def go(self) -> dict[str, Any]:
        """Make the calls that were made ready, each with a cold L2 cache.

        `samples_ms`: milliseconds of those whose launch was hidden, or of all where none was. `cover`: how
        many flushes were to hide it. `hidden`: whether all were, and the device never waited for the host in
        between, which another process's clock would count; if not, the next calls get twice the cover, as
        long as there is more.
        """
        forget_persisting()
        cover = self.cover
        calls = cold_calls(self.seeded_calls(), len(self.timed), self.flush, cover)
        counted = [call for call in calls if call.hidden or cover >= MOST_COVER]
        hidden = all(call.hidden and call.follows for call in calls)
        if not hidden:
            self.cover = min(2 * cover, MOST_COVER)
        return {
            "samples_ms": [call.milliseconds for call in counted or calls],
            "cover": cover,
            "hidden": hidden or cover >= MOST_COVER,
        }

    def seeded_calls(self) -> Iterator[Callable[[], object]]:
        """The calls that were made ready, each with random numbers of its own; their results are kept."""
        for offset, timed in zip(self.offsets, self.timed, strict=True):
            seed_call(str(offset))
            yield lambda timed=timed: self.results.append(timed())  # type: ignore[misc]

    def go_untimed(self) -> None:
        self.results = [timed() for timed in self.timed]
        torch.cuda.synchronize()

    def target(self, call: CallInputs) -> Any:
        return self.loaded(call.arguments, call.state)

    def host_ms(self) -> float:
        """What one call takes by the host's clock, launch included, the cache warm."""
        self.fill([0])
        began = time.perf_counter()
        self.go_untimed()
        return 1e3 * (time.perf_counter() - began)

    def find_cover(self) -> None:
        """Find how many flushes keep the device busy while the host launches a call: twice what just does.

        A host is now and then twice as slow, and a device that waits for it would be timed.
        """
        tried = 1
        while tried < MOST_COVER and not self.is_hidden(tried):
            tried *= 2
        self.cover = min(2 * tried, MOST_COVER - 1) if tried < MOST_COVER else MOST_COVER

    def is_hidden(self, cover: int) -> bool:
        """Whether the device is still busy with so many flushes when the host has launched a call."""
        for number in range(LAUNCHES):
            self.fill([number])
            (call,) = cold_calls(self.timed, 1, self.flush, cover)
            if not call.hidden:
                return False
        return True

    def wall(self) -> float:
        """Milliseconds from a call to the device's being done, by the host's clock.

        It is the last of the calls that are ready; those before it warm up the host.
        """
        *before, last = self.timed
        for timed in before:
            self.results.append(timed())
        forget_persisting()
        self.flush()
        torch.cuda.synchronize()
        began = time.perf_counter()
        self.results.append(last())
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - began)

    def graph(self, count: int) -> dict[str, Any]:
        """`graph_ms`: milliseconds of each replay of the call as a captured CUDA graph, the L2 cache cold."""
        if self.passes != "forward":
            return {"graph_note": "only forward calls are captured"}
        try:
            return {"graph_ms": self.replayed(count)}
        except Exception as error:  # what the author's code does while it is captured
            torch.cuda.synchronize()
            return {"graph_note": f"not captured: {type(error).__name__}: {str(error).partition(chr(10))[0]}"}

    def replayed(self, count: int) -> list[float]:
        self.fill([0])
        timed, stream = self.timed[0], torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(FIRST_CALLS):
                timed()
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            self.results = [timed()]
        times = []
        for offset in range(count):
            self.pool.filled(0, offset)
            times += cold_milliseconds([captured.replay], 1, self.flush)
        return times

    def profile(self, count: int) -> dict[str, Any]:
        """`busy_ms`: the device's busy time over all streams during a call, the cache warm; `library_ms`: of
        that, what Triton did not compile; `kernels`: how many it ran."""
        self.fill(list(range(count)))
        try:
            with profile(activities=[ProfilerActivity.CUDA]) as profiler:
                self.go_untimed()
        except RuntimeError as error:  # the machine's owner may have forbidden it
            return {"profile_note": str(error)}
        spans = sorted(
            (event.time_range.start, event.time_range.end, event.name)
            for event in profiler.events() or ()
            if event.device_type == DeviceType.CUDA
        )
        compiled = {each.__name__ for each in gc.get_objects() if issubclass(type(each), JITFunction)}
        busy = union([(start, end) for start, end, _ in spans])
        library = union([(start, end) for start, end, name in spans if name not in compiled])
        return {
            "busy_ms": busy / 1e3 / count,
            "library_ms": library / 1e3 / count,
            "kernels": len(spans) / count,
        }

    def keep(self, index: int, name: str) -> None:
        """Write what one of the last timed calls returned, and the arguments that it wrote to."""
        call, before = self.calls[index], variant(self.pool.bases, self.offsets[index])
        outputs = outputs_of(self.results[index], call, written_to(call, before))
        write_values(outputs, self.exchange.outputs("candidate", name))

    def leave(self) -> dict[str, Any]:
        """Let go of the size's memory; return what its kernels chose and which settings the calls changed."""
        self.calls, self.timed, self.results = [], [], []
        del self.pool
        torch.cuda.empty_cache()
        changed = [vars(setting) for setting in self.flags.changed()]
        return {"tuned": chosen_configs([self.loaded.contents]), "changed": changed}


class IdleProcess:
    """A process that does what a timed one does, but calls nothing."""

    def start(self) -> None:
        """Take the device."""
        self.flush = Flush()

    def go(self, calls: int, cover: int) -> list[float]:
        """Flush as a timed process does for that many calls; milliseconds between events, of nothing."""
        forget_persisting()
        return cold_milliseconds(repeat(lambda: None, calls), calls, self.flush, cover)


def in_one_graph(loaded: Loaded, mode: str) -> Loaded:
    """The target through torch.compile, for the very sizes that it is called with."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return loaded.call(*args, **kwargs)

    return dataclasses.replace(loaded, call=torch.compile(call, mode=mode, dynamic=False))


def union(spans: list[tuple[float, float]]) -> float:
    """The length that sorted spans cover."""
    covered, reached = 0.0, float("-inf")
    for start, end in spans:
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered
