"""Robust statistics of timings, figures as text, and which timings a kernel is compared with."""

import math
import statistics
from collections.abc import Sequence

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


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Median and its 95 % confidence interval, from order statistics (no distribution assumed).

    The interval's ranks are the binomial ones, n/2 -+ 0.98 sqrt(n), widened to whole ranks (Le Boudec,
    Performance Evaluation of Computer and Communication Systems, 2010, section 2.2). Raises ValueError for no
    samples; under six samples the interval is the whole range.
    """
    if not samples:
        raise ValueError("a median needs samples")
    ordered = sorted(samples)
    n = len(ordered)
    reach = 0.98 * math.sqrt(n)
    low = max(math.floor(n / 2 - reach), 0)
    high = min(math.ceil(n / 2 + reach), n - 1)
    return statistics.median(ordered), ordered[low], ordered[high]


def spread(samples: Sequence[float]) -> float:
    """Interquartile range over the median; 0 for one sample. Raises ValueError for no samples.

    Samples are times, so the median is above 0.
    """
    if len(samples) == 1:
        return 0.0
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive")
    return (third - first) / statistics.median(samples)


def is_not_slower(low: float, reference_high: float) -> bool:
    """Whether an interval that starts at `low` is not wholly above one that ends at `reference_high`."""
    return low <= reference_high
