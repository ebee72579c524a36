"""Where in an output the wrong elements lie."""

from dataclasses import dataclass

from pytorch_to_triton.schema.verdict import Where
from pytorch_to_triton.worker.wire.statistics import Diagnostics, Spread

DENSE = 0.5
"""Share of a pattern's elements that must fail before it is named: a wrong value may be right by chance."""
ALMOST = 0.95
"""Share of all elements from which on the few right ones are right by chance."""
MANY = 64
"""Of fewer elements, the few right ones may mean something."""
SMALLEST_BLOCK = 8
FEW = 8
"""One wrong element of fewer than this is no pattern."""


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
    return f"; {axis.first} is a multiple of {block}" if block >= SMALLEST_BLOCK else ""


def axis_name(dim: int, ndim: int) -> str:
    if ndim == 2:
        return ("row", "column")[dim]
    return "element" if ndim == 1 else f"dim-{dim} slice"


def ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
