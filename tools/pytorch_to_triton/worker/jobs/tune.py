"""Job `tune`: find the fastest configurations of the autotuned kernels that a target launches, on the device.

Every configuration found is an item, the best so far too: a job that ends early keeps what it has found.
"""

import time

from .. import wire
from ..calls.call_inputs import generated_arguments, generated_state
from ..calls.exchange import CallInputs, map_tensors, state_like_input
from ..job_report import JobReport
from ..loading.target import load
from ..tuning.fresh_calls import FreshCalls
from ..tuning.session import TimingDevice, tune


def work(
    report: JobReport,
    target: wire.Target,
    reference: wire.Target,
    case: wire.Case,
    seed: int,
    seconds: float,
) -> dict[str, int]:
    """Tune for about `seconds`, the first compilations and the target's loading not counted.

    `reference` declares the inputs, and its state is the target's. The items are those of tuning/session.py.
    """
    report.during("load")
    calls = ready(target, reference, {**case, "seed": seed}, "cuda")
    return tune(report, calls, TimingDevice(), seconds, time.monotonic)


def ready(target: wire.Target, reference: wire.Target, case: wire.Case, device: str) -> FreshCalls:
    """The target with the case's inputs and the reference's state on the device."""
    origin = load(reference, "reference")
    state = generated_state(origin, case["seed"])
    candidate = load(target, "candidate").with_state(state, origin.unsaved)
    candidate.to_gpu()
    call = CallInputs(generated_arguments(origin, case), state)
    placed = map_tensors(call, lambda name, tensor: tensor.to(device))
    return FreshCalls(
        candidate, CallInputs(placed.arguments, state_like_input(placed.state, placed.arguments))
    )
