"""Job `compile`: what Triton's compiler makes of a target's kernels for a GPU, which need not be there.

The target is called once on CPU tensors; its launches are compiled for the GPU and not run.
"""

from typing import Any

import torch

from .. import wire
from ..calls.call_inputs import generated_arguments
from ..calls.generate import generate_argument, laid_out
from ..calls.gradients import NoGradient
from ..calls.tensors import leaves, on_gpu
from ..failure import describe_failure
from ..job_report import JobReport
from ..loading.target import Loaded, load
from ..offline.dry_run import DryRun
from ..offline.offline_gpu import compile_for, on

GENERATED_ELEMENTS = 2**22
"""Larger tensors hold one value throughout: no kernel reads them."""


def work(
    report: JobReport,
    candidate: wire.Target,
    reference: wire.Target | None,
    case: wire.Case,
    gpu: wire.OfflineGpu,
    request: wire.CompileRequest,
) -> wire.CompileAnswer:
    """An item for each kernel and specialisation that the call launches."""
    report.during("load")
    compile_for(gpu)
    with on(gpu):
        loaded = load(candidate, "candidate")
        declaring = load(reference, "reference") if reference else loaded
        loaded = loaded.without_unnamed(declaring.unsaved)
        for side in (loaded, declaring):
            side.to_gpu()
    report.during("generate inputs")
    arguments = arguments_on_gpu(declaring, case, gpu)
    state = {} if loaded.module is not None else declaring.state
    dry_run = DryRun(report, request)
    report.during("call")
    failure = None
    with on(gpu), dry_run.in_place_of_launches(), torch.set_grad_enabled(request.backward):
        try:
            call(loaded, arguments, state, backward=request.backward)
        except (Exception, SystemExit) as error:
            failure = describe_failure(error, report.phase)
    return wire.CompileAnswer(trials=tuple(dry_run.trials), failure=failure)


def call(loaded: Loaded, arguments: dict[str, Any], state: dict[str, Any], *, backward: bool) -> None:
    """Call the target, and with `backward` its backward pass.

    Raises NoGradient where no output has a history.
    """
    for _, value in leaves([arguments, state]) if backward else ():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value.requires_grad_()
    returned = [value for _, value in leaves(loaded(arguments, state)) if isinstance(value, torch.Tensor)]
    if backward:
        outputs = [value for value in returned if value.requires_grad]
        if not outputs:
            raise NoGradient("no output has a grad_fn: the backward pass has nothing to start from")
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])


def arguments_on_gpu(declaring: Loaded, case: wire.Case, gpu: wire.OfflineGpu) -> dict[str, Any]:
    """The case's arguments on the CPU that poses as the GPU."""
    if case["arguments"]:
        return {argument["name"]: sketch_argument(case, argument) for argument in case["arguments"]}
    with on(gpu):
        return {name: on_gpu(value) for name, value in generated_arguments(declaring, case).items()}


def sketch_argument(case: wire.Case, argument: wire.Json) -> Any:
    """The argument as for any call, unless generating it would take long."""
    if argument["form"] != "tensor" or torch.Size(argument["shape"]).numel() <= GENERATED_ELEMENTS:
        return generate_argument(case["name"], argument, case["seed"])
    # Untouched memory is zero and costs nothing; only a range above zero needs to be written.
    low = max(argument["low"] or 0, 0)
    values = torch.zeros(argument["shape"], dtype=getattr(torch, argument["dtype"]))
    return laid_out(values.fill_(low) if low else values, argument["layout"])
