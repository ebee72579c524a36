"""What is wrong with an output: the kind of mistake, where it is, and its cause where that is certain."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from pytorch_to_triton.schema.verdict import ElementValues, Kind, Mismatch, Where
from pytorch_to_triton.worker.wire.statistics import CaseStatistics, Diagnostics, OutputStatistics, Spread

DENSE = 0.5
"""Share of a pattern's elements that must fail before it is named: a wrong value may be right by chance."""
ALMOST = 0.95
"""Share of all elements from which on the few right ones are right by chance."""
MANY = 64
"""Of fewer elements, the few right ones may mean something."""
SMALLEST_BLOCK = 8
FEW = 8
"""One wrong element of fewer than this is no pattern."""
FACTOR_TOLERANCE = 1e-3
"""Relative: a factor this close to a known one is that one."""
CAUSES: dict[Kind, str] = {
    "missing_output": "run returns fewer values than reference, or under other names.",
    "extra_output": "run returns more values than reference, or under other names.",
    "mutates_input": "A kernel writes to an input: contiguous() and view() may return the input itself.",
    "type": "run returns a tensor where reference returns a Python number, or the reverse.",
    "dtype": "The output is not allocated in the dtype that the reference returns.",
    "shape": "The output is not allocated in the shape that the reference returns.",
    "device": "The output is allocated without device=x.device.",
    "transposed": "Row and column are swapped, in the pointer arithmetic or in how the output is allocated.",
    "unwritten": (
        "No program stores these elements: the grid or the mask of the store does not cover the output."
    ),
    "equals_input": "The input is stored unchanged.",
    "constant": "One value is stored everywhere.",
}
"""Of the kinds that show the cause by themselves; the others need more."""
ROUNDED = "Values are rounded to {dtype} on their way to the output: keep them in float32 until the store."
NOT_STORED = (
    "The last, partial tile is not stored: launch triton.cdiv(n, BLOCK) programs, masked with n itself."
)
DROPS_NAN = (
    "NaN is dropped: tl.maximum, tl.minimum, tl.max and tl.min do that by default, and so do comparisons."
)
EXPLAINED = 2.0**-6
"""A constant factor or offset is named when it leaves less than this share of the error."""
FEWEST = 4
"""A constant factor or offset of fewer elements is chance."""
LOW_PRECISION = 2.0**-6
"""Relative error up to which a wrong result looks like one computed in bfloat16, float16 or TF32."""
UNLIKE = "which the reference does not"
NOTHING_KNOWN: Mapping[str, float] = {}
ALL_ALIKE: tuple[tuple[Kind, str, str], ...] = (
    ("unwritten", "unwritten", "never written, it still holds what was in memory before"),
    ("not_propagated", "truth_not_finite", "NaN or infinity is expected, and something else is returned"),
    ("nan_only", "failing_nan", "NaN instead of numbers"),
    ("infinite", "failing_inf", "infinities instead of numbers"),
    ("all_zero", "failing_zero", "zero instead of numbers"),
)
"""Kinds of which all failing elements are, each with the field of Diagnostics that counts these."""


@dataclass(frozen=True)
class Place:
    """`text` follows "is wrong": "in every element", "in column 3"."""

    where: Where
    text: str


def place_of(diagnostics: Diagnostics) -> Place:
    """The simplest pattern that the failing elements fill."""
    flat, along = diagnostics.flat, diagnostics.along
    almost_everywhere = Place("everywhere", f"in almost every element ({flat.count} of {flat.size})")
    if flat.count == flat.size:
        return Place("everywhere", "in every element")
    if flat.count == 1:
        where: Where = "one_index" if flat.size >= FEW else "scattered"
        return Place(where, f"in the single element {list(diagnostics.first)}")
    if flat.count >= ALMOST * flat.size and flat.size >= MANY:
        return almost_everywhere
    restricted = [dim for dim, axis in enumerate(along) if axis.count < axis.size]
    if len(restricted) < 2 and diagnostics.share_of_box > DENSE:
        places = [along_axis(along[dim], axis_name(dim, len(along))) for dim in restricted]
        return places[0] if places else almost_everywhere
    if diagnostics.diagonal is not None:
        return Place("diagonal", diagonal_text(diagnostics.diagonal))
    return in_memory_order(flat)


def diagonal_text(offset: int) -> str:
    """The diagonal of the last two dimensions, given as column minus row."""
    if offset == 0:
        return "on the main diagonal"
    return f"on the diagonal {abs(offset)} {'above' if offset > 0 else 'below'} the main one"


def along_axis(axis: Spread, name: str) -> Place:
    """One dimension alone separates the failing elements from the others."""
    if axis.count == 1:
        return Place("one_index", f"in {name} {axis.first} (of {axis.size})")
    if is_tail(axis):
        return Place(
            "tail", f"in the tail: {name}s {axis.first} to {axis.last} of {axis.size}{block_hint(axis)}"
        )
    if is_regular(axis) and axis.step > 1:
        return Place("every_nth", f"in every {ordinal(axis.step)} {name}, from {axis.first} on")
    return Place("range", f"in {axis.count} of {axis.size} {name}s, from {axis.first} to {axis.last}")


def in_memory_order(flat: Spread) -> Place:
    """No dimension explains them; perhaps their order in memory does."""
    if is_tail(flat):
        return Place(
            "tail",
            f"in the tail: the last {flat.size - flat.first} of {flat.size} elements{block_hint(flat)}",
        )
    if is_regular(flat) and flat.step > 1:
        return Place("every_nth", f"in every {ordinal(flat.step)} element, from {flat.first} on")
    if is_regular(flat):
        return Place("range", f"in elements {flat.first} to {flat.last} of {flat.size} in memory order")
    return Place("scattered", f"in {flat.count} of {flat.size} elements, without an evident pattern")


def is_regular(axis: Spread) -> bool:
    """The failing indices fill their range at their step."""
    return axis.count > DENSE * ((axis.last - axis.first) // axis.step + 1)


def is_tail(axis: Spread) -> bool:
    """What a last, partial tile looks like: shorter than the tiles before it."""
    return axis.step == 1 and axis.last == axis.size - 1 and 2 * axis.first > axis.size and is_regular(axis)


def block_hint(axis: Spread) -> str:
    """The largest block size at whose multiple the tail begins."""
    block = axis.first & -axis.first
    return f", where a block of {block} would begin" if block >= SMALLEST_BLOCK else ""


def axis_name(dim: int, ndim: int) -> str:
    if ndim == 2:
        return ("row", "column")[dim]
    return "element" if ndim == 1 else f"dim-{dim} slice"


def ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def causes_of(
    kind: Kind, diagnostics: Diagnostics, place: Place, numbers: Mapping[str, float]
) -> tuple[str, ...]:
    """The causes that leave no doubt; `numbers` are the case's sizes and numbers by name."""
    causes: list[str] = []
    if place.where == "tail" and kind in ("unwritten", "all_zero") and starts_at_a_block(diagnostics):
        causes.append(NOT_STORED)
    if kind == "low_precision" and diagnostics.rounded_to is not None:
        causes.append(ROUNDED.format(dtype=diagnostics.rounded_to))
    returned = diagnostics.values.get("candidate")
    if kind == "not_propagated" and diagnostics.values.get("truth") == "nan" and isinstance(returned, float):
        causes.append(DROPS_NAN)
    if kind == "constant_factor" and diagnostics.factor is not None:
        causes += only_one(factor_causes(diagnostics.factor, numbers))
    if kind == "constant_offset" and diagnostics.offset is not None:
        causes += only_one(offset_causes(diagnostics.offset, numbers))
    if place.where == "diagonal" and diagnostics.diagonal in (-1, 0, 1):
        causes.append("A comparison of row and column is off by one: `<` for `<=`, as in a causal mask.")
    if kind in CAUSES:
        causes.append(CAUSES[kind])
    return tuple(causes)


def starts_at_a_block(diagnostics: Diagnostics) -> bool:
    """Whether the wrong tail begins where a block does."""
    starts = [axis.first for axis in (*diagnostics.along, diagnostics.flat) if axis.first > 0]
    return any((start & -start) >= SMALLEST_BLOCK for start in starts)


def only_one(causes: Iterator[str]) -> list[str]:
    """The cause, where there is a single one."""
    distinct = list(dict.fromkeys(causes))
    return distinct if len(distinct) == 1 else []


def factor_causes(factor: float, numbers: Mapping[str, float]) -> Iterator[str]:
    """What a factor is among the case's own sizes and numbers."""
    if near(factor, -1.0):
        yield "The sign is wrong."
    for name, value in numbers.items():
        if value in (0, 1, -1):
            continue
        if near(factor, value):
            yield f"The factor is {name}: a division by {name} is missing, or {name} is applied twice."
        elif near(factor, 1 / value):
            yield f"The factor is 1/{name}: {name} is missing, or divided by twice."
        elif isinstance(value, int) and value > 1:
            yield from size_causes(factor, name, value)


def size_causes(factor: float, name: str, size: int) -> Iterator[str]:
    """Factors that follow from one size used for another."""
    padded = 1 << (size - 1).bit_length()
    if padded != size and near(factor, size / padded):
        yield f"The factor is {name} / {padded}: a mean divides by the padded block instead of by {name}."
    for exponent, form in ((1.0, "{}"), (0.5, "sqrt({})")):
        # Which of the two is right, a factor does not show: the result may have it below a fraction bar.
        for above, below, ratio in (
            (name, f"({name} - 1)", size / (size - 1)),
            (f"({name} - 1)", name, (size - 1) / size),
        ):
            if near(factor, ratio**exponent):
                fraction = form.format(f"{above} / {below}")
                yield f"The factor is {fraction}: {name} and {name} - 1 are mistaken for each other."
    if near(factor, math.sqrt(size)):
        yield f"The factor is sqrt({name}): a division by it is missing."
    if near(factor, 1 / math.sqrt(size)):
        yield f"The factor is 1/sqrt({name}): it is applied twice, or sqrt({name}) is missing."


def offset_causes(offset: float, numbers: Mapping[str, float]) -> Iterator[str]:
    """What an offset is among the case's own numbers."""
    for name, value in numbers.items():
        if value and near(offset, value):
            yield f"The offset is {name}: it is added once too often, or not subtracted."
        elif value and near(offset, -value):
            yield f"The offset is -{name}: it is not added, or subtracted once too often."


def near(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=FACTOR_TOLERANCE)


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
    return Mismatch(output=path, kind=kind, where=None, message=message, causes=(CAUSES[kind],), first=None)


def wrong_values(output: OutputStatistics, numbers: Mapping[str, float]) -> Mismatch:
    """Elements that are beyond the error budget."""
    diagnostics = output.diagnostics
    assert diagnostics is not None
    place = place_of(diagnostics)
    kind, text = kind_of(diagnostics)
    first = ElementValues(index=diagnostics.first, **diagnostics.values)
    ours = "unwritten" if kind == "unwritten" else number(first.candidate)
    message = (
        f"{output.path} is wrong {place.text}: {text}. First at {list(diagnostics.first)}: "
        f"{ours}, PyTorch {number(first.pytorch)}, float64 {number(first.truth)}."
    )
    causes = causes_of(kind, diagnostics, place, numbers)
    return Mismatch(
        output=output.path, kind=kind, where=place.where, message=message, causes=causes, first=first
    )


def kind_of(diagnostics: Diagnostics) -> tuple[Kind, str]:
    """The kind of wrong values, and how it is described: the first that fits."""
    if diagnostics.transposed:
        return "transposed", "it holds the right values transposed"
    for kind, count, text in ALL_ALIKE:
        if getattr(diagnostics, count) == diagnostics.flat.count:
            return kind, text
    if diagnostics.equals_input:
        return "equals_input", f"it equals the input {diagnostics.equals_input}"
    if diagnostics.constant and diagnostics.flat.size > 1:
        return "constant", "every element has the same value"
    by_factor, by_offset = map(is_explained, (diagnostics.factor_leaves, diagnostics.offset_leaves))
    if by_factor != by_offset and is_constant_error(diagnostics):
        if by_factor:
            return "constant_factor", f"the right values times a constant {diagnostics.factor:.6g}"
        return "constant_offset", f"the right values plus a constant {diagnostics.offset:.6g}"
    if diagnostics.rounded_to is not None:
        return "low_precision", f"only as precise as {diagnostics.rounded_to}"
    if is_imprecise(diagnostics):
        return "low_precision", f"off by a few digits, by {diagnostics.relative_error:.2g} of its size"
    return "values", "the values differ"


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
