"""Job `profile`: call a target on the GPU so that a profiler sees its kernels, not their compilation."""

import json
from typing import Any

import torch

from .. import wire
from ..calls.call_inputs import generated_arguments
from ..calls.tensors import on_gpu
from ..job_report import JobReport
from ..loading.target import Loaded, load

WARM_UP_CALLS = 2
PROTON_CALLS = 10


def work(
    report: JobReport,
    candidate: wire.Target,
    reference: wire.Target | None,
    case: wire.Case,
    profiler: str,
) -> dict[str, Any]:
    """Warm up, then call under the profiler: Proton, or ncu, which runs this process and sees one call."""
    report.during("load")
    loaded = load(candidate, "candidate")
    declaring = load(reference, "reference") if reference else loaded
    loaded = loaded.without_unnamed(declaring.unsaved)
    report.during("generate inputs")
    arguments = {name: on_gpu(value) for name, value in generated_arguments(declaring, case).items()}
    state = {} if loaded.module else {name: value.cuda() for name, value in declaring.state.items()}
    loaded.to_gpu()
    report.during("warm up")
    for _ in range(WARM_UP_CALLS):
        call(loaded, arguments, state)
    report.during(f"profile with {profiler}")
    device = torch.cuda.get_device_name()
    if profiler == "proton":
        return {
            "device": device,
            "calls": PROTON_CALLS,
            "tree": trace_calls(report, loaded, arguments, state),
        }
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    call(loaded, arguments, state)
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
    return {"device": device, "calls": 1, "tree": []}


def call(loaded: Loaded, arguments: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
    """Call once, without gradients, and wait for the device."""
    with torch.no_grad():
        loaded(arguments, state)
    torch.cuda.synchronize()


def trace_calls(
    report: JobReport, loaded: Loaded, arguments: dict[str, Any], state: dict[str, torch.Tensor]
) -> list[Any]:
    """Proton's tree of the calls, as Proton writes it."""
    import triton.profiler as proton

    name = report.folder / "proton"
    proton.start(str(name), hook="triton")
    for _ in range(PROTON_CALLS):
        call(loaded, arguments, state)
    proton.finalize()
    tree: list[Any] = json.loads(name.with_suffix(".hatchet").read_text(encoding="utf-8"))
    return tree
