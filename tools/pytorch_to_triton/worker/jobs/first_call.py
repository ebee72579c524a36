"""Job `first_call`: call the reference once, to see whether it runs on the declared inputs."""

from typing import Any

import torch

from .. import wire
from ..calls.generate import generate_arguments
from ..calls.tensors import on_gpu
from ..job_report import JobReport
from ..loading.target import load
from ..runtime import called_with_gpu


def work(report: JobReport, target: wire.Target, case: wire.Case, device: str) -> dict[str, Any]:
    """An empty answer where the call returns; whatever the user's code raises is the job's failure."""
    report.during("load")
    reference = load(target, "reference")
    reference.to_gpu()
    report.during("call")
    arguments = generate_arguments(case, case["seed"])
    if device == "cuda":
        arguments = {name: on_gpu(value) for name, value in arguments.items()}
    with torch.no_grad():
        called_with_gpu(lambda: reference(arguments, reference.state))
    return {}
