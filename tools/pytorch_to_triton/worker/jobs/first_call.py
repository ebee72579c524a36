"""Job `first_call`: call the reference once, plainly, to see whether it runs on what is declared."""

from typing import Any

import torch

from ..calls.generate import draw_arguments
from ..job_report import Report
from ..loading.target import Loaded, load
from ..runtime import as_on_a_gpu, interpreting


def work(report: Report, target: dict[str, Any], case: dict[str, Any], device: str) -> dict[str, Any]:
    """Nothing where the call returns; whatever the user's code raises is the job's failure."""
    report.during("load")
    reference = load(target, "reference")
    reference.to_gpu()
    report.during("call")
    arguments = {name: on(value, device) for name, value in draw_arguments(case, case["seed"]).items()}
    with torch.no_grad():
        try:
            reference(arguments, reference.state)
        except Exception as error:
            if not interpreting():
                raise
            call_as_on_a_gpu(reference, arguments, error)
    return {}


def call_as_on_a_gpu(reference: Loaded, arguments: dict[str, Any], error: Exception) -> None:
    """Try again as code that was written for a GPU expects it; the first error is the one to tell."""
    try:
        with as_on_a_gpu():
            reference(arguments, reference.state)
    except Exception:
        raise error from None


def on(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [on(item, device) for item in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value
