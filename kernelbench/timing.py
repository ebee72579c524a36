"""Eager PyTorch, torch.compile and a drafted file on one problem, timed in turn in one process of its own.

A job of the worker. Nothing else may run on the device meanwhile, but for `fill_caches`, which times nothing.
"""

from __future__ import annotations

import importlib
import runpy
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch

FLUSH_BYTES = 256 * 2**20
"""Written before each call: several times any L2 cache."""
COPY_BYTES = 2**31
SECONDS = 0.25
"""Of one implementation's timed calls, flushes included."""
FEWEST, MOST = 5, 200
WARM_UP = 2
MOST_FLUSHES = 64
TRIES = 3
"""Calls in a row that have to be hidden before a number of flushes is enough."""
AGREES = 0.02
"""Of the largest magnitude in eager's output. check.py judges; this only tells work from no work."""

Call = Callable[[], Any]
check: Any = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("check.py"))))
"""The file beside this one: a job is no member of a package."""


def work(report: Any, what: str, **problem: Any) -> Any:
    """`imports`: what compiling imports. `machine`: what the device copies. `fill_caches`: compile all.
    `time`: the medians.
    """
    if what == "imports":
        return {"status": "compiled", "imports": imported_by_compiling()}
    if what == "machine":
        return machine()
    inductor: Any = importlib.import_module("torch._inductor.config")
    inductor.compile_threads = 1  # starting its pool takes longer than most of these compilations
    inductor.autotune_local_cache = False  # chosen among other processes, a configuration may be a bad one
    with torch.no_grad():
        implementations = Implementations(**problem)
        first = {name: implementations.first(name) for name in tuple(implementations.calls)}
        if what == "fill_caches":
            return {"status": "compiled", "implementations": first}
        timings = implementations.timings()
        return {
            "status": "measured",
            "bytes": implementations.bytes(),
            "implementations": {name: {**first[name], **timings.get(name, {})} for name in first},
        }


def machine() -> dict[str, Any]:
    """The device's name, the versions, and its copy bandwidth in GB/s, read plus written."""
    source = torch.rand(COPY_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    milliseconds = timed({"copy": lambda: target.copy_(source)})["copy"]["median_ms"]
    return {
        "status": "measured",
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": importlib.import_module("triton").__version__,
        "copy_gb_per_s": 2 * COPY_BYTES / milliseconds / 1e6,
    }


def imported_by_compiling() -> list[str]:
    """Modules that torch.compile imports at its first call, which takes seconds in each process."""
    before = set(sys.modules)
    inductor: Any = importlib.import_module("torch._inductor.config")
    with inductor.patch(force_disable_caches=True):
        torch.compile(compiled_once)(torch.rand(64, 64, device="cuda"))
    # compile_tasks holds what was compiled.
    added = [name for name in sys.modules if name not in before and ".compile_tasks." not in name]
    return [name for name in added if name.startswith(("torch.", "triton."))]


def compiled_once(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x, -1).relu().sum(0)


class Implementations:
    """The calls of one problem on the same inputs, as far as each of them works."""

    def __init__(
        self,
        problem: Mapping[str, Any],
        drafts: Mapping[str, str],
        *,
        evaluated: bool,
        compile_seconds: float,
    ) -> None:
        contents = check.loaded(problem["path"])
        self.compile_seconds = compile_seconds
        self.model = check.modelled(problem, contents, "cuda", evaluated=evaluated)
        self.inputs = check.given(problem, contents, "cuda")
        compiled: Call = torch.compile(self.model)
        calls: dict[str, Call] = {
            "eager": lambda: self.model(*self.inputs),
            "compile": lambda: compiled(*self.inputs),
        }
        if problem["max_autotune"]:
            searched: Call = torch.compile(self.model, mode="max-autotune-no-cudagraphs")
            calls["max-autotune"] = lambda: searched(*self.inputs)
        for name, file in drafts.items():
            run = check.loaded(file).run
            calls[name] = partial(run, **check.bound(run, self.inputs, check.state_of(self.model)))
        self.calls = with_gradients(self.model, self.inputs, calls) if problem["backward"] else calls
        self.expected: list[torch.Tensor] | None = None
        self.output_bytes = 0

    def first(self, name: str) -> dict[str, Any]:
        """The first call: what it took, and whether it agrees with eager's. One that fails is not timed."""
        began = time.perf_counter()
        try:
            with time_limit(self.compile_seconds):
                outputs = list(check.leaves(self.calls[name]()))
            torch.cuda.synchronize()
            result: dict[str, Any] = {"first_seconds": time.perf_counter() - began}
            if name == "eager":
                self.expected, self.output_bytes = outputs, sum(t.nbytes for t in outputs)
            elif self.expected is not None:
                result["agrees"] = agree(outputs, self.expected)
            return result
        except Exception as error:
            del self.calls[name]
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    def bytes(self) -> int:
        """What any implementation has to move: inputs, parameters and buffers, outputs, once each."""
        state = [*self.model.parameters(), *self.model.buffers()]
        return self.output_bytes + sum(int(t.nbytes) for t in (*check.leaves(self.inputs), *state))

    def timings(self) -> dict[str, dict[str, Any]]:
        """Those of the implementations whose first call did not fail."""
        self.expected = None
        torch.cuda.empty_cache()
        return timed(self.calls)


def with_gradients(
    model: torch.nn.Module, inputs: Sequence[Any], calls: Mapping[str, Call]
) -> dict[str, Call]:
    """Each call with its backward pass, from the same gradients of the outputs."""
    variables = check.differentiable([*inputs, *model.parameters()])
    with torch.enable_grad():
        weights = check.weights_of(list(check.leaves(model(*inputs))))
    return {name: partial(check.differentiated, call, variables, weights) for name, call in calls.items()}


class Flush:
    """Leaves the L2 cache full of other data; several keep the device busy while the host launches."""

    def __init__(self) -> None:
        self.data = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self(2)
        torch.cuda.synchronize()
        began = time.perf_counter()
        self(4)
        torch.cuda.synchronize()
        self.seconds = (time.perf_counter() - began) / 4

    def __call__(self, times: int) -> None:
        for value in range(times):
            self.data.fill_(value)


def timed(calls: Mapping[str, Call]) -> dict[str, dict[str, Any]]:
    """Milliseconds of each, call by call in turn, the L2 cache cold, launches hidden where they can be."""
    flush = Flush()
    plans = {name: planned(call, flush) for name, call in calls.items()}
    samples: dict[str, list[Sample]] = {name: [] for name in calls}
    for turn in range(max((count for count, _ in plans.values()), default=0)):
        for name, (count, flushes) in plans.items():
            if turn < count:
                samples[name].append(Sample(calls[name], flush, flushes))
    torch.cuda.synchronize()
    taken = {name: milliseconds_of(several) for name, several in samples.items()}
    return {
        name: {"median_ms": median(ms), "fastest_ms": ms[0], "slowest_ms": ms[-1], "calls": len(ms)}
        for name, ms in taken.items()
    }


class Sample:
    """One call between two events, behind flushes that keep the device busy while the host launches it.

    `hidden`: the device was still flushing when the last launch was queued, so it never waited for the host.
    """

    def __init__(self, call: Call, flush: Flush, flushes: int) -> None:
        self.start, self.end = event(), event()
        flush(flushes)
        self.start.record()
        call()
        self.hidden = not self.start.query()  # type: ignore[no-untyped-call]
        self.end.record()


def milliseconds_of(samples: Sequence[Sample]) -> list[float]:
    """Ascending. Where enough calls were hidden from the host, of those alone."""
    hidden = [sample for sample in samples if sample.hidden]
    counted = hidden if len(hidden) >= FEWEST else samples
    return sorted(sample.start.elapsed_time(sample.end) for sample in counted)


def planned(call: Call, flush: Flush) -> tuple[int, int]:
    """How many calls take SECONDS, and how many flushes hide the launches of one; warms up first."""
    for _ in range(WARM_UP):
        call()
    torch.cuda.synchronize()
    flushes = 1
    while flushes < MOST_FLUSHES and not all(Sample(call, flush, flushes).hidden for _ in range(TRIES)):
        torch.cuda.synchronize()
        flushes *= 2
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    taken = time.perf_counter() - began
    return max(FEWEST, min(MOST, int(SECONDS / (taken + flushes * flush.seconds)))), flushes


def event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def agree(outputs: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    """Whether the outputs are roughly eager's."""
    if [t.shape for t in outputs] != [t.shape for t in expected]:
        return False
    pairs = zip(outputs, expected, strict=True)
    return all(near(ours.flatten(), theirs.flatten()) for ours, theirs in pairs)


def near(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Compared on a million elements spread over the whole: differences of all may not fit into memory."""
    step = max(1, theirs.numel() // 2**20)
    mine, other = (t[::step].double().nan_to_num() for t in (ours, theirs))
    scale = float(other.abs().max()) if other.numel() else 0.0
    return bool(((mine - other).abs() <= AGREES * scale).all())


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in Python code that runs longer; what hangs in C is ended by the job's limit."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
