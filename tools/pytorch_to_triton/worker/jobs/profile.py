"""Job `profiled`: call a target on the GPU so that a profiler sees its kernels, not their compilation."""

import json
from typing import Any

import torch

from ..calls.call_inputs import drawn
from ..calls.generate import draw_arguments
from ..calls.tensors import on_gpu
from ..job_report import Report
from ..loading.target import Loaded, load

WARM_UP_CALLS = 2
PROTON_CALLS = 10


def work(
    report: Report,
    candidate: dict[str, Any],
    reference: dict[str, Any] | None,
    case: dict[str, Any],
    profiler: str,
) -> dict[str, Any]:
    """`device`, and Proton's `tree` over so many `calls`; ncu, which runs this process, sees one call.

    `case` is the JSON of inputs/case.py with a `seed`. `reference` is the target that declares the inputs and
    whose state a candidate function takes; None: the candidate itself.
    """
    report.during("load")
    loaded = load(candidate, "candidate")
    declaring = load(reference, "reference") if reference else loaded
    report.during("draw")
    given = draw_arguments(case, case["seed"]) if case["arguments"] else drawn(declaring, case)
    arguments = {name: on_gpu(value) for name, value in given.items()}
    state = {} if loaded.module else {name: value.cuda() for name, value in declaring.state.items()}
    loaded.to_gpu()
    report.during("warm up")
    for _ in range(WARM_UP_CALLS):
        call(loaded, arguments, state)
    report.during(f"profile with {profiler}")
    device = torch.cuda.get_device_name()
    if profiler == "proton":
        return {"device": device, "calls": PROTON_CALLS, "tree": traced(report, loaded, arguments, state)}
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    call(loaded, arguments, state)
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
    return {"device": device, "calls": 1, "tree": []}


def call(loaded: Loaded, arguments: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
    """Once, without gradients, to its end."""
    with torch.no_grad():
        loaded(arguments, state)
    torch.cuda.synchronize()


def traced(
    report: Report, loaded: Loaded, arguments: dict[str, Any], state: dict[str, torch.Tensor]
) -> list[Any]:
    """Proton's tree of the calls, as it writes it."""
    import triton.profiler as proton

    name = report.folder / "proton"
    proton.start(str(name), hook="triton")
    for _ in range(PROTON_CALLS):
        call(loaded, arguments, state)
    proton.finalize()
    tree: list[Any] = json.loads(name.with_suffix(".hatchet").read_text(encoding="utf-8"))
    return tree
