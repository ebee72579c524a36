"""Names for the free sizes of tensors, as their number of dimensions suggests."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise

BY_RANK = {1: "N", 2: "MN", 3: "BMN", 4: "NCHW", 5: "NCDHW"}
FURTHER = "PQRSTUVWXYZGJLK"
"""Where those are taken."""


def dim_names(
    shapes: Mapping[str, Sequence[Hashable | None]], taken: Collection[str] = ()
) -> dict[Hashable, str]:
    """A name for each size of the tensors' shapes; None stands for a size that is a number.

    Sizes are named in the order in which they appear; none gets a name that is `taken`.
    """
    names: dict[Hashable, str] = {}
    summed = set(contracted(shapes))
    for shape in shapes.values():
        usual = BY_RANK.get(len(shape), "")
        for place, size in enumerate(shape):
            if size is None or size in names:
                continue
            wanted = ("K" if size in summed else "") + usual[place : place + 1] + FURTHER
            free = (name for name in wanted if name not in names.values() and name not in taken)
            names[size] = next(free, f"D{len(names)}")
    return names


def contracted(shapes: Mapping[str, Sequence[Hashable | None]]) -> Iterator[Hashable]:
    """The columns of one matrix that are the rows of the next: what their product sums over."""
    matrices = [shape for shape in shapes.values() if len(shape) in (2, 3)]
    for left, right in pairwise(matrices):
        if left[-1] is not None and left[-1] == right[-2] and left[-2] != right[-2]:
            yield left[-1]
