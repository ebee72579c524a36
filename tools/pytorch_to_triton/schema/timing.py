"""How long something took on a device."""

from pytorch_to_triton.schema.value import Value


class Timing(Value):
    """Device times of one callable, measured in turn with others."""

    label: str
    median_ms: float
    low_ms: float
    """Lower end of the median's 95 % confidence interval."""
    high_ms: float
    """Upper end of it."""
    calls: int
    gbytes_per_s: float | None = None
    """Each input read once and each output written once, over the median."""


class TimingTable(Value):
    """Timings of several callables in one run."""

    device: str
    dims: dict[str, int]
    dtypes: dict[str, str]
    """Of the tensors, by name."""
    bytes_moved: int
    """Each input once and each output once."""
    timings: tuple[Timing, ...]
    failed: dict[str, str]
    """What could not be timed, with the exception."""

    def of(self, label: str) -> Timing | None:
        """The timing of that label."""
        return next((t for t in self.timings if t.label == label), None)
