"""What of a target's results is free, as a file's COMPARE declares it."""

from .as_json import WireValue


class Unordered(WireValue):
    """Results whose entries along a dim may come in any order, the same in all of them.

    Dims before it have an order each; those after it belong to the entries.
    """

    results: tuple[str, ...]
    """Paths such as `out[0]`."""
    dim: int = -1
    """Below 0 it counts from the end of the result that has the fewest dims."""

    def __str__(self) -> str:
        return f"unordered({', '.join(self.results)}, dim={self.dim})"
