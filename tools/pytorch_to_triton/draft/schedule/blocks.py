"""Blocks that fit the sizes which are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.schedule.schedule import Config

SMALLEST = 16
"""What tl.dot takes."""


def within(configs: Sequence[Config], sizes: Mapping[str, Size]) -> tuple[Config, ...]:
    """The configurations with no block much larger than its axis, where that is known; none twice."""

    def shrunk(config: Config) -> Config:
        new = dict(config)
        for block, size in sizes.items():
            if size.is_Integer:
                new[block] = min(new[block], max(SMALLEST, 1 << max(int(size) - 1, 0).bit_length()))
        return new

    found = [shrunk(c) for c in configs]
    return tuple(c for i, c in enumerate(found) if c not in found[:i])
