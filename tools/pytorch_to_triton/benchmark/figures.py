"""Figures as text, and which timings a kernel is compared with."""

from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.schema.benchmark import FROZEN, KERNEL
from pytorch_to_triton.schema.timing import Timing, TimingTable

PASSES = {"forward": "forward pass", "backward": "backward pass", "both": "forward and backward pass"}


def baselines(table: TimingTable) -> list[Timing]:
    """All timings but the kernel's, with tuned configurations or without."""
    return [timing for timing in table.timings if timing.label not in (KERNEL, FROZEN)]


def percent(share: float) -> str:
    """`85 %`; what is not nothing is never 0 %."""
    return f"{100 * share:.0f} %" if share >= 0.005 or share == 0 else "under 1 %"


def digits(number: float) -> str:
    """Milliseconds or the like to four places, or to two digits that count where those are zeros."""
    return f"{number:,.4f}" if number >= 0.001 or number == 0 else f"{number:.2g}"


def size_of(table: TimingTable) -> str:
    """`M=8192 N=4096`."""
    return point_name(table.dims) or "its own sizes"
