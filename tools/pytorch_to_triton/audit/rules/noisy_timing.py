"""The times of a kernel lie far apart.

Small differences between such times say nothing.

Instead, measure again on a GPU that nothing else uses, at its full clock.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.benchmark.figures import size_of
from pytorch_to_triton.benchmark.flags import told
from pytorch_to_triton.schema.benchmark import KERNEL

SEVERITY = "info"
CATEGORY = "performance"
BAD = ('[{"timings": {"kernel": {"median_ms": 0.1, "spread": 0.4}, "eager": {"median_ms": 0.2}}}]',)
GOOD = (
    '[{"timings": {"kernel": {"median_ms": 0.1, "spread": 0.04}, "eager": {"median_ms": 0.2}}}]',
    '[{"timings": {"kernel": {"median_ms": 0.1}, "eager": {"median_ms": 0.2, "spread": 0.4}}}]',
)


def check(timed: TimedTarget) -> Iterator[Fault]:
    """All sizes at which the kernel's own times spread, in one finding."""
    noisy = [
        told(size_of(table), flag)
        for table in timed.result.tables
        for flag in table.flags
        if flag.kind == "noisy" and flag.label == KERNEL
    ]
    if noisy:
        yield Fault(
            timed.place,
            f"The times of {timed.who} lie far apart: small differences say nothing.",
            "Measure again on a GPU that nothing else uses.",
            proof=" ".join(noisy),
        )
