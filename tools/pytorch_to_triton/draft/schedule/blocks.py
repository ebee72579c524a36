"""Blocks that fit the sizes which are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Cluster, axes_of
from pytorch_to_triton.draft.schedule.schedule import Config, Walk

SMALLEST = 16
"""What tl.dot takes."""

SHARED_MEMORY = 160 * 1024
"""Bytes of it that every GPU since the A100 has for a program."""


def power_of_two(size: Size) -> int:
    """The smallest that is not below a size which is a number."""
    return 1 << max(int(size) - 1, 0).bit_length()


def covering(size: Size) -> str:
    """The block that holds an axis whole, as Python over the sizes: a power of two."""
    if size.is_Integer:
        return str(power_of_two(size))
    return f"triton.next_power_of_2(max({sizes.text(size)}, 1))"


def tiles_in_loop(cluster: Cluster, walks: Mapping[str, Walk]) -> list[tuple[str, ...]]:
    """The blocks of each tile that the kernel loads again and again in its loop."""
    looped = {name for name, walk in walks.items() if walk.how == "loop"}
    axes = [{a.name for a in axes_of(v)} for v in cluster.loads()]
    return [tuple(w.block for n in a if (w := walks.get(n)) and w.block) for a in axes if a & looped]


def pipelined(configs: Sequence[Config], tiles: Sequence[Sequence[str]]) -> tuple[Config, ...]:
    """The configurations, with fewer stages where so many tiles of float32 do not fit into shared memory."""

    def fitted(config: Config) -> Config:
        size = 4 * sum(math.prod(config[block] for block in tile) for tile in tiles)
        return {**config, "num_stages": max(1, min(config["num_stages"], SHARED_MEMORY // max(size, 1)))}

    return tuple(map(fitted, configs))


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
