"""What is wrong with an output: the kind of mistake, where it is, and its cause where that is certain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from pytorch_to_triton.schema.verdict import ElementValues, Kind, Mismatch
from pytorch_to_triton.validate.likely_causes import CAUSES, causes_of
from pytorch_to_triton.validate.place import place_of
from pytorch_to_triton.worker.wire.statistics import CaseStatistics, Diagnostics, OutputStatistics

EXPLAINED = 2.0**-6
"""A constant factor or offset is named when it leaves less than this share of the error."""
FEWEST = 4
"""A constant factor or offset of fewer elements is chance."""
LOW_PRECISION = 2.0**-6
"""Relative error up to which a wrong result looks like one computed in bfloat16, float16 or TF32."""

UNLIKE = "which the reference does not"
NOTHING_KNOWN: Mapping[str, float] = {}


def mismatches_of(
    statistics: CaseStatistics, numbers: Mapping[str, float] = NOTHING_KNOWN
) -> tuple[Mismatch, ...]:
    """Everything that is wrong in a case; `numbers` are its sizes and numbers by name."""
    return (
        *(whole(p, "missing_output", f"The candidate does not return {p}.") for p in statistics.missing),
        *(whole(p, "extra_output", f"The candidate returns {p}, {UNLIKE}.") for p in statistics.extra),
        *(
            whole(path, "mutates_input", f"The candidate writes to its input {name}, {UNLIKE}.")
            for path, name in statistics.mutated.items()
        ),
        *(different(output) for output in statistics.outputs if output.differs),
        *(wrong_values(output, numbers) for output in statistics.outputs if output.diagnostics),
    )


def different(output: OutputStatistics) -> Mismatch:
    """Type, dtype, shape or device is not PyTorch's."""
    ours, theirs = output.candidate, output.pytorch
    if output.transposed:
        message = (
            f"{output.path} is transposed: it has shape {show(ours.shape)} instead of {show(theirs.shape)}, "
            "with the same values."
        )
        return whole(output.path, "transposed", message)
    kind = cast("Kind", output.differs or "type")
    got, expected = (show(side.shape) if kind == "shape" else getattr(side, kind) for side in (ours, theirs))
    return whole(output.path, kind, f"{output.path} has {kind} {got} instead of {expected}.")


def whole(path: str, kind: Kind, message: str) -> Mismatch:
    """A mismatch that is not about single elements."""
    return Mismatch(output=path, kind=kind, where=None, message=message, causes=CAUSES[kind], first=None)


def wrong_values(output: OutputStatistics, numbers: Mapping[str, float]) -> Mismatch:
    """Elements that are beyond the error budget."""
    diagnostics = output.diagnostics
    assert diagnostics is not None
    place = place_of(diagnostics)
    rule = next(rule for rule in RULES if rule.fits(diagnostics))
    first = ElementValues(index=diagnostics.first, **diagnostics.values)
    ours = "unwritten" if rule.kind == "unwritten" else number(first.candidate)
    message = (
        f"{output.path} is wrong {place.text}: {rule.text(diagnostics)}. First at {list(diagnostics.first)}: "
        f"{ours}, PyTorch {number(first.pytorch)}, float64 {number(first.truth)}."
    )
    causes = causes_of(rule.kind, diagnostics, place, numbers)
    return Mismatch(
        output=output.path, kind=rule.kind, where=place.where, message=message, causes=causes, first=first
    )


@dataclass(frozen=True)
class MismatchRule:
    """A kind of wrong values: when it fits, and how it is described."""

    kind: Kind
    fits: Callable[[Diagnostics], bool]
    text: Callable[[Diagnostics], str]


RULES = (
    MismatchRule("transposed", lambda f: f.transposed, lambda f: "it holds the right values transposed"),
    MismatchRule(
        "unwritten",
        lambda f: f.unwritten == f.flat.count,
        lambda f: "never written, it still holds what was in memory before",
    ),
    MismatchRule(
        "not_propagated",
        lambda f: f.truth_not_finite == f.flat.count,
        lambda f: "NaN or infinity is expected, and something else is returned",
    ),
    MismatchRule("nan_only", lambda f: f.failing_nan == f.flat.count, lambda f: "NaN instead of numbers"),
    MismatchRule(
        "infinite", lambda f: f.failing_inf == f.flat.count, lambda f: "infinities instead of numbers"
    ),
    MismatchRule("all_zero", lambda f: f.failing_zero == f.flat.count, lambda f: "zero instead of numbers"),
    MismatchRule(
        "equals_input", lambda f: bool(f.equals_input), lambda f: f"it equals the input {f.equals_input}"
    ),
    MismatchRule(
        "constant", lambda f: f.constant and f.flat.size > 1, lambda f: "every element has the same value"
    ),
    MismatchRule(
        "constant_factor",
        lambda f: (
            is_constant_error(f) and is_explained(f.factor_leaves) and not is_explained(f.offset_leaves)
        ),
        lambda f: f"the right values times a constant {f.factor:.6g}",
    ),
    MismatchRule(
        "constant_offset",
        lambda f: (
            is_constant_error(f) and is_explained(f.offset_leaves) and not is_explained(f.factor_leaves)
        ),
        lambda f: f"the right values plus a constant {f.offset:.6g}",
    ),
    MismatchRule(
        "low_precision",
        lambda f: f.rounded_to is not None or is_imprecise(f),
        lambda f: (
            f"only as precise as {f.rounded_to}"
            if f.rounded_to
            else f"off by a few digits, by {f.relative_error:.2g} of its size"
        ),
    ),
    MismatchRule("values", lambda f: True, lambda f: "the values differ"),
)
"""The first that fits counts."""


def is_explained(leaves: float | None) -> bool:
    return leaves is not None and leaves < EXPLAINED


def is_constant_error(diagnostics: Diagnostics) -> bool:
    """Whether enough elements fail, in a place of their own, for a factor or offset to be no chance."""
    return diagnostics.flat.count >= FEWEST and place_of(diagnostics).where != "scattered"


def is_imprecise(diagnostics: Diagnostics) -> bool:
    """A small error all over, rather than a large one in places."""
    small = diagnostics.relative_error is not None and diagnostics.relative_error < LOW_PRECISION
    return small and all(axis.count * 2 > axis.size for axis in diagnostics.along)


def number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def show(shape: tuple[int, ...] | None) -> str:
    return str(list(shape or ()))
