"""Reductions across rows: the reduced axes are not those in which neighbours lie in memory.

A tile holds a block of neighbouring columns and walks down. `in_passes` and `online`: in a loop.
`in_registers`: no loop, for few rows. `split`: for few columns, partial results of chunks of rows first;
`staged`: the same for each of several statistics.
"""

from dataclasses import replace

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import WELFORD
from pytorch_to_triton.draft.ir.rewriting import beside
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, axes_of
from pytorch_to_triton.draft.patterns import pointwise
from pytorch_to_triton.draft.patterns.rows import no_single_walk
from pytorch_to_triton.draft.schedule.axes import fuse, in_memory_order, innermost, nest
from pytorch_to_triton.draft.schedule.blocks import (
    SMALLEST,
    configurations,
    covering,
    item_bytes,
    power_of_two,
    where_wide,
    within,
)
from pytorch_to_triton.draft.schedule.conditions import always, at_most, more_than, together
from pytorch_to_triton.draft.schedule.online import is_online, online, online_softmax, with_corrected_means
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Share, Walk
from pytorch_to_triton.draft.schedule.split import at_once, can_split, in_shares, split, staged

EXAMPLES = (
    "def column_sums(x: 'float32[M, N]'):\n    return x.sum(dim=0)",
    "def standardised(x: 'float32[M, N]'):\n"
    "    return (x - x.mean(0)) * torch.rsqrt(x.var(0, unbiased=False) + 1e-5)",
)
TRAITS = Traits(asked_last=2, reduces="columns")
LOOPS = configurations(
    "BLOCK_K BLOCK_N num_warps",
    (32, 64, 8), (16, 128, 4), (8, 128, 2), (32, 128, 4), (64, 64, 4), (4, 256, 4), (128, 32, 4),
)  # fmt: skip
GATHERS = LOOPS[::-1]
"""For partial results: few columns and no other work, so that many rows at once hide the latency."""
WHOLE = configurations("BLOCK_N num_warps", (64, 4), (32, 4), (128, 8), (16, 4), (16, 8))
TILES = tuple(
    {"BLOCK_N": f"max({elements} // block_k, {SMALLEST})", "num_warps": str(w)}
    for elements, w in ((2048, 4), (4096, 4), (4096, 8), (8192, 8), (1024, 2))
)
"""Few rows with many columns to a program, many with few."""
WIDTH = 64
"""Columns of a tile that walks down a share of the rows: the wider, the more shares there are to add up."""
LOOKAHEAD = configurations("BLOCK_M STAGES num_warps", (8, 3, 4), (8, 2, 4), (8, 3, 8), (8, 2, 8))
SHARES = ((8192, 3, 4), (8192, 2, 4), (4096, 3, 4), (16384, 2, 4), (16384, 3, 8))
"""Bytes that a tile is of, stages and warps."""
TILE = range(512, 8192)
"""Elements of such a tile."""
PROGRAMS = 512
"""About four for each multiprocessor: as many as it holds at once, or a multiple of that."""
MOST_PARTS = 512
"""Of them, a program adds up so many at once ..."""
TOTALS = tuple(
    {
        "BLOCK_N": f"min(max({elements} // block_k, 8), 32)",
        "num_warps": f"max(block_k * block_n // {each}, 1)",
    }
    for elements, each in ((4096, 512), (2048, 512), (4096, 1024), (8192, 1024))
)
"""... of 8 columns, which memory moves together, and of up to 32 where there are fewer."""
LARGEST_IN_REGISTERS = 512
MANY = 2**16
"""Columns that keep all multiprocessors busy with one program for each block of them."""
CHUNK = 128
"""Rows whose statistics are taken at once: one that goes on from row to row is rescaled with each block."""
HELD = 256
"""Rows of a chunk in registers, of which the mean and the squared deviations are taken."""
HELD_BLOCKS = configurations("BLOCK_N num_warps", (32, 8), (16, 4), (64, 8), (32, 4))
CHUNKS = configurations(
    "BLOCK_K BLOCK_N num_warps", (128, 64, 8), (128, 32, 4), (128, 32, 8), (64, 64, 4), (16, 128, 4)
)


def match(cluster: Cluster) -> Mismatch | None:
    if mismatch := no_single_walk(cluster):
        return mismatch
    widest = max(cluster.reduces(), key=lambda r: len(axes_of(r)))
    if any(axes_of(r) != axes_of(widest) and not beside(r, widest) for r in cluster.reduces()):
        return Mismatch("a statistic would be computed again for every element that uses it")
    if column(cluster) is None:
        return Mismatch("no axis holds neighbours that are kept apart")
    return None


def column(cluster: Cluster) -> Axis | None:
    """The kept axis along which most operands are contiguous; any, where none varies along one of them."""
    axes = cluster.reduces()[0].axes
    kept = [a for a in cluster.free() if a not in axes]
    if kept and not any(axes_of(load) & {*kept} for load in cluster.loads()):
        return kept[-1]
    for load in sorted(cluster.loads(), key=lambda v: -len(axes_of(v))):
        inner = innermost(load)
        if set(axes_of(load)) & set(axes) and inner in cluster.free() and inner not in axes:
            return inner
    return None


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    reduced, col = in_memory_order(cluster.reduces()[0].axes, cluster), column(cluster)
    assert col is not None
    outer = tuple(a for a in cluster.free() if a not in reduced and a != col)
    length = product(a.size for a in reduced)
    grid = ("outer", outer, Walk("grid")), ("col", (col,), Walk("grid", "BLOCK_N"))
    loop, rewrites = nest(*grid, ("row", reduced, Walk("loop", "BLOCK_K")))
    order = ("row", "col")
    # Few rows at a time of few columns: most of all rows would be added up one by one, with a rounding each.
    loops = within(LOOPS, {"BLOCK_N": col.size}, given_to="BLOCK_K")
    rewrites = (*rewrites, with_corrected_means)
    plain = Schedule(loop, order, loops, rewrites)
    found = [Alternative("in_passes", ((cluster, plain),))]
    fused = plain.applied(cluster)
    if is_online(online_softmax(fused)):
        # Welford's step is left out: Triton 3.6 miscompiles a carry that is read beside a sum of the tile
        # (triton-lang/triton#11836), seen in this layout.
        carried = replace(plain, rewrites=(*rewrites, online_softmax))
        found.append(Alternative("online", ((cluster, carried),)))
    kept = product(a.size for a in (*outer, col))
    few_and_long = together(at_most(kept, MANY), more_than(length, LARGEST_IN_REGISTERS))
    if few_and_long is not None:
        statistics = at_once(cluster, online)
        alike = len({axes_of(r) for r in statistics.reduces()}) == 1
        if alike and can_split(statistics) and not set(statistics.free()) & set(reduced):
            found.append(
                Alternative("split", tuple(in_chunks(statistics, outer, col)), few_and_long, limit="")
            )
        elif kernels := kernels_of(statistics):
            found.append(Alternative("staged", kernels, few_and_long, limit=""))
    if (fits := at_most(length, LARGEST_IN_REGISTERS)) is not None:
        walks = {**loop, "row": Walk("whole", "BLOCK_K")}
        whole = Schedule(walks, order, WHOLE, rewrites, {"BLOCK_K": covering(length)}, TILES[0], TILES)
        found.append(Alternative("in_registers", ((cluster, whole),), fits))
    return tuple(found)


def kernels_of(cluster: Cluster) -> tuple[tuple[Cluster, Schedule], ...]:
    """Each reduction by partial results of chunks, last what is computed of them; empty if one cannot be."""
    found: list[tuple[Cluster, Schedule]] = []
    for stage in staged(cluster):
        if not stage.reduces():
            found += always(pointwise.alternatives(stage)).kernels
        elif match(stage) is None and can_split(stage):
            col = column(stage)
            assert col is not None
            found += in_chunks(stage, tuple(a for a in stage.free() if a != col), col)
        else:
            return ()
    return tuple(found)


def in_chunks(cluster: Cluster, outer: tuple[Axis, ...], col: Axis) -> list[tuple[Cluster, Schedule]]:
    """Shares of the rows to partial results, then those; a statistic of several values in chunks."""
    cluster = fuse("row", in_memory_order(cluster.reduces()[0].axes, cluster))(cluster)
    (over,) = cluster.reduces()[0].axes
    if all(r.monoid.is_plain for r in cluster.reduces()):
        share = shared(over, product(a.size for a in outer) * sizes.ceiling(col.size, WIDTH))
        first, rest = in_shares(cluster, over, share)
        return [
            (first, above_all(walked_down(first, share, (col,)), outer)),
            (rest, totals((*outer, col), share.part)),
        ]
    deviates = any(r.monoid == WELFORD for r in cluster.reduces())
    first, rest = split(cluster, over, HELD if deviates else CHUNK)
    grid, rewrites = nest(("outer", outer, Walk("grid")), ("col", (col,), Walk("grid", "BLOCK_N")))
    chunks = within(CHUNKS, {"BLOCK_N": col.size})
    loop = Walk("loop", "BLOCK_K")
    partial = Schedule({"part": Walk("grid"), **grid, "i": loop}, ("i", "col"), chunks, rewrites)
    if deviates:  # The mean's loop and that of the squares would each read the chunk.
        walks = {**partial.walks, "i": Walk("whole", "BLOCK_K")}
        held = within(HELD_BLOCKS, {"BLOCK_N": col.size})
        partial = replace(partial, walks=walks, configs=held, sized={"BLOCK_K": str(HELD)})
    (part,) = rest.reduces()[0].axes
    return [(first, partial), (rest, totals((*outer, col), part))]


def shared(row: Axis, beside: sizes.Size, most: sizes.Size | None = None) -> Share:
    """The rows of a program, where so many programs stand beside each other for the same rows; in `most`
    shares, if there is such a limit."""
    programs = sizes.FloorDiv(sizes.size(PROGRAMS), sizes.larger(beside, 1))
    return Share.of(row, programs if most is None else sizes.smaller(programs, most))


def walked_down(cluster: Cluster, share: Share, col: tuple[Axis, ...], each: int = 1) -> Schedule:
    """Tiles that walk down: nothing needs a row whole. A place of a row is `each` elements."""
    walks = {"part": Walk("grid"), "col": Walk("grid", "BLOCK_N"), "row": Walk("loop", "BLOCK_M", share)}
    length = product(a.size for a in col)
    sized = {"BLOCK_N": covering(length, WIDTH)}
    bytes_each = sum(item_bytes(b) for b in {v.buffer for v in cluster.largest_loads()}) * each
    tiles = tuple(
        {
            "BLOCK_M": f"{elements_of(size, bytes_each)} // block_n",
            "STAGES": where_wide(str(stages - 1), length),
            "num_warps": str(warps),
        }
        for size, stages, warps in SHARES
    )
    return Schedule(walks, ("row", "col"), LOOKAHEAD, (fuse("col", col),), sized, tiles[0], tiles)


def elements_of(size: int, each: int) -> int:
    """How many elements a tile of about so many bytes has, each element so many: a power of two."""
    return min(max(power_of_two(size // each + 1) // 2, TILE.start), TILE.stop)


def above_all(schedule: Schedule, outer: tuple[Axis, ...]) -> Schedule:
    """The schedule with programs of their own for each element of these axes."""
    walks, fused = nest(("outer", outer, Walk("grid")))
    return replace(schedule, walks={**walks, **schedule.walks}, rewrites=(*fused, *schedule.rewrites))


def totals(kept: tuple[Axis, ...], *parts: Axis) -> Schedule:
    """The programs' sums added up, all at once as far as they fit: each turn of the loop waits for memory."""
    configs = within(GATHERS, {"BLOCK_N": product(a.size for a in kept)})
    walks = {"col": Walk("grid", "BLOCK_N"), "part": Walk("loop", "BLOCK_K")}
    sized = {"BLOCK_K": covering(product(a.size for a in parts), MOST_PARTS)}
    rewrites = fuse("part", parts), fuse("col", kept)
    return Schedule(walks, ("part", "col"), configs, rewrites, sized, TOTALS[0], TOTALS)
