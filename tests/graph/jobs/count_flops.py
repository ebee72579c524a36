"""What torch itself counts: the floating-point operations of calls, by torch.utils.flop_counter."""

import runpy
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def work(report: Any, calls: dict[str, list[list[int]]]) -> dict[str, int]:
    """For each file the operations of its `f`, given float32 tensors of these shapes."""
    return {path: counted(runpy.run_path(path)["f"], shapes) for path, shapes in calls.items()}


def counted(function: Any, shapes: list[list[int]]) -> int:
    # The counter does not know the attention that the CPU would choose.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        function(*(torch.ones(shape) for shape in shapes))
    return counter.get_total_flops()
