"""Job `tune`: find the fastest configurations of the autotuned kernels that a target launches, on the device.

Every configuration found is an item, the best so far too: a job that is ended early leaves what it has found.
"""

import time
from typing import Any

from .draw import perturbed_state
from .exchange import Call, following, mapped
from .given import drawn, trained
from .report import Report
from .target import load
from .tuning.calls import FreshCalls
from .tuning.gpu import Gpu
from .tuning.session import tuned


def work(
    report: Report,
    target: dict[str, Any],
    reference: dict[str, Any],
    case: dict[str, Any],
    seed: int,
    seconds: float,
) -> dict[str, Any]:
    """Tune for about `seconds`, the first compilations and the target's loading not counted.

    `reference` says what the inputs are and whose state the target gets; `case` is the JSON of
    schema/case.py. The items are those of tuning/session.py; the answer is the number of `sites`.
    """
    report.during("load")
    calls = ready(target, reference, {**case, "seed": seed}, "cuda")
    return tuned(report, calls, Gpu(), seconds, time.monotonic)


def ready(target: dict[str, Any], reference: dict[str, Any], case: dict[str, Any], device: str) -> FreshCalls:
    """The target with the case's inputs and the reference's state on the device; `case` has its `seed`."""
    origin = load(reference, "reference")
    candidate = load(target, "candidate")
    state = perturbed_state(origin.state, trained(origin), case["seed"])
    candidate.take_state(state)
    candidate.to_gpu()
    call = Call(drawn(origin, case), state)
    placed = mapped(call, lambda name, tensor: tensor.to(device))
    return FreshCalls(candidate, Call(placed.arguments, following(placed.state, placed.arguments)))
