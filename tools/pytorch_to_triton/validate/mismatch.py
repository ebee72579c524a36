"""What is wrong with an output: the kind of mistake, where it shows, and its cause where that is certain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytorch_to_triton.schema.verdict import ElementValues, Kind, Mismatch
from pytorch_to_triton.validate.error_statistics import CaseStatistics, Diagnostics, OutputStatistics
from pytorch_to_triton.validate.likely_causes import CAUSES, causes_of
from pytorch_to_triton.validate.place import place_of

AFTER_THE_CALL = " after the call"
EXPLAINED = 2.0**-6
"""A constant factor or offset is named when it leaves less than this share of the error."""
FEWEST = 4
"""A constant factor or offset of fewer elements is chance."""
LOW_PRECISION = 2.0**-6
"""Relative error up to which a wrong result looks like one computed in bfloat16, float16 or TF32."""

NOTHING_KNOWN: Mapping[str, float] = {}


def mismatches_of(
    statistics: CaseStatistics, known: Mapping[str, float] = NOTHING_KNOWN
) -> tuple[Mismatch, ...]:
    """Everything that is wrong in a case; `known` are its sizes and numbers by name."""
    return (
        *(missing(path) for path in statistics.missing),
        *(extra(path) for path in statistics.extra),
        *(different(output) for output in statistics.outputs if output.differs),
        *(wrong_values(output, known) for output in statistics.outputs if output.diagnostics),
    )


def missing(path: str) -> Mismatch:
    return whole(path, "missing_output", f"{path} is missing from what the candidate returns.")


def extra(path: str) -> Mismatch:
    if path.endswith(AFTER_THE_CALL):
        name = path.removesuffix(AFTER_THE_CALL)
        return whole(
            path, "mutates_input", f"The candidate writes to its input {name}; the reference does not."
        )
    return whole(path, "extra_output", f"The candidate returns {path}, which the reference does not.")


def different(output: OutputStatistics) -> Mismatch:
    """Type, dtype, shape or device is not PyTorch's."""
    ours, theirs = output.candidate, output.pytorch
    if output.transposed:
        message = (
            f"{output.path} is transposed: shape {show(ours.shape)} for {show(theirs.shape)}, same values."
        )
        return whole(output.path, "transposed", message)
    traits: dict[str, tuple[Kind, object, object]] = {
        "type": ("type", ours.type, theirs.type),
        "dtype": ("dtype", ours.dtype, theirs.dtype),
        "shape": ("shape", show(ours.shape), show(theirs.shape)),
        "device": ("device", ours.device, theirs.device),
    }
    kind, got, wanted = traits[output.differs or "type"]
    return whole(output.path, kind, f"{output.path} has {kind} {got}; PyTorch's has {wanted}.")


def whole(path: str, kind: Kind, message: str) -> Mismatch:
    """A mismatch that is not about single elements."""
    return Mismatch(output=path, kind=kind, where=None, message=message, causes=CAUSES[kind], first=None)


def wrong_values(output: OutputStatistics, known: Mapping[str, float]) -> Mismatch:
    """Elements that are beyond the error budget."""
    facts = output.diagnostics
    assert facts is not None
    place = place_of(facts)
    rule = next(rule for rule in RULES if rule.fits(facts))
    first = ElementValues(index=facts.first, **facts.values)
    ours = "unwritten" if rule.kind == "unwritten" else number(first.candidate)
    message = (
        f"{output.path} is wrong {place.words}: {rule.words(facts)}. First at {list(facts.first)}: "
        f"{ours}, PyTorch {number(first.pytorch)}, float64 {number(first.truth)}."
    )
    causes = causes_of(rule.kind, facts, place, known)
    return Mismatch(
        output=output.path, kind=rule.kind, where=place.where, message=message, causes=causes, first=first
    )


@dataclass(frozen=True)
class MismatchRule:
    """A kind of wrong values: when it fits, and how it is told."""

    kind: Kind
    fits: Callable[[Diagnostics], bool]
    words: Callable[[Diagnostics], str]


RULES = (
    MismatchRule("transposed", lambda f: f.transposed, lambda f: "it holds the right values transposed"),
    MismatchRule(
        "unwritten",
        lambda f: f.unwritten == f.flat.count,
        lambda f: "never written, it holds what was in memory before",
    ),
    MismatchRule(
        "not_propagated",
        lambda f: f.truth_not_finite == f.flat.count,
        lambda f: "NaN or infinity is due there, and something else is returned",
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
        lambda f: is_constant_error(f) and explained(f.factor_leaves) and not explained(f.offset_leaves),
        lambda f: f"the right values times a constant {f.factor:.6g}",
    ),
    MismatchRule(
        "constant_offset",
        lambda f: is_constant_error(f) and explained(f.offset_leaves) and not explained(f.factor_leaves),
        lambda f: f"the right values plus a constant {f.offset:.6g}",
    ),
    MismatchRule(
        "low_precision",
        lambda f: f.rounded_to is not None or is_imprecise(f),
        lambda f: (
            f"only as precise as {f.rounded_to}"
            if f.rounded_to
            else f"off by a few digits, {f.relative_error:.2g} of its size"
        ),
    ),
    MismatchRule("values", lambda f: True, lambda f: "other values"),
)
"""The first that fits is told."""


def explained(leaves: float | None) -> bool:
    return leaves is not None and leaves < EXPLAINED


def is_constant_error(facts: Diagnostics) -> bool:
    """Whether enough elements fail, in a place of their own, for a factor or offset to be no chance."""
    return facts.flat.count >= FEWEST and place_of(facts).where != "scattered"


def is_imprecise(facts: Diagnostics) -> bool:
    """A small error all over, rather than a large one in places."""
    small = facts.relative_error is not None and facts.relative_error < LOW_PRECISION
    return small and all(axis.count * 2 > axis.size for axis in facts.along)


def number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def show(shape: tuple[int, ...] | None) -> str:
    return str(list(shape or ()))
