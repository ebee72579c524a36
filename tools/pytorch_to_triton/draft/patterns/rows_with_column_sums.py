"""Sums across rows beside what is computed row by row: gradients of a norm's weight and of its input.

`apart`: what is stored row by row, then the sums. `in_shares`: a program walks a share of the rows, or of a
few groups in each, with its own sums in registers, and a second kernel adds up those of all programs.
"""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Reduce,
    Store,
    axes_in_order,
    axes_of,
    walk,
)
from pytorch_to_triton.draft.patterns import columns, pointwise, rows, window
from pytorch_to_triton.draft.schedule.axes import fuse, in_memory_order, innermost, nest
from pytorch_to_triton.draft.schedule.blocks import covering, elements_a_warp, is_heavy, stages
from pytorch_to_triton.draft.schedule.conditions import always, at_most, kernels_by_first
from pytorch_to_triton.draft.schedule.parts import in_halves, is_in_pairs
from pytorch_to_triton.draft.schedule.pattern import Pattern, Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Share, Walk
from pytorch_to_triton.draft.schedule.split import by_row, in_shares, staged

EXAMPLES = (
    "def norm_gradients(x: 'float32[M, N]', g: 'float32[M, N]', w: 'float32[N]', rstd: 'float32[M, 1]'):\n"
    "    x_hat = x * rstd\n"
    "    along = (g * w * x_hat).mean(-1, keepdim=True)\n"
    "    return (g * w - x_hat * along) * rstd, (g * x_hat).sum(0), g.sum(0)",
    "def mean_share(x: 'float32[M, G, N]'):\n    return torch.softmax(x, dim=-1).mean(0)",
)
TILES = ((2048, 2), (4096, 2), (2048, 1), (8192, 2), (1024, 2))
"""Elements of a tile, where rows are short, and how many more tiles are on their way."""
HEAVY = (1024, 2)
"""The first of them for several tensors of float32."""
MOST_READ = 8
"""Loads of a program that walks rows and sums across them: with more, such as all neighbours of a window, few
rows are on their way at once."""
REGISTERS = 65536
"""Elements of all the tiles that a program holds at once."""


def reads_few(cluster: Cluster) -> bool:
    """Whether registers are left for rows on their way."""
    return len({*cluster.largest_loads()}) <= MOST_READ


TRAITS = Traits(reduces="both", repeats=False, joins=reads_few)


def match(cluster: Cluster) -> Mismatch | None:
    cluster = in_halves(cluster)
    sums = across(cluster)
    if not sums:
        return Mismatch("it sums nothing across rows")
    if cluster.scans() or any(s.where for s in cluster.stores):
        return Mismatch("it scans, or scatters")
    outer, everything = set(sums[0].axes), {a for v in cluster.values() for a in axes_of(v)}
    if any(set(r.axes) != outer or axes_of(r.args[0]) != axes_of(sums[0].args[0]) for r in sums):
        return Mismatch("its sums run across different rows")
    if not all(axes_of(load) == everything for load in cluster.largest_loads()):
        return Mismatch("nothing that it reads lies in rows")
    of_rows = [r for r in cluster.reduces() if r not in sums]
    if any(set(r.axes) & outer or not outer <= axes_of(r) or not r.monoid.is_plain for r in of_rows):
        return Mismatch("what it reduces is not one value for each row")
    if len({frozenset(r.axes) for r in of_rows}) > 1:
        return Mismatch("its reductions of rows run over different axes")
    summed_over = axes_of(sums[0].args[0])
    if summed_over == outer or summed_over.union(*(r.axes for r in of_rows)) != everything:
        return Mismatch("its sums leave out axes of its rows")
    along, summed = divided(cluster)
    if not of_rows and not along.stores:
        return Mismatch("it only sums")
    if not all(outer <= _places(s) for s in along.stores) or any(outer & _places(s) for s in summed.stores):
        return Mismatch("it stores a value along some of the summed axes")
    behind = walk(*summed.roots, into=lambda v: v not in sums)
    if any(v in of_rows for v in behind):
        return Mismatch("it goes on with a sum and with a row's reduction")
    _, _, col = columns_of(cluster)
    if of_rows and at_most(product(a.size for a in col), longest(cluster)) is None:
        return Mismatch("its rows do not fit into registers")
    return None


def across(cluster: Cluster) -> list[Reduce]:
    """The sums that run across neighbours in memory, where none goes on with another."""
    lanes = {innermost(load) for load in cluster.largest_loads()}
    reduces = cluster.reduces()
    inside = {v for r in reduces for x in r.args for v in walk(x) if isinstance(v, Reduce)}
    return [r for r in reduces if r.monoid == SUM and r not in inside and lanes.isdisjoint(r.axes)]


def divided(cluster: Cluster) -> tuple[Cluster, Cluster]:
    """What is stored row by row, and what goes on with sums across rows."""
    sums = set(across(cluster))
    summed = tuple(s for s in cluster.stores if not sums.isdisjoint(walk(*s.roots)))
    along = tuple(s for s in cluster.stores if s not in summed)
    return Cluster(f"{cluster.name}_rows", along), Cluster(f"{cluster.name}_sums", summed)


def _places(store: Store) -> frozenset[Axis]:
    return frozenset().union(*map(axes_of, store.index))


def longest(cluster: Cluster) -> int:
    """Elements that a row may have, for all its tiles and sums to stay in registers."""
    tiles = len(cluster.largest_loads()) + len(across(cluster)) + 2
    return 1 << (REGISTERS // tiles).bit_length() - 1


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    elements = 2 if is_in_pairs(cluster) else 1
    cluster = in_halves(cluster)
    found = [Alternative("apart", apart(cluster)), walked_once(cluster, elements)]
    held = at_most(product(a.size for a in columns_of(cluster)[2]), rows.LARGEST_IN_REGISTERS)
    if held and of_rows_first(*divided(cluster)):
        found.insert(1, Alternative("apart_in_registers", apart(cluster, held), held, limit=held))
    return tuple(found)


def walked_once(cluster: Cluster, elements: int) -> Alternative:
    """Rows and what is summed across them by one kernel, a share of the rows a program; then the shares'
    sums. A place of a row is so many elements."""
    above, group, col = columns_of(cluster)
    reduces_rows = len(cluster.reduces()) > len(across(cluster))
    fits = at_most(product(a.size for a in col), longest(cluster)) if reduces_rows else ""
    assert fits is not None
    cluster = fuse("row", in_memory_order(across(cluster)[0].axes, cluster))(cluster)
    (row,) = across(cluster)[0].axes
    beside = product(a.size for a in above)
    if reduces_rows:
        blocks = sizes.ceiling(product(a.size for a in (*group, *col)), TILES[0][0]) if group else 1
        share = columns.shared(row, beside * blocks)
        walked = of_shares(cluster, share, group, col)
    else:
        share = columns.shared(row, beside * sizes.ceiling(product(a.size for a in col), columns.WIDTH))
        walked = columns.walked_down(cluster, share, col, elements)
    first, rest = in_shares(cluster, row, share)
    kept = tuple(a for a in (*above, *group, *col) if a in axes_of(across(cluster)[0].args[0]))
    kernels = ((first, columns.above_all(walked, above)), (rest, columns.totals(kept, share.part)))
    return Alternative("in_shares", kernels, fits, limit=fits)


def columns_of(cluster: Cluster) -> tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]:
    """What is kept: the axes outside of the summed rows in memory; of a row, those that are not reduced with
    it, and those that are, or all where nothing is."""
    sums = across(cluster)
    varied = dict.fromkeys(a for v in cluster.values() for a in axes_in_order(v))
    axes = in_memory_order(tuple(varied), cluster)
    first = next(n for n, a in enumerate(axes) if a in sums[0].axes)
    kept = tuple(a for a in axes[first:] if a not in sums[0].axes)
    col = next((r.axes for r in cluster.reduces() if r not in sums), kept)
    return (
        tuple(a for a in axes[:first] if a not in col),
        tuple(a for a in kept if a not in col),
        tuple(a for a in axes if a in col),
    )


def of_shares(cluster: Cluster, share: Share, group: tuple[Axis, ...], col: tuple[Axis, ...]) -> Schedule:
    """Rows whole, the next ones on their way; short ones several at a time, or a few groups of each."""
    outer, block = ("group", "BLOCK_G") if group else ("row", "BLOCK_M")
    grid, fused = nest(("group", group, Walk("grid", block)))
    row = Walk("loop", None if group else block, share)
    walks = {"part": Walk("grid"), **grid, "row": row, "col": Walk("whole", "BLOCK_N")}
    length = product(a.size for a in col)
    sized = {"BLOCK_N": covering(length)}
    tile = f"{block.lower()} * block_n"
    n_loads, each = len(cluster.largest_loads()), elements_a_warp(cluster)
    tiles = dict.fromkeys((HEAVY, *TILES) if is_heavy(cluster) else TILES)
    templates = tuple(
        {
            block: f"max({elements} // block_n, 1)",
            "STAGES": stages(n_loads, tile, more, length),
            "num_warps": f"min(max({tile} // {each}, 1), 16)",
        }
        for elements, more in tiles
    )
    untuned = dict(templates[0])
    if group:
        untuned[block] = f"min({covering(product(a.size for a in group))}, {untuned[block]})"
    configs = ({block: 1, "STAGES": 2, "num_warps": 8},)
    return Schedule(walks, (outer, "col"), configs, (*fused, fuse("col", col)), sized, untuned, templates)


PLAIN: tuple[Pattern, ...] = (pointwise, rows, columns)


def apart(cluster: Cluster, where: str = "") -> tuple[tuple[Cluster, Schedule], ...]:
    """Kernels for rows of any length, or of those where a condition holds."""
    along, summed = divided(cluster)
    if both := of_rows_first(along, summed):
        sums = both[1], columns.totals(both[1].free(), *both[1].reduces()[0].axes)
        return (*always(rows.alternatives(both[0]), where).kernels, sums)
    found: list[tuple[Cluster, Schedule]] = []
    for whole in (c for c in (along, summed) if c.stores):
        at_once = kernels_by_first(PLAIN, whole, where)
        for stage in () if at_once else staged(whole):
            found += kernels_by_first((*PLAIN, window), stage, where)
        found += at_once
    return tuple(found)


def of_rows_first(along: Cluster, summed: Cluster) -> tuple[Cluster, Cluster] | None:
    """What the sums need of each row stored beside what is stored row by row; then the sums of that.

    None where they need more than a value for each row.
    """
    inner = set(summed.inner_reduces())
    outer = [r for r in summed.reduces() if r not in inner]
    col = {a for r in inner for a in r.axes}
    if not inner or any(axes_of(r.args[0]) & col for r in outer):
        return None
    first, rest = by_row(summed, set(outer[0].axes))
    both = Cluster(along.name, (*along.stores, *first.stores))
    return (both, rest) if rows.match(both) is None else None
