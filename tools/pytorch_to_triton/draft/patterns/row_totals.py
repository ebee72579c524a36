"""Totals of what each row comes to: the mean loss of logits, the target's gathered inside. What rows come to
may be stored too, as a backward pass reads it. A row may be of two tensors, as it is in `rows`.

Rows in any way that `rows` knows, then the totals. `in_shares`: a program walks a share of the rows;
a second kernel takes the totals of all programs. `row_by_row`: the same for rows that fill a program.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import rewritten
from pytorch_to_triton.draft.ir.sizes import Size, product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Reduce, Value, axes_in_order, axes_of, walk
from pytorch_to_triton.draft.patterns import rows
from pytorch_to_triton.draft.schedule.axes import fuse, in_memory_order, innermost, lies_in_rows
from pytorch_to_triton.draft.schedule.blocks import configurations, covering, elements_a_warp, stages
from pytorch_to_triton.draft.schedule.conditions import at_most, more_than, together
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Rewrite, Schedule, Share, Walk
from pytorch_to_triton.draft.schedule.split import by_row, in_shares

EXAMPLES = (
    "def loss(x: 'float32[M, N]', target: 'int64[M] in 0..N'):\n"
    "    log_p = torch.log_softmax(x, -1)\n"
    "    return -log_p.gather(1, target[:, None]).mean()",
    "def divergence(x: 'float32[M, N]', y: 'float32[M, N]'):\n"
    "    return torch.nn.functional.kl_div(x.log_softmax(-1), y.softmax(-1), reduction='sum')",
)
TRAITS = Traits(reduces="both", joins=lies_in_rows)
PROGRAMS = 2048
"""As many as an H100 holds at once, with four warps each."""
CONFIGS = configurations("BLOCK_M STAGES num_warps", (1, 2, 4), (1, 2, 8))
LONG_ROW = 1024
"""Longer ones fill a program: as tiles of one row they would be laid out twice, for what each comes to."""
LONG = configurations("STAGES num_warps", (2, 4), (2, 8))
Tiles = tuple[Mapping[str, str], ...]
"""Configurations as Python over the blocks."""
PER_WARP = (512, 1024, 256)
"""Elements of a warp, where a row fills a program."""


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.scans() or any(s.where for s in cluster.stores):
        return Mismatch("it scans, or scatters")
    inner = cluster.inner_reduces()
    outer = [r for r in cluster.reduces() if r not in inner]
    if not inner or len({axes_of(r) for r in inner}) != 1:
        return Mismatch("it does not reduce the same rows first")
    of_rows, columns = axes_of(inner[0]), inner_columns(cluster)
    if not 0 < len(columns) <= rows.MOST_WIDTHS:
        return Mismatch("what it reduces of a row overlaps")
    places = [frozenset[Axis]().union(*map(axes_of, s.index)) for s in cluster.stores]
    if any(place not in (frozenset(), of_rows) for place in places):
        return Mismatch("it stores more than totals and what rows come to")
    totals = [of_rows, *(of_rows.union(col) for col in columns)]
    if any(r.monoid != SUM or set(r.axes) not in totals for r in outer):
        return Mismatch("it does not add up what rows come to")
    if not all(r.monoid.is_plain for r in inner):
        return Mismatch("what it reduces carries several values")
    along = [(v, col) for v in cluster.loads() for col in columns if of_rows.union(col) <= axes_of(v)]
    if any(innermost(v) not in col for v, col in along):
        return Mismatch("neighbours in memory are not reduced together")
    for part in by_row(nested(cluster), of_rows):
        if mismatch := rows.match(part):
            return mismatch
    n_rows = product(a.size for a in of_rows)
    if n_rows.is_Integer and int(n_rows) < rows.FEW_ROWS:
        return Mismatch("its rows are too few for a program each")
    if any(at_most(product(a.size for a in col), rows.LARGEST_IN_REGISTERS) is None for col in columns):
        return Mismatch("its rows do not fit into registers")
    return None


def inner_columns(cluster: Cluster) -> tuple[tuple[Axis, ...], ...]:
    """The axes along which rows are reduced, those of each tensor by themselves."""
    inner = cluster.inner_reduces()
    return rows.columns_of(inner, walk(*inner))


def nested(cluster: Cluster) -> Cluster:
    """Each total over all elements as that of its rows' totals."""
    columns = inner_columns(cluster)

    def by_rows(v: Value) -> Value | None:
        match v:
            case Reduce(axes=axes) if col := next((c for c in columns if set(axes) > set(c)), ()):
                row = replace(v, axes=col, name=None)
                return replace(v, args=(row,), axes=tuple(a for a in axes if a not in col))
        return None

    return rewritten(cluster, by_rows)


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    cluster = nested(cluster)
    (col, *beside), of_rows = inner_columns(cluster), axes_in_order(cluster.inner_reduces()[0])
    first, rest = by_row(cluster, set(of_rows))
    plain, *_ = rows.alternatives(rest)
    behind = plain.kernels  # One program: what it reads is little beside the rows.
    apart = [replace(a, kernels=(*a.kernels, *behind)) for a in rows.alternatives(first) if a.limit is None]
    fused = fuse("row", in_memory_order(of_rows, cluster))(cluster)
    lengths = [product(a.size for a in axes) for axes in (col, *beside)]
    fits, length = together(*(at_most(each, rows.LARGEST_IN_REGISTERS) for each in lengths)), lengths[0]
    assert fits is not None
    fill = together(more_than(length, LONG_ROW), fits)
    (row,) = axes_of(fused.inner_reduces()[0])
    share = Share.of(row, sizes.size(PROGRAMS), least=1)
    partial, final = in_shares(fused, row, share)
    gathered = Schedule({"part": Walk("loop", "BLOCK_N")}, ("part",), rows.GATHERS)
    fused_columns = zip(("col", "k"), (col, *beside), strict=False)
    rewrites = tuple(fuse(name, in_memory_order(axes, cluster)) for name, axes in fused_columns)
    n_loads = len([v for v in partial.loads() if {row, *col} <= axes_of(v)])
    shape = row.size, length
    several = ahead(
        rows.tiles(rows.suited(partial, (row,), col)), ("block_m", "block_m * block_n"), n_loads, shape
    )
    alone = ahead(warps_of(partial), ("1", "block_n"), n_loads, shape)
    found = [*apart]
    ways = ("in_shares", fits, "BLOCK_M", several), ("row_by_row", fill, None, alone)
    for name, condition, block, templates in ways:
        if condition is not None:
            walked = in_loop(Walk("loop", block, share), rewrites, lengths, templates)
            kernels = ((partial, walked), (final, gathered))
            found.append(Alternative(name, kernels, condition, limit=condition if block else None))
    return tuple(found)


def in_loop(row: Walk, rewrites: tuple[Rewrite, ...], lengths: Sequence[Size], tiles: Tiles) -> Schedule:
    """Rows whole, a few at a time or each by itself, with the next ones on their way."""
    columns = dict(zip((("col", "BLOCK_N"), ("k", "BLOCK_K")), lengths, strict=False))
    whole = {name: Walk("whole", block) for name, block in columns}
    walks = {"part": Walk("grid"), "row": row, **whole}
    order, configs = (("row", *whole), CONFIGS) if row.block else (tuple(whole), LONG)
    sized = {block: covering(length) for (_, block), length in columns.items()}
    tiles = rows.widened(tiles) if len(lengths) > 1 else tiles
    return Schedule(walks, order, configs, rewrites, sized, tiles[0], tiles, streams=True)


def warps_of(cluster: Cluster) -> Tiles:
    """The warps of a row that fills a program: what suits it first."""
    each = dict.fromkeys((elements_a_warp(cluster), *PER_WARP))
    return tuple({"num_warps": f"min(max(block_n // {elements}, 1), 16)"} for elements in each)


def ahead(tiles: Tiles, step: tuple[str, str], n_loads: int, shape: tuple[Size, Size]) -> Tiles:
    """Tiles with the next rows on their way, as far as shared memory holds them, where a program has any.

    `step`: rows, and their elements, that it takes at a time.
    """
    taken, elements = step
    n_rows, length = shape
    has_next = f"{sizes.text(n_rows)} > {PROGRAMS}{'' if taken == '1' else f' * {taken}'}"
    two, three = (stages(n_loads, elements, more, length, has_next) for more in (1, 2))
    return (*({**tile, "STAGES": two} for tile in tiles), {**tiles[0], "STAGES": three})
