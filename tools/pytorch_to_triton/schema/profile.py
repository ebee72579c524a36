"""What hardware counters, or a tracing profiler, say about kernels that really ran."""

from typing import Literal

from pydantic import Field

from pytorch_to_triton.schema.value import Value

Profiler = Literal["ncu", "proton"]


class KernelProfile(Value):
    """One kernel of a call; None is: not available."""

    name: str
    launches: int
    microseconds: float
    """Of all its launches in the call."""
    dram_gbytes_per_s: float | None = None
    dram_share: float | None = None
    """Of the device's peak DRAM throughput."""
    dram_bytes: int | None = None
    """Read and written."""
    achieved_occupancy: float | None = None
    """Warps that were active, over the most that an SM holds."""
    registers: int | None = None
    """A thread's."""
    tensor_share: float | None = None
    """Of the cycles in which the tensor cores were busy."""
    stalls: dict[str, float] = Field(default_factory=dict)
    """Warps waiting for each reason, on average, whenever an instruction was issued; the largest first."""
    flops: float | None = None
    """As the kernel's own launch metadata declares them to Proton."""
    bytes_moved: float | None = None
    """Likewise."""


class Profile(Value):
    """A call under a profiler."""

    profiler: Profiler
    device: str
    provenance: str
    """`measured`, by what and under which conditions."""
    kernels: tuple[KernelProfile, ...]
    """In the order of their time, longest first."""
