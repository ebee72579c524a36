"""What is wrong with an output: the kind of mistake, where it shows, and what usually causes it."""

from collections.abc import Callable
from dataclasses import dataclass

from pytorch_to_triton.schema.verdict import Kind, Mismatch, Values, Where
from pytorch_to_triton.validate.place import place_of
from pytorch_to_triton.validate.statistics import CaseStatistics, Facts, OutputStatistics

AFTER_THE_CALL = " after the call"
EXPLAINED = 0.1
"""A constant factor or offset is named when it leaves less than this share of the error."""
LOW_PRECISION = 2.0**-6
"""Relative error up to which a wrong result looks like one computed in bfloat16, float16 or TF32."""

CAUSES: dict[Kind, tuple[str, ...]] = {
    "missing_output": ("run returns fewer values than reference, or under other names.",),
    "extra_output": ("run returns more values than reference, or under other names.",),
    "mutates_input": (
        "A tl.store goes to a pointer of an input; allocate the output with torch.empty_like.",
        "A contiguous() or view() of the input returned the input itself, and the kernel writes to it.",
    ),
    "type": ("run returns a tensor where reference returns a Python number, or the reverse.",),
    "dtype": (
        "The output is allocated with the input's dtype, or with the accumulator's; use the reference's.",
    ),
    "shape": ("The output is allocated in another shape; keepdim and squeeze are the usual suspects.",),
    "device": ("The output is allocated without device=x.device.",),
    "transposed": (
        "Row and column strides are swapped in the pointer arithmetic of the load or of the store.",
        "The reference returns a transposed view, and the output was allocated in the order of its memory.",
    ),
    "unwritten": (
        "No program stores these elements: the grid is too small, or the mask of the store too narrow.",
        "The output is allocated larger than what the kernel fills.",
    ),
    "nan_only": (
        "Masked lanes take part in the arithmetic: a load without `other`, or 0/0 and inf - inf in them.",
        "A maximum starts at 0 or is not subtracted before exp, so that exp overflows.",
        "A buffer from torch.empty is read before it is written.",
    ),
    "infinite": (
        "exp or a sum overflows: subtract the row's maximum first, accumulate in float32.",
        "A division by a length, norm or variance that is zero here; eps is missing.",
    ),
    "not_propagated": (
        "tl.maximum, tl.minimum, tl.max and tl.min drop NaN unless asked to propagate it.",
        "A comparison or tl.where sends NaN to the wrong branch; NaN compares false with everything.",
        "Terms are skipped or grouped otherwise (inf * 0); where no infinity occurs, declare a range.",
    ),
    "all_zero": (
        "These elements are never stored, or are stored from an accumulator that was never added to.",
        "A mask is false for every lane, or an integer division truncates to 0.",
    ),
    "equals_input": ("The input is stored unchanged: the result is never used, or the wrong name is.",),
    "constant": ("One value is stored everywhere: an index is missing from the pointer arithmetic.",),
    "constant_factor": (
        "A factor is missing or applied twice: 1/N of a mean, a scale, log2(e) for exp2.",
        "A mean divides by the padded block size instead of the true length, or N stands for N - 1.",
    ),
    "constant_offset": ("A bias, eps or shift is missing, added twice, or has the wrong sign.",),
    "low_precision": (
        "A sum is kept in float16 or bfloat16; accumulate in float32 and round once, at the store.",
        "tl.dot on float32 uses TF32; pass input_precision='ieee'.",
        "An intermediate result is rounded to a short dtype on its way.",
    ),
    "values": ("The formula differs from the reference's, or the elements are read from the wrong places.",),
}  # fmt: skip
CAUSES_BY_PLACE: dict[Where, tuple[str, ...]] = {
    "tail": (
        "The last, partial tile is dropped: the grid is n // BLOCK where triton.cdiv(n, BLOCK) is needed.",
        "The mask of the last tile compares with the wrong length, or is missing on the load or the store.",
    ),
    "one_index": ("A boundary is off by one: `<` for `<=`, or a first or last index that is treated apart.",),
    "diagonal": ("A comparison of row and column is off by one: `<` for `<=` in a causal mask.",),
    "every_nth": ("A stride, or the step of a loop over tiles, does not match the tensor's.",),
}  # fmt: skip
PLACE_FIRST: tuple[Kind, ...] = ("values", "all_zero", "nan_only", "unwritten")
"""Kinds that say less about the cause than the place does."""


def mismatches_of(statistics: CaseStatistics) -> tuple[Mismatch, ...]:
    """Everything that is wrong in a case; empty when nothing is."""
    return (
        *(missing(path) for path in statistics.missing),
        *(extra(path) for path in statistics.extra),
        *(different(output) for output in statistics.outputs if output.differs),
        *(wrong_values(output) for output in statistics.outputs if output.facts),
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


def wrong_values(output: OutputStatistics) -> Mismatch:
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
    local, usual = CAUSES_BY_PLACE.get(place.where, ()), CAUSES[rule.kind]
    causes = (*local, *usual) if rule.kind in PLACE_FIRST else (*usual, *local)
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
        lambda f: explained(f.factor_leaves) and not better(f.offset_leaves, f.factor_leaves),
        lambda f: f"the right values times a constant {f.factor:.6g}",
    ),
    Rule(
        "constant_offset",
        lambda f: explained(f.offset_leaves),
        lambda f: f"the right values plus a constant {f.offset:.6g}",
    ),
    Rule(
        "low_precision",
        lambda f: f.rounded_to is not None or is_imprecise(f),
        lambda f: f"only as precise as {f.rounded_to or 'a shorter dtype'}",
    ),
    Rule("values", lambda f: True, lambda f: "other values"),
)
"""The first that fits is told."""


def explained(leaves: float | None) -> bool:
    return leaves is not None and leaves < EXPLAINED


def better(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one < other


def is_imprecise(facts: Facts) -> bool:
    """A small error all over, rather than a large one in places."""
    small = facts.relative_error is not None and facts.relative_error < LOW_PRECISION
    return small and all(axis.count * 2 > axis.size for axis in facts.along)


def number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def show(shape: tuple[int, ...] | None) -> str:
    return str(list(shape or ()))
