"""Job `tune`: find the fastest configurations of the autotuned kernels that a target launches, on the device.

Each result is an item, the best so far too: a job that is ended early leaves what it has found.
"""

import time
from typing import Any

from ..calls.call_inputs import drawn, trained
from ..calls.exchange import CallInputs, following, mapped
from ..calls.generate import perturbed_state
from ..job_report import Report
from ..loading.target import load
from ..tuning.fresh_calls import FreshCalls
from ..tuning.session import tuned
from ..tuning.timing_device import TimingDevice


def work(
    report: Report,
    target: dict[str, Any],
    reference: dict[str, Any],
    case: dict[str, Any],
    seed: int,
    seconds: float,
) -> dict[str, Any]:
    """Tune for about `seconds`, the first compilations and the target's loading not counted.

    `reference` defines the inputs and where the target's state comes from; `case` is the JSON of
    inputs/case.py. The items are those of tuning/session.py; the answer is the number of `sites`.
    """
    report.during("load")
    calls = ready(target, reference, {**case, "seed": seed}, "cuda")
    return tuned(report, calls, TimingDevice(), seconds, time.monotonic)


def ready(target: dict[str, Any], reference: dict[str, Any], case: dict[str, Any], device: str) -> FreshCalls:
    """The target with the case's inputs and the reference's state on the device; `case` has its `seed`."""
    origin = load(reference, "reference")
    candidate = load(target, "candidate")
    state = perturbed_state(origin.state, trained(origin), case["seed"])
    candidate.take_state(state)
    candidate.to_gpu()
    call = CallInputs(drawn(origin, case), state)
    placed = mapped(call, lambda name, tensor: tensor.to(device))
    return FreshCalls(candidate, CallInputs(placed.arguments, following(placed.state, placed.arguments)))
