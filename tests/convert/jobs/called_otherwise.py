"""A drafted `run`, called as it was not drafted for: what it raises, or that it ran."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..loading.target_file import load_file


def work(report: Any, file: str) -> dict[str, str]:
    """The file's `run(x, w)` takes float32 and bfloat16 x: [3, 9] and float32 w: [9]."""
    module = load_file(Path(file))
    x, w = torch.randn(3, 9), torch.randn(9)
    parameter = torch.nn.Parameter(torch.randn(9))

    def without_grad() -> None:
        with torch.no_grad():
            module.run(x, parameter)

    return {
        "as drafted": raised(lambda: module.run(x.bfloat16(), w)),
        "x in float64": raised(lambda: module.run(x.double(), w)),
        "w in bfloat16": raised(lambda: module.run(x, w.bfloat16())),
        "w elsewhere": raised(lambda: module.run(x, w.to("meta"))),
        "w requires grad": raised(lambda: module.run(x, parameter)),
        "w requires grad under no_grad": raised(without_grad),
        "w detached": raised(lambda: module.run(x, parameter.detach())),
    }


def raised(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ran"
