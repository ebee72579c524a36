"""Job `timing`: time several callables on the same inputs, turn by turn, each call with a cold L2 cache."""

from collections.abc import Callable
from typing import Any

import torch

from .draw import draw_arguments, perturbed_state
from .report import Report
from .target import load

FLUSH_BYTES = 512 * 2**20
"""Written before each call: several times any L2 cache, and long enough to hide the launch from the clock."""
WARM_UP_CALLS = 5


def work(
    report: Report, subjects: list[dict[str, Any]], case: dict[str, Any], seed: int, rounds: int
) -> dict[str, Any]:
    """Milliseconds of each call, by subject; `subjects` are {label, target, role}, the reference first.

    Outputs are not looked at: only validated kernels are timed. A subject that raises is named in `failed`.
    """
    report.during("draw")
    arguments = {name: on_device(value) for name, value in draw_arguments(case, seed).items()}
    first = load(subjects[0]["target"], subjects[0]["role"])
    parameters = set(dict(first.module.named_parameters())) if first.module is not None else set()
    state = {k: v.cuda() for k, v in perturbed_state(first.state, parameters, seed).items()}
    ready: dict[str, Callable[[], Any]] = {}
    failed: dict[str, str] = {}
    for number, subject in enumerate(subjects):
        report.during(f"warm up {subject['label']}")
        report.progress(number, len(subjects), f"compiling and warming up {subject['label']}")
        try:
            loaded = first if number == 0 else load(subject["target"], subject["role"])
            if loaded.module is not None:
                loaded.module.cuda()
            call = bound(loaded, arguments, state)
            for _ in range(WARM_UP_CALLS):
                call()
            torch.cuda.synchronize()
            ready[subject["label"]] = call
        except Exception as error:
            failed[subject["label"]] = f"{type(error).__name__}: {error}"
    report.during("time")
    samples = timed(report, ready, rounds)
    return {"samples_ms": samples, "failed": failed, "device": torch.cuda.get_device_name()}


def bound(loaded: Any, arguments: dict[str, Any], state: dict[str, torch.Tensor]) -> Callable[[], Any]:
    """The call without gradients."""

    def call() -> Any:
        with torch.no_grad():
            return loaded(arguments, state)

    return call


def timed(report: Report, ready: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """`rounds` device times of each callable, all of them in turn in every round."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {label: [] for label in ready}
    for number in range(rounds):
        for label, call in ready.items():
            start, end = event(), event()
            flush.fill_(number % 127)
            start.record()
            call()
            end.record()
            events[label].append((start, end))
        torch.cuda.synchronize()
        if number % 20 == 0:
            report.progress(number, rounds, "timing")
    return {label: [a.elapsed_time(b) for a, b in pairs] for label, pairs in events.items()}


def event() -> torch.cuda.Event:
    """A device event that keeps time."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def on_device(value: Any) -> Any:
    """Tensors, also those in lists, on the device."""
    if isinstance(value, torch.Tensor):
        return value.cuda()
    return [on_device(v) for v in value] if isinstance(value, list) else value
