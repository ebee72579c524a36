"""Job `compiled`: what Triton's compiler makes of a target's kernels for a GPU, which need not be there.

The target is called once on CPU tensors; its launches are compiled for the GPU and not run.
"""

from pathlib import Path
from typing import Any

import torch

from ..calls.call_inputs import drawn
from ..calls.generate import draw_tensor, generator, laid_out
from ..calls.tensors import on_gpu
from ..failure import describe_failure
from ..job_report import Report
from ..loading.target import Loaded, load
from ..offline.dry_run import CompileRequest, DryRun
from ..offline.offline_gpu import OfflineGpu, compile_for, on

DRAWN_ELEMENTS = 2**22
"""Larger tensors hold one value throughout: no kernel reads them."""


def work(
    report: Report,
    candidate: dict[str, Any],
    reference: dict[str, Any] | None,
    case: dict[str, Any],
    gpu: dict[str, Any],
    wanted: dict[str, Any],
) -> dict[str, Any]:
    """An item `kernel` for each kernel and specialisation, as schema/compiled.py holds it.

    `case` is the JSON of inputs/case.py with a `seed`. `reference` is the target that declares the inputs and
    whose state a candidate function takes; None: the candidate itself. `wanted` holds `trials`, the numbers
    of the autotuners' trials to compile, and `texts`, the kinds to keep, and may hold the `folder` for them.
    The answer lists all `trials`, and the `failure` that ended the call early.
    """
    report.during("load")
    device = OfflineGpu(**{**gpu, "capability": tuple(gpu["capability"])})
    compile_for(device)
    with on(device):
        loaded = load(candidate, "candidate")
        declaring = load(reference, "reference") if reference else loaded
        for side in (loaded, declaring):
            side.to_gpu()
    report.during("draw")
    arguments = given(declaring, case, device)
    state = {} if loaded.module is not None else declaring.state
    folder = Path(wanted.get("folder") or report.folder / "texts")
    dry_run = DryRun(report, device, CompileRequest(wanted["trials"], wanted["texts"], folder))
    report.during("call")
    failure = None
    with on(device), dry_run, torch.no_grad():
        try:
            loaded(arguments, state)
        except (Exception, SystemExit) as error:
            failure = describe_failure(error, report.doing)
    return {"trials": dry_run.trials, "failure": failure}


def given(declaring: Loaded, case: dict[str, Any], gpu: OfflineGpu) -> dict[str, Any]:
    """The case's arguments on what stands for the GPU."""
    if case["arguments"]:
        return {argument["name"]: sketched(case, argument) for argument in case["arguments"]}
    with on(gpu):
        return {name: on_gpu(value) for name, value in drawn(declaring, case).items()}


def sketched(case: dict[str, Any], argument: dict[str, Any]) -> Any:
    """The argument as it is drawn for any call, unless that would take long."""
    if argument["form"] == "list":
        return [sketched(case, item) for item in argument["items"]]
    if argument["form"] == "constant":
        return argument["value"]
    if torch.Size(argument["shape"]).numel() <= DRAWN_ELEMENTS:
        return draw_tensor(argument, generator(case["seed"], case["name"], argument["name"]))
    dtype = getattr(torch, argument["dtype"])
    # Untouched memory is zero and costs nothing; only a range above zero needs to be written.
    low = max(argument["low"] or 0, 0)
    values = torch.zeros(argument["shape"], dtype=dtype)
    return laid_out(values.fill_(low) if low else values, argument["layout"])
