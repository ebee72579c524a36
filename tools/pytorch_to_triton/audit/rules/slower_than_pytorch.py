"""A kernel is slower than PyTorch at some size.

Beyond the spread of both timings: whoever calls it there would fare better without it.

Instead, tune it at these sizes, or leave them to PyTorch.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.benchmark.figures import size_of
from pytorch_to_triton.benchmark.flags import SLOWER_THAN, told

SEVERITY = "medium"
CATEGORY = "performance"
BAD = (
    '[{"timings": {"kernel": {"median_ms": 0.2}, "eager": {"median_ms": 0.1}}}]',
    """[
    {"timings": {"kernel": {"median_ms": 0.1}, "eager": {"median_ms": 0.2}}},
    {"timings": {"kernel": {"median_ms": 0.5}, "compile": {"median_ms": 0.4}}}
]""",
)
GOOD = (
    '[{"timings": {"kernel": {"median_ms": 0.1}, "eager": {"median_ms": 0.2}}}]',
    '[{"timings": {"kernel": {"median_ms": 0.101}, "eager": {"median_ms": 0.1}}}]',
    '[{"timings": {"kernel": {"median_ms": 0.2}, "other.py": {"median_ms": 0.1}}}]',
)


def check(timed: TimedTarget) -> Iterator[Fault]:
    """All sizes at which it is slower, in one finding."""
    if timed.result.verdict != "slower":
        return
    tables = timed.result.tables
    slower = [(size_of(t), flag) for t in tables for flag in t.flags if flag.kind in SLOWER_THAN.values()]
    if slower:
        sizes = ", ".join(dict.fromkeys(size for size, _ in slower))
        yield Fault(
            timed.place,
            f"{timed.who} is slower than PyTorch at {sizes}.",
            "Tune it at these sizes, or call PyTorch there.",
            proof=" ".join(told(size, flag) for size, flag in slower),
        )
