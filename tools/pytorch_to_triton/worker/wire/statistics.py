"""What the comparison of a case measured, as job `reference` answers with it."""

from dataclasses import field
from typing import Literal

from .as_json import WireValue

Run = Literal["first", "second", "without_gradients", "gradients_apart"]


class Spread(WireValue):
    """Failing indices along one dimension, or in flattened order."""

    size: int
    count: int
    first: int
    last: int
    step: int
    """Greatest common step between neighbouring failing indices."""


class Diagnostics(WireValue):
    """Where the failing elements of an output lie, and what they have in common."""

    first: tuple[int, ...]
    """Index of the first failing element."""
    values: dict[str, float | str]
    """That element as `candidate`, `pytorch` and `truth` have it."""
    along: tuple[Spread, ...]
    """One a dimension."""
    flat: Spread
    share_of_box: float
    """Failing elements over the product of the counts along the dimensions."""
    unwritten: int = 0
    """Failing elements that hold what memory held before the candidate ran."""
    diagonal: int | None = None
    """Column minus row, where it is the same for all failing elements of the last two dimensions."""
    failing_nan: int
    failing_inf: int
    failing_zero: int
    truth_not_finite: int
    """Failing elements that are NaN or infinite in the truth."""
    constant: bool
    """All elements of the candidate have one value."""
    transposed: bool
    equals_input: str | None
    relative_error: float | None
    """Root mean square of the failing elements' error over that of their truth; None where that is zero."""
    rounded_to: str | None
    """The shorter dtype that holds every value of the candidate but not every true one."""
    factor: float | None
    factor_leaves: float | None
    """Share of the error that the best constant factor does not explain."""
    offset: float | None
    offset_leaves: float | None


class Traits(WireValue):
    """What is known of an output without reading its elements."""

    type: str
    dtype: str | None
    shape: tuple[int, ...] | None
    device: str | None


class OutputStatistics(WireValue):
    """One output that both sides returned."""

    path: str
    differs: str | None
    """The first trait in which the candidate differs from PyTorch."""
    candidate: Traits
    pytorch: Traits
    elements: int
    failing: int
    transposed: bool = False
    right_values: bool = False
    """Where only the dtype differs: the values are right for the shorter of both dtypes."""
    unjudged: int = 0
    unconfirmed: int = 0
    """Unjudged elements, finite in PyTorch and in the truth, at which the candidate is near neither."""
    as_truth: int = 0
    """Unjudged elements, finite in both, at which the candidate is near the truth and not near PyTorch."""
    as_pytorch: int = 0
    """The same at which it is near PyTorch."""
    candidate_error: float = 0.0
    pytorch_error: float = 0.0
    allowed_error: float = 0.0
    meets_strict: bool = True
    meets_loose: bool = True
    constant: bool = False
    """All of PyTorch's elements have one value."""
    diagnostics: Diagnostics | None = None
    """Set where elements fail."""


class CaseStatistics(WireValue):
    """All outputs of a case."""

    case: str
    missing: tuple[str, ...]
    """Paths that only the reference returned."""
    extra: tuple[str, ...]
    """Paths that only the candidate returned."""
    mutated: dict[str, str] = field(default_factory=dict)
    """The arguments that only the candidate wrote to, by the paths that they have as outputs."""
    outputs: tuple[OutputStatistics, ...]
    truth: str = "float64"
    """What the truth was computed in."""
    run: Run = "first"
    """The run with the most that is wrong, which these are of."""
    right_at_first: bool = False
    """Nothing is wrong in the first run: what is wrong is so in a further one."""
    inputs_untouched: bool = True
    """The bytes of the inputs were still those that were generated."""

    @property
    def same_outputs(self) -> bool:
        """Whether both sides returned, and wrote to, the same."""
        return not (self.missing or self.extra or self.mutated)
