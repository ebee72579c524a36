"""A kernel takes more than twice the time that its work must take on this GPU.

The limit is what the memory moves or the arithmetic units compute at their measured best. At the largest
size launching plays no part any more, so that the rest is the kernel's.

Instead, look for what it reads twice, for narrow accesses, and for too few programs or warps.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.benchmark.figures import size_of
from pytorch_to_triton.benchmark.flags import told

SEVERITY = "low"
CATEGORY = "performance"
BAD = ('[{"limit_ms": 0.05, "timings": {"kernel": {"median_ms": 0.2}, "eager": {"median_ms": 0.4}}}]',)
GOOD = (
    '[{"limit_ms": 0.05, "timings": {"kernel": {"median_ms": 0.06}, "eager": {"median_ms": 0.4}}}]',
    '[{"limit_ms": 0.001, "timings": {"kernel": {"median_ms": 0.02}, "eager": {"median_ms": 0.4}}}]',
    """[
    {"limit_ms": 0.02, "timings": {"kernel": {"median_ms": 0.05}, "eager": {"median_ms": 0.4}}},
    {"limit_ms": 0.50, "timings": {"kernel": {"median_ms": 0.55}, "eager": {"median_ms": 4.0}}}
]""",
)


def check(timed: TimedTarget) -> Iterator[Fault]:
    """The largest size; those below it have launches to pay for."""
    if timed.result.verdict == "void" or not timed.result.tables:
        return
    largest = timed.result.tables[-1]
    for flag in largest.flags:
        if flag.kind == "below_half_of_limit":
            yield Fault(
                timed.place,
                f"{timed.who} takes more than twice the least time at its largest size.",
                "Look for what it reads twice, for narrow accesses, and for too few programs or warps.",
                proof=told(size_of(largest), flag),
            )
