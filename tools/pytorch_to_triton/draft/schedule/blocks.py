"""Blocks that fit the sizes which are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.schedule.schedule import Config

SMALLEST = 16
"""What tl.dot takes."""


def power_of_two(size: Size) -> int:
    """The smallest that is not below a size which is a number."""
    return 1 << max(int(size) - 1, 0).bit_length()


def covering(size: Size) -> str:
    """The block that holds an axis whole, as Python over the sizes: a power of two."""
    if size.is_Integer:
        return str(power_of_two(size))
    return f"triton.next_power_of_2(max({sizes.text(size)}, 1))"


def within(configs: Sequence[Config], lengths: Mapping[str, Size]) -> tuple[Config, ...]:
    """The configurations with no block much larger than its axis, where that is known; none twice."""

    def shrunk(config: Config) -> Config:
        new = dict(config)
        for block, size in lengths.items():
            if size.is_Integer:
                new[block] = min(new[block], max(SMALLEST, power_of_two(size)))
        return new

    found = [shrunk(c) for c in configs]
    return tuple(c for i, c in enumerate(found) if c not in found[:i])
