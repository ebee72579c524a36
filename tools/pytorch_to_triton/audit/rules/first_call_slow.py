"""The first call takes seconds, for the autotuner tries each configuration.

So does the first call at each new key: services stall, and tests are slow.

Instead, freeze the configurations that were found, or give fewer of them.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import TimedTarget
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.benchmark.figures import size_of
from pytorch_to_triton.schema.benchmark import KERNEL

SEVERITY = "info"
CATEGORY = "performance"
BAD = (
    """[{
    "tuned": true,
    "timings": {"kernel": {"median_ms": 0.1, "first_call_ms": 8000}, "eager": {"median_ms": 0.2}}
}]""",
)
GOOD = (
    """[{
    "tuned": true,
    "timings": {"kernel": {"median_ms": 0.1, "first_call_ms": 900}, "eager": {"median_ms": 0.2}}
}]""",
    """[{
    "timings": {"kernel": {"median_ms": 0.1, "first_call_ms": 8000}, "eager": {"median_ms": 0.2}}
}]""",
)
_SLOW_MS = 3000.0


def check(timed: TimedTarget) -> Iterator[Fault]:
    """The slowest first call of an autotuned kernel."""
    first = {
        size_of(table): kernel.first_call_ms
        for table in timed.result.tables
        if (kernel := table.of(KERNEL)) and kernel.first_call_ms
    }
    size = max(first, key=lambda one: first[one], default="")
    if timed.result.tuned and size and first[size] > _SLOW_MS:
        yield Fault(
            timed.place,
            f"The first call of {timed.who} tries each configuration, at every new key again.",
            "Freeze the configurations that were found, or give fewer of them.",
            proof=f"At {size} the first call took {first[size] / 1000:.1f} s.",
        )
