"""Nothing is reduced: every element by itself, gathers included.

`elements`: the output as one long axis. `rows`: tiles of rows, where an index would be divided again for each
element, or where what is costly is the same for neighbours. `tiled`: where an operand lies transposed in
memory, square tiles, so that reads and writes are both coalesced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.indices import offset
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Index, Load, Map, Store, axes_of, walk
from pytorch_to_triton.draft.lower.tensor import digits
from pytorch_to_triton.draft.schedule.axes import fuse, innermost, nest
from pytorch_to_triton.draft.schedule.blocks import (
    SMALLEST,
    TILE,
    bytes_moved,
    configurations,
    covering,
    filled,
    power_of_two,
    tile,
    within,
)
from pytorch_to_triton.draft.schedule.conditions import more_than
from pytorch_to_triton.draft.schedule.parts import Parts, in_parts
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Config, Mismatch, Schedule, Walk

EXAMPLES = (
    "def swish(x: 'float32[M, N]', b: 'float32[N]'):\n    return (x + b) * torch.sigmoid(x + b)",
    "def turned(x: 'float32[M, N]'):\n    return x.t() * 2.0",
    "def stepped(x: 'float32[M, N]', dt: 'float32[M]'):\n    return x * torch.exp(-dt)[:, None]",
)
TRAITS = Traits(joins=lambda _: True)
BLOCKS = configurations("BLOCK num_warps", (1024, 4), (512, 4), (1024, 8), (2048, 8))
COL = "col"
NARROWEST = 32
SECTOR = 8
"""Float32 elements that memory moves at once: an operand with shorter runs is read whole in any order."""
TILES = configurations(
    "BLOCK_M BLOCK_N num_warps",
    (32, 64, 4), (64, 64, 4), (64, 64, 8), (16, 64, 4), (64, 32, 4), (32, 32, 4),
)  # fmt: skip
ROWS = configurations("BLOCK_M num_warps", (8, 4), (8, 8))
WIDTH = 256
"""Columns of a tile of rows."""
BY_ROW = ((1024, 4), (2048, 4), (2048, 8), (4096, 8))
"""Elements and warps of such a tile ..."""
LIGHT = (1024, 2)
"""... and where few bytes are moved for each: a thread needs more elements to have as many on their way."""
FEW_LOADS, FEW_BYTES = 4, 6
EXPONENTIALS = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "tanh"}
COSTLY = EXPONENTIALS | {"erf", "erfc", "sigmoid", "silu", "gelu", "gelu_tanh", "softplus"}
"""Functions of many instructions: more than an element's load and store take."""


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.reduces() or cluster.scans():
        return Mismatch("it reduces or scans")
    return None


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    elements = Alternative("elements", ((cluster, in_line(cluster)),))
    if divided := in_parts(cluster):
        whole, parts = divided
        rows, cols = beside_parts(cluster, parts)
        schedule = by_row(whole, rows, cols) if rows else in_line(whole)
        condition = where_long(cols) if in_turn(cluster, parts) else ""
        return where_taken(Alternative("parts", ((whole, schedule),)), condition, elements)
    sides = in_rows(cluster) or around(alike(cluster), cluster.free())
    by_rows = (Alternative("rows", ((cluster, by_row(cluster, *sides)),)),) if sides else ()
    if across := turned(cluster):
        rows, cols = across
        tiled = Alternative("tiled", ((cluster, tiles(cluster, rows, cols, fitted(TILES, rows, cols))),))
        is_short = is_narrow(rows, SECTOR)
        return where_taken(tiled, where_long(cols), elements, *by_rows) if is_short else (elements, tiled)
    return elements, *by_rows


def where_taken(
    alternative: Alternative, condition: str | None, *others: Alternative
) -> tuple[Alternative, ...]:
    """The others, and this, which is right everywhere, where it is fast."""
    if condition is None:
        return others
    return (*others, replace(alternative, condition=condition, limit=""))


def where_long(cols: Sequence[Axis]) -> str | None:
    """Where the rows of a tile fill it: programs of a few short ones would have too little to do."""
    return more_than(product(a.size for a in cols), WIDTH - 1)


def in_line(cluster: Cluster) -> Schedule:
    """All elements as one long axis."""
    if free := cluster.free():
        return Schedule({"i": Walk("grid", "BLOCK")}, ("i",), BLOCKS, (fuse("i", free),))
    return Schedule({}, (), ({"num_warps": 1},))


def in_turn(cluster: Cluster, parts: Parts) -> bool:
    """Whether neighbours in memory are of different parts, each of which leaves gaps for the others."""
    last = next(reversed(behind(cluster.stores[-1], None)), None)
    return parts.axis == last and (parts.in_turn or not parts.axes)


def beside_parts(cluster: Cluster, parts: Parts) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The axes before and behind where rows begin that end in a part of one of the cluster's axes."""
    axes = tuple(v.axis for v in walk(*cluster.stores[0].index) if isinstance(v, Index))
    first = axes.index(parts.axis)
    cols = (*parts.axes, *axes[first + 1 :])
    # Parts in turn are taken only where a tile's rows are filled.
    least = WIDTH if in_turn(cluster, parts) else NARROWEST
    while first > 0 and is_narrow(cols, least):
        first -= 1
        cols = (axes[first], *cols)
    return axes[:first], cols


def by_row(cluster: Cluster, rows: tuple[Axis, ...], cols: tuple[Axis, ...]) -> Schedule:
    """Tiles of a few rows."""
    is_light = 0 < len(cluster.largest_loads()) <= FEW_LOADS and sum(bytes_moved(cluster)) <= FEW_BYTES
    templates = tuple(
        {"BLOCK_M": f"{elements} // block_n", "num_warps": str(warps)}
        for elements, warps in ((LIGHT, *BY_ROW) if is_light else BY_ROW)
    )
    return replace(
        tiles(cluster, rows, cols, ROWS),
        sized={"BLOCK_N": covering(product(a.size for a in cols), WIDTH)},
        untuned=templates[0],
        templates=templates,
    )


def around(cols: tuple[Axis, ...], free: Sequence[Axis]) -> tuple[tuple[Axis, ...], tuple[Axis, ...]] | None:
    """The other axes, and these; None where these are none."""
    return (tuple(a for a in free if a not in cols), cols) if cols else None


def in_rows(cluster: Cluster) -> tuple[tuple[Axis, ...], tuple[Axis, ...]] | None:
    """The output's axes, before and behind where operands tell them apart; None where none does."""
    store = cluster.stores[-1]
    axes = tuple(v.axis for v in walk(*store.index) if isinstance(v, Index))
    lies = offset(map(Index, axes), (a.size for a in axes))
    if set(axes) != set(cluster.free()) or lies != offset(store.index, store.buffer.shape):
        return None
    first = len(axes) - 1
    while first > 0 and (is_narrow(axes[first:]) or not needs_division(cluster, axes[first - 1 :])):
        first -= 1
    return (axes[:first], axes[first:]) if first > 0 and not is_narrow(axes[first:]) else None


def is_narrow(axes: Sequence[Axis], least: int = NARROWEST) -> bool:
    """Whether the axes have fewer elements than so many; a warp's, where nothing is said."""
    size = product(a.size for a in axes)
    return bool(size.is_Integer and int(size) < least)


def needs_division(cluster: Cluster, axes: Sequence[Axis]) -> bool:
    """Whether an index along all of these axes would be divided, were they walked as one."""
    joined = fuse(COL, axes)(cluster)
    accesses: list[Load | Store] = [*joined.loads(), *joined.stores]
    offsets = [offset(access.index, access.buffer.shape) for access in accesses]
    conditions = [access.where for access in accesses if access.where is not None]
    computed = [store.value for store in joined.stores]
    values = walk(*offsets, *conditions, *computed, into=lambda v: not isinstance(v, Load))
    divisions = (v for v in values if isinstance(v, Map) and v.fn in ("floordiv", "mod"))
    return any(a.name == COL for v in divisions for a in axes_of(v))


def alike(cluster: Cluster) -> tuple[Axis, ...]:
    """The axes of neighbours along which something costly is the same."""
    ends = behind(cluster.stores[-1], None)
    costly = [v for v in cluster.values() if isinstance(v, Map) and v.fn in COSTLY and axes_of(v)]
    varied = {a for v in costly if ends and ends[-1] not in axes_of(v) for a in axes_of(v)}
    last = next((n for n, a in enumerate(reversed(ends)) if a in varied), 0)
    return ends[len(ends) - last :]


def turned(cluster: Cluster) -> tuple[tuple[Axis, ...], tuple[Axis, ...]] | None:
    """The axes along which a large operand is contiguous and the output is not, and the other way round."""
    store = cluster.stores[-1]
    last = next(reversed(behind(store, None)), None)
    if last is None:
        return None
    free = {*cluster.free()}
    for load in cluster.loads():
        inner = innermost(load)
        if inner is not None and inner != last and last in axes_of(load) and inner in free:
            rows = behind(load, last)
            return rows if rows and free.issuperset(rows) else (inner,), behind(store, inner)
    return None


def behind(access: Load | Store, stop: Axis | None) -> tuple[Axis, ...]:
    """The axes along which an access ends in memory, up to one: they can be walked as one axis."""
    found: list[Axis] = []
    for i, size in reversed([*zip(access.index, access.buffer.shape, strict=True)]):
        dim = (i.axis,) if isinstance(i, Index) else digits(i, size) or ()
        found[:0] = dim[dim.index(stop) + 1 :] if stop in dim else dim
        if stop in dim or not dim:
            break
    return tuple(found)


def fitted(configs: Sequence[Config], rows: Sequence[Axis], cols: Sequence[Axis]) -> tuple[Config, ...]:
    """The tiles that fit these axes: longer along the one where they are shorter along the other."""
    lengths = {"BLOCK_M": product(a.size for a in rows), "BLOCK_N": product(a.size for a in cols)}
    known = {n: max(SMALLEST, power_of_two(size)) for n, size in lengths.items() if size.is_Integer}
    longest = dict.fromkeys(lengths, max(TILE)) | known
    found = [filled(within([c], lengths)[0], tile(c), longest) for c in configs]
    return tuple(c for i, c in enumerate(found) if c not in found[:i])


def tiles(
    cluster: Cluster,
    rows: tuple[Axis, ...],
    cols: tuple[Axis, ...],
    configs: tuple[Config, ...],
    inside: Mapping[str, Walk] | None = None,
) -> Schedule:
    """A tile a program; `inside` says how reduced axes are walked."""
    others = tuple(a for a in cluster.free() if a not in (*rows, *cols))
    grid, rewrites = nest(
        ("outer", others, Walk("grid")),
        ("row", rows, Walk("grid", "BLOCK_M")),
        (COL, cols, Walk("grid", "BLOCK_N")),
    )
    return Schedule({**grid, **(inside or {})}, ("row", COL), configs, rewrites)
