"""What a worker measured and observed of a case, with changes."""

from typing import Any

from pytorch_to_triton.worker.wire.observation import MemoryFault, ObservedLaunch
from pytorch_to_triton.worker.wire.statistics import CaseStatistics, OutputStatistics, Traits

TENSOR = Traits(type="Tensor", dtype="float32", shape=(8,), device="cpu")
LAUNCH = ObservedLaunch(kernel="add_kernel", file="k.py", line=3, count=1, atomics=False)
FAULT = MemoryFault(
    kind="store_outside",
    kernel="add_kernel",
    file="k.py",
    line=12,
    source="tl.store(out_ptr + i, x)",
    tensor="out_ptr",
    offset=100,
    elements=100,
    count=28,
    program=(3, 0, 0),
    detail="writes element 100 of 100",
)


def output(**figures: Any) -> OutputStatistics:
    """One output that is right."""
    right = {
        "path": "out",
        "differs": None,
        "candidate": TENSOR,
        "pytorch": TENSOR,
        "elements": 8,
        "failing": 0,
    }
    return OutputStatistics(**{**right, **figures})


def statistics(*outputs: OutputStatistics, **about: Any) -> CaseStatistics:
    return CaseStatistics(**{"case": "N=8", "missing": (), "extra": (), "outputs": outputs, **about})
