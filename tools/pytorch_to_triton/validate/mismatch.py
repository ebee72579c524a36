"""What is wrong with an output: the kind of mistake, where it shows, and its cause where that is certain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pytorch_to_triton.schema.verdict import Kind, Mismatch, Values
from pytorch_to_triton.validate.causes import CAUSES, causes_of
from pytorch_to_triton.validate.place import place_of
from pytorch_to_triton.validate.statistics import CaseStatistics, Facts, OutputStatistics

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
        *(wrong_values(output, known) for output in statistics.outputs if output.facts),
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
        says = f"{output.path} is transposed: shape {show(ours.shape)} for {show(theirs.shape)}, same values."
        return whole(output.path, "transposed", says)
    traits: dict[str, tuple[Kind, object, object]] = {
        "type": ("type", ours.type, theirs.type),
        "dtype": ("dtype", ours.dtype, theirs.dtype),
        "shape": ("shape", show(ours.shape), show(theirs.shape)),
        "device": ("device", ours.device, theirs.device),
    }
    kind, got, wanted = traits[output.differs or "type"]
    return whole(output.path, kind, f"{output.path} has {kind} {got}; PyTorch's has {wanted}.")


def whole(path: str, kind: Kind, says: str) -> Mismatch:
    """A mismatch that is not about single elements."""
    return Mismatch(output=path, kind=kind, where=None, says=says, causes=CAUSES[kind], first=None)


def wrong_values(output: OutputStatistics, known: Mapping[str, float]) -> Mismatch:
    """Elements that are beyond the error budget."""
    facts = output.facts
    assert facts is not None
    place = place_of(facts)
    rule = next(rule for rule in RULES if rule.fits(facts))
    first = Values(index=facts.first, **facts.values)
    ours = "unwritten" if rule.kind == "unwritten" else number(first.candidate)
    says = (
        f"{output.path} is wrong {place.words}: {rule.words(facts)}. First at {list(facts.first)}: "
        f"{ours}, PyTorch {number(first.pytorch)}, float64 {number(first.truth)}."
    )
    causes = causes_of(rule.kind, facts, place, known)
    return Mismatch(
        output=output.path, kind=rule.kind, where=place.where, says=says, causes=causes, first=first
    )


@dataclass(frozen=True)
class Rule:
    """A kind of wrong values: when it fits, and how it is told."""

    kind: Kind
    fits: Callable[[Facts], bool]
    words: Callable[[Facts], str]


RULES = (
    Rule("transposed", lambda f: f.transposed, lambda f: "it holds the right values transposed"),
    Rule(
        "unwritten",
        lambda f: f.unwritten == f.flat.count,
        lambda f: "never written, it holds what was in memory before",
    ),
    Rule(
        "not_propagated",
        lambda f: f.truth_not_finite == f.flat.count,
        lambda f: "NaN or infinity is due there, and something else is returned",
    ),
    Rule("nan_only", lambda f: f.failing_nan == f.flat.count, lambda f: "NaN instead of numbers"),
    Rule("infinite", lambda f: f.failing_inf == f.flat.count, lambda f: "infinities instead of numbers"),
    Rule("all_zero", lambda f: f.failing_zero == f.flat.count, lambda f: "zero instead of numbers"),
    Rule("equals_input", lambda f: bool(f.equals_input), lambda f: f"it equals the input {f.equals_input}"),
    Rule("constant", lambda f: f.constant and f.flat.size > 1, lambda f: "every element has the same value"),
    Rule(
        "constant_factor",
        lambda f: is_constant_error(f) and explained(f.factor_leaves) and not explained(f.offset_leaves),
        lambda f: f"the right values times a constant {f.factor:.6g}",
    ),
    Rule(
        "constant_offset",
        lambda f: is_constant_error(f) and explained(f.offset_leaves) and not explained(f.factor_leaves),
        lambda f: f"the right values plus a constant {f.offset:.6g}",
    ),
    Rule(
        "low_precision",
        lambda f: f.rounded_to is not None or is_imprecise(f),
        lambda f: (
            f"only as precise as {f.rounded_to}"
            if f.rounded_to
            else f"off by a few digits, {f.relative_error:.2g} of its size"
        ),
    ),
    Rule("values", lambda f: True, lambda f: "other values"),
)
"""The first that fits is told."""


def explained(leaves: float | None) -> bool:
    return leaves is not None and leaves < EXPLAINED


def is_constant_error(facts: Facts) -> bool:
    """Whether enough elements fail, in a place of their own, for a factor or offset to be no chance."""
    return facts.flat.count >= FEWEST and place_of(facts).where != "scattered"


def is_imprecise(facts: Facts) -> bool:
    """A small error all over, rather than a large one in places."""
    small = facts.relative_error is not None and facts.relative_error < LOW_PRECISION
    return small and all(axis.count * 2 > axis.size for axis in facts.along)


def number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def show(shape: tuple[int, ...] | None) -> str:
    return str(list(shape or ()))
