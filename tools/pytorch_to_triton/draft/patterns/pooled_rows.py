"""Rows whose elements are reduced over another axis first: the mean of a sentence's tokens, normalised.

`apart`: one reduction after the other. `pooled`: a program holds rows whole and adds what lies beneath them.
`in_shares`: where the rows alone do not keep all multiprocessors busy, programs add up shares of what
lies beneath; a second kernel, those, and goes on with the rows.
"""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Load, Reduce, axes_of, walk
from pytorch_to_triton.draft.patterns import columns, pointwise, rows, window
from pytorch_to_triton.draft.schedule.axes import fuse, in_memory_order, innermost, nest
from pytorch_to_triton.draft.schedule.blocks import configurations, covering
from pytorch_to_triton.draft.schedule.conditions import at_most, kernels_by_first, more_than, together
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk
from pytorch_to_triton.draft.schedule.split import in_shares, staged

EXAMPLES = (
    "def pooled(x: 'float32[B, T, D]'):\n    return torch.softmax(x.mean(dim=1), dim=-1)",
    "def embedded(x: 'float32[B, T, D]', mask: 'bool[B, T]'):\n"
    "    total = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)\n"
    "    return total * torch.rsqrt(total.square().sum(-1, keepdim=True) + 1e-6)",
)
TRAITS = Traits()
LARGEST_IN_REGISTERS = 8192
TILES = rows.tiles((1024, 256))
"""Small ones first: each element that a program holds has an address of its own in the loop."""
MANY_ROWS = 2**12
"""Rows that a second kernel goes on with, each in a program of its own."""
BUSY = 2**19
"""Elements of all rows, from which on enough loads are on their way where each program walks down its own."""
SHORT_WALK = 16
"""Elements beneath a row that are walked down in the time of a second launch."""
MOST_AT_ONCE = 1024
"""Elements beneath a row that are the same for all of it."""
MOST_OF_SHARES = 2**14
"""Elements of a row's shares, which one program adds up ..."""
LARGEST_TURN = 2**14
"""... in so few turns of a loop, of which each waits for memory."""
TOTALS = configurations("BLOCK_K num_warps", (8, 8), (8, 4), (8, 16))


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.scans():
        return Mismatch("it scans")
    if len({frozenset(r.axes) for r in cluster.reduces()}) != 2:
        return Mismatch("it does not reduce over two sets of axes")
    row, beneath = map(set, divided(cluster))
    if not row or not beneath:
        return Mismatch("no axis that it reduces holds neighbours")
    free = set(cluster.free())
    if row & beneath or beneath & free or row & free not in (set(), row):
        return Mismatch("what it stores are not rows of what it reduced first, nor values of them")
    if not free - row:
        return Mismatch("it has one row alone")
    deep = [r for r in cluster.reduces() if set(r.axes) == beneath]
    if any(isinstance(v, Reduce) for r in deep for v in walk(*r.args)):
        return Mismatch("it walks beneath its rows more than once")
    along, at_results = (
        {_read(r) for r in deep if (row <= axes_of(r)) == is_row} for is_row in (True, False)
    )
    if along & at_results:
        return Mismatch("its results are elements of its rows at other places")
    if at_most(product(a.size for a in row), LARGEST_IN_REGISTERS) is None:
        return Mismatch("its rows do not fit into registers")
    return None


def _read(r: Reduce) -> frozenset[Buffer]:
    return frozenset(v.buffer for v in walk(*r.args) if isinstance(v, Load))


def divided(cluster: Cluster) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The reduced axes of a row, along which neighbours lie, and those that are reduced first; as reduced."""
    lanes = {innermost(load) for load in cluster.largest_loads()}
    reduces = cluster.reduces()
    row = dict.fromkeys(a for r in reduces if lanes & set(r.axes) for a in r.axes)
    beneath = dict.fromkeys(a for r in reduces if not lanes & set(r.axes) for a in r.axes)
    return tuple(row), tuple(beneath)


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    row, beneath = (in_memory_order(axes, cluster) for axes in divided(cluster))
    outer = tuple(a for a in cluster.free() if a not in row)
    length, depth = product(a.size for a in row), product(a.size for a in beneath)
    walks, rewrites = nest(
        ("row", outer, Walk("grid", "BLOCK_M")),
        ("k", beneath, Walk("loop")),
        ("col", row, Walk("whole", "BLOCK_N")),
    )
    sized = {"BLOCK_N": covering(length)}
    schedule = Schedule(walks, ("row", "col"), rows.ROWS, rewrites, sized, TILES[0], TILES)
    fits = at_most(length, LARGEST_IN_REGISTERS)
    assert fits is not None
    found = [
        Alternative("apart", apart(cluster)),
        Alternative("pooled", ((cluster, schedule),), fits, limit=fits),
    ]
    n_rows = product(a.size for a in outer)
    few = together(
        at_most(n_rows, MANY_ROWS), at_most(n_rows * length, BUSY), more_than(depth, SHORT_WALK), fits
    )
    if few is not None:
        found.append(Alternative("in_shares", beneath_first(cluster, outer, row, beneath), few, fits))
    return tuple(found)


def beneath_first(
    cluster: Cluster, outer: tuple[Axis, ...], row: tuple[Axis, ...], beneath: tuple[Axis, ...]
) -> tuple[tuple[Cluster, Schedule], ...]:
    """Shares of what lies beneath all rows, then those of each row and what it goes on with.

    What is reduced beneath a row and is the same for all of its elements, as a mask is, is little: each row
    takes it by itself.
    """
    whole = fuse("col", row)(fuse("row", beneath)(cluster))
    (col,), (over,) = divided(whole)
    length = product(a.size for a in row)
    beside = product(a.size for a in outer) * sizes.ceiling(length, columns.WIDTH)
    most = sizes.FloorDiv(sizes.size(MOST_OF_SHARES), sizes.larger(length, 1))
    share = columns.shared(over, beside, most)
    first, rest = in_shares(whole, over, share, varying=frozenset({col}))
    walks, rewrites = nest(
        ("outer", outer, Walk("grid")),
        ("k", (over,), Walk("loop", "BLOCK_T")),
        ("part", (share.part,), Walk("loop", "BLOCK_K")),
        ("col", (col,), Walk("whole", "BLOCK_N")),
    )
    sized = {"BLOCK_N": covering(length)}
    if any(over in r.axes for r in rest.reduces()):
        sized |= {"BLOCK_T": covering(over.size, MOST_AT_ONCE)}
    turn = f"min({covering(share.part.size)}, max({LARGEST_TURN} // block_n, 1))"
    tiles = tuple({"BLOCK_K": turn, "num_warps": str(config["num_warps"])} for config in TOTALS)
    totals = Schedule(walks, ("k", "part", "col"), TOTALS, rewrites, sized, tiles[0], tiles)
    walked = columns.walked_down(first, share, (col,))
    return (first, columns.above_all(walked, outer)), (rest, totals)


def apart(cluster: Cluster) -> tuple[tuple[Cluster, Schedule], ...]:
    """Each reduction in kernels of its own, then what goes on with them."""
    patterns = pointwise, rows, columns, window
    return tuple(k for stage in staged(cluster) for k in kernels_by_first(patterns, stage))
