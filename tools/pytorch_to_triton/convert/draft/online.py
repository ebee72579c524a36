"""Two statistics of a row in one walk: how their running values start, change and end.

Maximum with sum of exponentials: lane by lane, collapsed at the end (Milakov and Gimelshein, "Online
normalizer calculation for softmax", arXiv:1805.02867, algorithm 3). Mean with squared deviations: block by
block (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
1979, equation 2.1).
"""

from dataclasses import dataclass

from pytorch_to_triton.convert.draft.cells import Online

INFINITY = 'float("inf")'


@dataclass(frozen=True)
class Walk:
    """What the lines need to know of the kernel."""

    x: str
    """The walked values, as text."""
    mask: str
    """Where they are inside the row."""
    tile: str
    """Shape of a block of them."""
    collapsed: str
    """Shape of one value a row."""
    collapse: str
    """Arguments that collapse a block into one value a row."""
    row_length: str
    compute: str
    neutral: bool
    """Outside of the row, the values are already neutral: -inf for a maximum, 0 for a sum."""


def start(cell: Online, walk: Walk) -> list[str]:
    """The running values before the walk."""
    if cell.kind == "moments":
        return [f"{name} = tl.zeros({walk.collapsed}, {walk.compute})" for name in (cell.name, cell.second)]
    return [
        f"{cell.name}_acc = tl.full({walk.tile}, -{INFINITY}, {walk.compute})",
        f"{cell.second}_acc = tl.zeros({walk.tile}, {walk.compute})",
    ]


def update(cell: Online, walk: Walk) -> list[str]:
    """One block more."""
    if cell.kind == "moments":
        return _more_moments(cell, walk)
    first, second = f"{cell.name}_acc", f"{cell.second}_acc"
    return [
        f"new_max = tl.maximum({first}, {walk.x})",
        f"shift = tl.where(tl.abs(new_max) == {INFINITY}, 0.0, new_max)",
        f"{second} = {second} * tl.exp({first} - shift) + tl.exp({walk.x} - shift)",
        f"{first} = new_max",
    ]


def _more_moments(cell: Online, walk: Walk) -> list[str]:
    inside = walk.x if walk.neutral else f"tl.where({walk.mask}, {walk.x}, 0.0)"
    return [
        f"block_length = tl.minimum({walk.row_length} - start, BLOCK_N)",
        f"share = block_length / (start + block_length).to({walk.compute})",
        f"block_mean = tl.sum({inside}, {walk.collapse}) / block_length",
        f"deviation = tl.where({walk.mask}, {walk.x} - block_mean, 0.0)",
        f"delta = block_mean - {cell.name}",
        f"{cell.name} += delta * share",
        f"{cell.second} += tl.sum(deviation * deviation, {walk.collapse}) + delta * delta * start * share",
    ]


def finish(cell: Online, walk: Walk) -> list[str]:
    """The row's statistics after the walk."""
    if cell.kind == "moments":
        return []
    first, second = f"{cell.name}_acc", f"{cell.second}_acc"
    lines = [f"{cell.name} = tl.max({first}, {walk.collapse})"]
    if cell.kind == "logsumexp":
        lines.append(f"{cell.name} = tl.where(tl.abs({cell.name}) == {INFINITY}, 0.0, {cell.name})")
    return [*lines, f"{cell.second} = tl.sum({second} * tl.exp({first} - {cell.name}), {walk.collapse})"]
