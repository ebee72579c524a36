"""The causes of a wrong output, where its values leave no doubt. A cause that is not certain is not named."""

import math
from collections.abc import Iterator, Mapping

from pytorch_to_triton.schema.verdict import Kind
from pytorch_to_triton.validate.place import SMALLEST_BLOCK, Place
from pytorch_to_triton.worker.wire.statistics import Diagnostics

FACTOR_TOLERANCE = 1e-3
"""Relative: a factor this close to a known one is that one."""
CAUSES: dict[Kind, tuple[str, ...]] = {
    "missing_output": ("run returns fewer values than reference, or under other names.",),
    "extra_output": ("run returns more values than reference, or under other names.",),
    "mutates_input": (
        "A kernel writes to an input: contiguous() and view() may return the input itself.",
    ),
    "type": ("run returns a tensor where reference returns a Python number, or the reverse.",),
    "dtype": ("The output is not allocated in the dtype that the reference returns.",),
    "shape": ("The output is not allocated in the shape that the reference returns.",),
    "device": ("The output is allocated without device=x.device.",),
    "transposed": (
        "Row and column are swapped, in the pointer arithmetic or in how the output is allocated.",
    ),
    "unwritten": (
        "No program stores these elements: the grid or the mask of the store does not cover the output.",
    ),
    "equals_input": ("The input is stored unchanged.",),
    "constant": ("One value is stored everywhere.",),
}  # fmt: skip
"""Of the kinds that show the cause by themselves; the others need more."""
ROUNDED = "Values are rounded to {dtype} on their way to the output: keep them in float32 until the store."
NOT_STORED = (
    "The last, partial tile is not stored: launch triton.cdiv(n, BLOCK) programs, masked with n itself."
)
DROPS_NAN = (
    "NaN is dropped: tl.maximum, tl.minimum, tl.max and tl.min do that by default, and so do comparisons."
)


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
    return (*causes, *CAUSES.get(kind, ()))


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
