"""Blocks that fit the sizes which are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, axes_of, bound_axes
from pytorch_to_triton.draft.schedule.schedule import Config, Schedule, Walk
from pytorch_to_triton.schema.dtype import ITEM_BYTES

SMALLEST = 16
"""What tl.dot takes."""

SHARED_MEMORY = 160 * 1024
"""Bytes of it that every GPU since the A100 has for a program."""

TILE = range(1024, 8192 + 1)
"""Elements of a program that holds what it reduces, where its axes allow them."""

MANY_TENSORS = 3

PER_WARP = range(128, 2048 + 1)
"""Elements of a tile for each warp: 4 to 64 a thread."""

WIDEST = 16
"""Triton looks itself for sizes that are multiples of this."""


def configurations(names: str, *rows: tuple[int, ...]) -> tuple[Config, ...]:
    """A configuration for each row of numbers, which `names` are for: `"BLOCK num_warps"`."""
    return tuple(dict(zip(names.split(), row, strict=True)) for row in rows)


def item_bytes(buffer: Buffer) -> int:
    """Of an element in memory."""
    dtype: Any = buffer.dtype
    return ITEM_BYTES[dtype]


def bytes_moved(cluster: Cluster) -> list[int]:
    """Of each tensor that a kernel reads or writes for every element of its tile, the bytes of its elements.

    Of loads under a condition an element takes one.
    """
    read = [(v.buffer, axes_of(v)) for v in cluster.loads() if v.where is None]
    read += [(v.buffer, axes_of(v)) for v in cluster.largest_loads()[-1:] if v.where is not None]
    written = [(s.buffer, frozenset().union(*map(axes_of, s.index))) for s in cluster.stores]
    most = max((len(axes) for _, axes in (*read, *written)), default=0)
    return [item_bytes(buffer) for buffer, axes in (*read, *written) if len(axes) == most]


def is_heavy(cluster: Cluster) -> bool:
    """Whether a thread has enough bytes on their way with 8 elements of each tensor in place of 16."""
    return sum(n >= ITEM_BYTES["float32"] for n in bytes_moved(cluster)) >= MANY_TENSORS


def elements_a_warp(cluster: Cluster) -> int:
    """How many of a row suit a warp."""
    return 256 if is_heavy(cluster) else 512


def power_of_two(size: Size | int) -> int:
    """The smallest that is not below a size which is a number."""
    return 1 << max(int(size) - 1, 0).bit_length()


def covering(size: Size, limit: int | None = None) -> str:
    """The block that holds an axis whole, or as much as it may, as Python over the sizes: a power of two."""
    if size.is_Integer:
        return str(min(power_of_two(size), limit or power_of_two(size)))
    whole = f"next_power_of_2({sizes.text(size)})"
    return f"min({whole}, {limit})" if limit else whole


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


WIDE = 4
"""Elements of float32 in 16 bytes."""
AHEAD = 80 * 1024
"""Bytes of rows on their way to a program, beside those at hand."""


def stages(n_loads: int, tile: str, more: int, lanes: Size, has_next: str = "") -> str:
    """Stages of a loop that loads so many tiles, `more` of them at most on their way: Python over blocks.

    `has_next` says where it has more than one turn: what is copied to shared memory for a single one takes
    the room of other programs.
    """
    return where_wide(f"min({AHEAD // (4 * max(n_loads, 1))} // ({tile}), {more})", lanes, has_next)


def where_wide(more: str, lanes: Size, has_next: str = "") -> str:
    """Stages of a loop with `more` tiles on their way, which are worth it where 16 bytes are copied at once.

    Rows of other lengths begin anywhere: copied by single elements, a tile lies across its rows in shared
    memory, and takes several times as long to write and read.
    """
    several, text = str(1 + int(more)) if more.isdigit() else f"1 + {more}", sizes.text(lanes)
    always = sizes.divides(sizes.size(WIDE), lanes)
    if lanes.is_Integer and not always:
        return "1"
    is_wide = "" if always else f"{text if text.isidentifier() else f'({text})'} % {WIDE} == 0"
    asked = " and ".join(filter(None, (has_next, is_wide)))
    return f"{several} if {asked} else 1" if asked else several


def within(
    configs: Sequence[Config], lengths: Mapping[str, Size], given_to: str | None = None
) -> tuple[Config, ...]:
    """The configurations with no block much larger than its axis, where that is known; none twice.

    What they lose is given to the block `given_to`, for tiles of as many elements.
    """

    def shrunk(config: Config) -> Config:
        new = dict(config)
        for block, size in lengths.items():
            if size.is_Integer:
                new[block] = min(new[block], max(SMALLEST, power_of_two(size)))
                if given_to:
                    new[given_to] = new[given_to] * config[block] // new[block]
        return new

    found = [shrunk(c) for c in configs]
    return tuple(c for i, c in enumerate(found) if c not in found[:i])


KNOWN = {
    "__builtins__": {},
    "int": int,
    "float": float,
    "math": math,
    "max": max,
    "min": min,
    "next_power_of_2": power_of_two,
}
"""What Python over the sizes may call."""


def at_hand(cluster: Cluster, schedule: Schedule, points: Sequence[Mapping[str, int]]) -> Schedule:
    """The schedule with the configurations that suit the largest of these sizes; none twice.

    Products keep theirs: what suits them is decided by their pipeline.
    """
    if not points or any("num_stages" in config for config in schedule.configs):
        return schedule
    axes = lengths_of_axes(cluster, schedule)
    lanes = schedule.order[-1] if schedule.order else ""
    alignment = math.gcd(size_at_most(axes[lanes], points), WIDEST) if lanes in axes else WIDEST
    if alignment < WIDE and schedule.singly:
        schedule = replace(schedule, configs=schedule.singly)
    walked = {n: w.block for n, w in schedule.walks.items() if w.block and n in axes}
    longest = {block: power_of_two(size_at_most(axes[n], points)) for n, block in walked.items()}
    covered = {b: largest(t, points) for b, t in schedule.sized.items()}
    whole = replace(schedule, sized={b: str(number) for b, number in covered.items()})
    given = [
        {name: str(largest(text, points)) for name, text in whole.values(c).items()}
        for c in schedule.templates or schedule.configs
    ]
    found = [shrunk(values, longest) for values in given]
    reduced = {w.how for w in schedule.walks.values() if w.block} & {"loop", "whole"}
    if reduced:
        found = [with_busy_warps(c) for c in found]
    else:
        found = [filled(c, tile(shrunk(v, {})), longest) for c, v in zip(found, given, strict=True)]
    if "whole" in reduced:
        found = sensible(found)
    configs = [{k: v for k, v in c.items() if k not in schedule.sized} for c in found]
    configs = [c for i, c in enumerate(configs) if c not in configs[:i]]
    aligned = lanes if 1 < alignment < WIDEST else ""
    return replace(schedule, configs=tuple(configs), aligned=aligned, covered=covered)


def without_single_blocks(schedule: Schedule, axes: Mapping[str, Axis]) -> Schedule:
    """The schedule with what one block always holds taken whole: the grid has one program along it."""

    def is_single(name: str, walk: Walk) -> bool:
        if walk.how != "grid" or not walk.block or name not in axes or not axes[name].size.is_Integer:
            return False
        blocks = {values.get(walk.block, "") for values in schedule.launched}
        return all(b.isdigit() and int(b) >= int(axes[name].size) for b in blocks)

    single = {n: replace(w, how="whole") for n, w in schedule.walks.items() if is_single(n, w)}
    return replace(schedule, walks={**schedule.walks, **single}, grouped=schedule.grouped and not single)


def lengths_of_axes(cluster: Cluster, schedule: Schedule) -> dict[str, Size]:
    """The sizes of the axes that are walked, by their names."""
    values = schedule.applied(cluster).values()
    return {a.name: a.size for v in values for a in (*axes_of(v), *bound_axes(v))}


def size_at_most(size: Size, points: Iterable[Mapping[str, int]]) -> int:
    """What a size is at most."""
    return largest(sizes.text(size), points)


def largest(text: str, points: Iterable[Mapping[str, int]]) -> int:
    """What Python over the sizes comes to at most."""
    code = compile(text, "size", "eval")
    return max(int(eval(code, KNOWN, point)) for point in points)


def shrunk(values: Mapping[str, str], longest: Mapping[str, int]) -> Config:
    """A configuration with no block longer than its axis."""
    return {name: min(int(text), longest.get(name, int(text))) for name, text in values.items()}


def filled(config: Config, elements: int, longest: Mapping[str, int]) -> Config:
    """The configuration with as many elements again, by blocks that their axes leave longer."""
    new = dict(config)
    for name in reversed([n for n in config if n.startswith("BLOCK")]):
        new[name] = min(new[name] * (elements // tile(new)), longest.get(name, new[name]))
    return new


def with_busy_warps(config: Config) -> Config:
    """The configuration with no warp that has next to nothing to do."""
    return {**config, "num_warps": min(config["num_warps"], max(tile(config) // PER_WARP[0], 1))}


def tile(config: Config) -> int:
    """Elements of a program."""
    return math.prod(number for name, number in config.items() if name.startswith("BLOCK"))


def sensible(configs: Sequence[Config]) -> list[Config]:
    """Those with a tile and warps of a good size; where none has them, those with the tile nearest to it."""
    good = [c for c in configs if tile(c) in TILE and tile(c) // c["num_warps"] in PER_WARP]
    tiles = [tile(c) for c in configs]
    nearest = max(tiles) if max(tiles) < TILE[0] else min(tiles)
    return good or [c for c in configs if tile(c) == nearest]
