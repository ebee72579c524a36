"""Robust statistics of timing samples."""

import math
import statistics
from collections.abc import Sequence


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
