"""Reductions along the axes in which neighbours lie in memory: softmax, norms, losses, sums of rows.

`in_passes`: a loop for each statistic. `online`: one loop for those that belong together. `in_registers`: no
loop, for rows that fit. `in_short_passes`: a loop again, where much is computed and a third and more of the
block that holds a row would be empty. For few and very long rows, and for all that is reduced to one number:
`split`, the partial results of chunks first; `staged`, the same for each of several statistics. A row of few
channels is walked, or held, as channels by neighbours. One of two tensors, each with columns of its own, is
walked, or held, as both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.rewriting import repeated
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Map, Reduce, Value, axes_of
from pytorch_to_triton.draft.lower.tensor import digits
from pytorch_to_triton.draft.patterns import pointwise
from pytorch_to_triton.draft.schedule.axes import fuse, in_memory_order, innermost, lies_in_rows, nest
from pytorch_to_triton.draft.schedule.blocks import (
    bytes_moved,
    configurations,
    covering,
    elements_a_warp,
    power_of_two,
)
from pytorch_to_triton.draft.schedule.conditions import always, at_most, half_empty, more_than, together
from pytorch_to_triton.draft.schedule.online import SOFTMAXES, is_online, online
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk
from pytorch_to_triton.draft.schedule.split import at_once, can_split_at_once, split, staged
from pytorch_to_triton.schema.dtype import ITEM_BYTES

EXAMPLES = (
    "def softmax(x: 'float32[M, N]'):\n    return torch.softmax(x, dim=-1)",
    "def total(x: 'float32[M, N]'):\n    return (x * x).sum()",
    "def quantised(x: 'float32[M, N]'):\n"
    "    return torch.round(x / (x.abs().amax(dim=-1, keepdim=True) / 127)).to(torch.int8)",
    "def timed_norm(x: 'float32[B, 16, N]', weight: 'float32[16]', time: 'float32[B, 16]'):\n"
    "    normed = torch.nn.functional.group_norm(x, 4, weight)\n"
    "    return normed * time.sigmoid()[:, :, None]",
    "def two_terms(x: 'float32[M, N]', z: 'float32[M, D]'):\n    return x.abs().sum(-1) + z.square().sum(-1)",
)
TRAITS = Traits(asked_last=1, reduces="rows", joins=lies_in_rows)
LOOPS = configurations("BLOCK_N num_warps", (16384, 16), (8192, 16), (4096, 8), (1024, 8))
"""For a row that is read again: of few programs at a time what was read is still in the cache."""
ONCE = configurations("BLOCK_N num_warps", (2048, 8), (4096, 8), (8192, 16), (1024, 8))
"""For rows of which nothing is stored."""
WITH_SOFTMAX = configurations("BLOCK_N num_warps", (4096, 8), (2048, 8), (8192, 16), (2048, 4))
"""For those of which a softmax is taken as well: fewer turns end with sums of all lanes."""
CARRIES = configurations("BLOCK_N num_warps", (4096, 4), (2048, 4), (8192, 16), (1024, 4))
"""Where nothing else is taken: sums of few warps wait less."""
SINGLY = configurations("BLOCK_N num_warps", (1024, 8), (2048, 8), (4096, 4), (4096, 16))
"""For 16 bits and less that are loaded one by one: 4 a thread, or the registers are full of addresses."""
SHORT_LOOPS = configurations("BLOCK_N num_warps", (1024, 4), (2048, 8))
CHUNKS = configurations("BLOCK_N num_warps", (4096, 8), (2048, 8), (1024, 4), (4096, 16))
"""A chunk at once first: many short programs fill the GPU to the end, and wait for one load each."""
WARPS = ({"num_warps": 8}, {"num_warps": 4}, {"num_warps": 16})
"""For a chunk in registers."""
GATHERS = ({"BLOCK_N": 4096, "num_warps": 8},)
"""For partial results, which are few."""
ROWS = configurations("BLOCK_M num_warps", (1, 4), (1, 8), (1, 16), (2, 4), (4, 4), (8, 4))
TILES = ((2048, 512), (4096, 512), (4096, 1024), (8192, 1024), (1024, 256))
"""Elements of a program and of a warp: short rows many to a program, long ones by themselves."""
APART, SHARING = 1024, 2048
"""Elements of a program first, where rows have nothing in common that is read, and where they have."""
WHOLE = ({"num_warps": "min(max(block_n // 512, 1), 16)"},)
"""For all that there is in one program."""
MOST_WIDTHS = 2
"""Tensors of different columns that a row may be of."""
LARGEST_IN_REGISTERS = 16384
MOST_CHANNELS = 16
"""Of a row too long for registers each channel is then long enough for a loop of its own."""
COMPUTED = frozenset({"div_rn", "fmod", "pow", "atan2", "lgamma", "erfinv", "normcdfinv", "i0"})
"""Functions of dozens of instructions, which lanes without an element take as well."""
FEW_ROWS = 512
LONG_ROW = 32768
CHUNK = 4096
LARGEST_WINDOW = 256
SHORTEST_ROW = 16
"""Fewer neighbours side by side are a window each: lanes run along the outputs."""


def match(cluster: Cluster) -> Mismatch | None:
    columns = columns_of(cluster.reduces(), cluster.values())
    if not 0 < len(columns) <= MOST_WIDTHS:
        return Mismatch("it reduces nothing, or what it reduces of a row overlaps")
    if len({axes_of(r) for r in cluster.reduces()}) > 1:
        return Mismatch("a statistic would be computed again for every element that uses it")
    found = (unwalked(cluster, axes) or _across(cluster, axes) for axes in columns)
    return next(filter(None, found), None)


def columns_of(reduces: Sequence[Reduce], values: Iterable[Value]) -> tuple[tuple[Axis, ...], ...]:
    """The axes along which rows are reduced, those of each tensor by themselves; none where they overlap, or
    some of the values vary along those of several."""
    columns = {frozenset(r.axes): r.axes for r in reduces}
    every = [axis for axes in columns for axis in axes]
    mixed = any(sum(not axes_of(v).isdisjoint(axes) for axes in columns) > 1 for v in values)
    return () if mixed or len(every) > len({*every}) else tuple(columns.values())


def _across(cluster: Cluster, axes: tuple[Axis, ...]) -> Mismatch | None:
    """Whether rows lie across memory. The largest operands decide: what lacks an axis, such as a mask, is
    little beside them."""
    reduced_loads = [load for load in cluster.loads() if set(axes) & set(axes_of(load))]
    most = max((len(axes_of(load)) for load in reduced_loads), default=0)
    inner = {innermost(load) for load in reduced_loads if len(axes_of(load)) == most}
    if inner and not inner & set(axes) and set(cluster.free()) - set(axes):
        return Mismatch("neighbours in memory are not reduced together")
    return None


def no_single_walk(cluster: Cluster) -> Mismatch | None:
    """Why no walk over one set of axes, along neighbours or across them, has all reductions."""
    reduced = {r.axes for r in cluster.reduces()}
    if len(reduced) != 1:
        return Mismatch("it has not one set of reduced axes")
    return unwalked(cluster, reduced.pop())


def unwalked(cluster: Cluster, axes: tuple[Axis, ...]) -> Mismatch | None:
    """Why no walk over these axes has all reductions along them."""
    if cluster.scans():
        return Mismatch("it scans")
    if any(repeated(store.value) for store in cluster.stores):
        return Mismatch("it would reduce the same again along an axis of its result")
    if set(cluster.free()) & set(axes) and not set(axes) <= set(cluster.free()):
        return Mismatch("it stores a value along some of the reduced axes")
    if _slides(cluster, axes):
        return Mismatch("a small window slides over it")
    return None


def _slides(cluster: Cluster, axes: tuple[Axis, ...]) -> bool:
    """Whether few elements are reduced, at places that move with the outputs."""
    size = product(a.size for a in axes)
    if not size.is_Integer or int(size) > LARGEST_WINDOW or set(axes) & set(cluster.free()):
        return False
    places = ((i, n) for load in cluster.loads() for i, n in zip(load.index, load.buffer.shape, strict=True))
    between = [(i, n) for i, n in places if axes_of(i) & set(axes) and axes_of(i) - set(axes)]
    return any(int(size) < SHORTEST_ROW or digits(i, n) is None for i, n in between)


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    columns = columns_of(cluster.reduces(), cluster.values())
    if len(columns) > 1:
        return of_widths(cluster, *columns)
    reduced = in_memory_order(cluster.reduces()[0].axes, cluster)
    rows = tuple(a for a in cluster.free() if a not in reduced)
    n_rows, length = product(a.size for a in rows), product(a.size for a in reduced)
    channels, neighbours = in_channels(cluster, reduced, lambda count: count <= MOST_CHANNELS)
    walks, rewrites = nest(
        ("row", rows, Walk("grid")),
        ("channel", channels, Walk("loop")),
        ("col", neighbours, Walk("loop", "BLOCK_N")),
    )
    loop = with_configurations(Schedule(walks, ("col",), LOOPS, rewrites), cluster, rows)
    found = [Alternative("in_passes", ((cluster, loop),))]
    if is_online(online(loop.applied(cluster))):
        loop = with_configurations(replace(loop, rewrites=(*rewrites, online)), cluster, rows)
        found.append(Alternative("online", ((cluster, loop),)))
    few_and_long = together(at_most(n_rows, FEW_ROWS - 1), more_than(length, LONG_ROW)) if rows else ""
    if few_and_long is not None and more_than(length, CHUNK) is not None:
        found.append(chunked(cluster, few_and_long))
    fits = at_most(length, LARGEST_IN_REGISTERS)
    if fits is not None:
        # By another number of channels, tiles would be larger than where all elements are side by side.
        channels, neighbours = in_channels(cluster, reduced, lambda count: power_of_two(count) == count)
        kernel = cluster, whole(cluster, rows, channels, neighbours) if rows else whole_at_once(reduced)
        # Whatever is reduced to one number may be long one day.
        found.append(Alternative("in_registers", (kernel,), fits, limit=fits if rows else None))
        emptied = half_empty(length, LARGEST_IN_REGISTERS)
        # Two loops over a row: no statistic is of what another one makes of each element.
        if rows and not cluster.inner_reduces() and emptied is not None and computes_much(cluster, reduced):
            short = replace(loop, configs=SHORT_LOOPS, singly=())
            found.append(Alternative("in_short_passes", ((cluster, short),), emptied))
    return tuple(found)


def with_configurations(loop: Schedule, cluster: Cluster, rows: Sequence[Axis]) -> Schedule:
    """The loops in the configurations that suit what they do of each row."""
    if not rows:
        return loop
    softmaxes = [r.monoid in SOFTMAXES for r in loop.applied(cluster).reduces()]
    if all(softmaxes):
        return replace(loop, configs=CARRIES, singly=())
    stores = any(set(rows) < frozenset().union(*map(axes_of, s.index)) for s in cluster.stores)
    if not stores:
        return replace(loop, configs=WITH_SOFTMAX if any(softmaxes) else ONCE, singly=SINGLY)
    short = min(bytes_moved(cluster)) < ITEM_BYTES["float32"]
    return replace(loop, configs=LOOPS, singly=SINGLY if short else ())


def of_widths(
    cluster: Cluster, columns: tuple[Axis, ...], others: tuple[Axis, ...]
) -> tuple[Alternative, ...]:
    """Rows of two tensors, of which each has columns of its own."""
    first, second = (in_memory_order(axes, cluster) for axes in (columns, others))
    rows = tuple(a for a in cluster.free() if a not in (*first, *second))
    whole, rewrites = nest(
        ("row", rows, Walk("grid", "BLOCK_M")),
        ("col", first, Walk("whole", "BLOCK_N")),
        ("k", second, Walk("whole", "BLOCK_K")),
    )
    loops = {"row": Walk("grid"), "col": Walk("loop", "BLOCK_N"), "k": Walk("loop", "BLOCK_K")}
    passes = tuple({**config, "BLOCK_K": config["BLOCK_N"]} for config in LOOPS)
    looped = Schedule({n: loops[n] for n in whole}, ("col", "k"), passes, rewrites)
    lengths = [product(a.size for a in axes) for axes in (first, second)]
    sized = dict(zip(("BLOCK_N", "BLOCK_K"), map(covering, lengths), strict=True))
    templates = widened(tiles(suited(cluster, rows, first)) if rows else WHOLE)
    configs = ROWS if rows else WARPS
    held = Schedule(whole, tuple(whole), configs, rewrites, sized, templates[0], templates)
    found = [Alternative("in_passes", ((cluster, looped),))]
    fits = together(*(at_most(length, LARGEST_IN_REGISTERS) for length in lengths))
    if fits is not None:
        found.append(Alternative("in_registers", ((cluster, held),), fits, limit=fits if rows else None))
    return tuple(found)


def widened(templates: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """The configurations for rows of both."""
    return tuple(
        {n: t.replace("block_n", "max(block_n, block_k)") for n, t in each.items()} for each in templates
    )


def computes_much(cluster: Cluster, reduced: tuple[Axis, ...]) -> bool:
    """Whether each element of a row takes a function of COMPUTED."""
    values = (v for v in cluster.values() if isinstance(v, Map) and v.fn in COMPUTED)
    return any(axes_of(v) & set(reduced) for v in values)


Axes = Sequence[Axis]


def in_channels(cluster: Cluster, reduced: Axes, suits: Callable[[int], bool]) -> tuple[Axes, Axes]:
    """The axes of channels, along which alone something varies, and those of a channel's neighbours.

    It is read and computed once a channel then, and not for each of its neighbours. There are no channels
    where their number is not known, or does not suit.
    """
    for n in reversed(range(1, len(reduced))):
        channels, neighbours = reduced[:n], reduced[n:]
        count = product(a.size for a in channels)
        if count.is_Integer and count > 1 and suits(int(count)) and _varies(cluster, channels, neighbours):
            return channels, neighbours
    return (), reduced


def _varies(cluster: Cluster, channels: Axes, neighbours: Axes) -> bool:
    """Whether something that is read varies along the last of the channels' axes, and no neighbours'."""
    return any(channels[-1] in axes_of(v) and axes_of(v).isdisjoint(neighbours) for v in cluster.loads())


def suited(cluster: Cluster, rows: Axes, reduced: Axes) -> tuple[int, int]:
    """Elements of a program and of a warp that suit the cluster where nothing was measured."""
    return SHARING if shares(cluster, rows, reduced) else APART, elements_a_warp(cluster)


def tiles(first: tuple[int, int]) -> tuple[Mapping[str, str], ...]:
    """How many rows a program takes, and its warps, by elements of a program and of a warp."""
    return tuple(
        {
            "BLOCK_M": f"max({elements} // block_n, 1)",
            "num_warps": f"min(max(block_m * block_n // {each}, 1), 16)",
        }
        for elements, each in dict.fromkeys((first, *TILES))
    )


def shares(cluster: Cluster, rows: Axes, reduced: Axes) -> bool:
    """Whether rows that follow each other read something in common along them, such as a norm's weight."""
    along = [axes_of(v) for v in cluster.loads() if axes_of(v) & set(reduced)]
    return any(rows[-1] not in axes for axes in along)


def whole(cluster: Cluster, rows: Axes, channels: Axes, neighbours: Axes) -> Schedule:
    """Each row at once; short rows several to a program."""
    walks, rewrites = nest(
        ("row", rows, Walk("grid", "BLOCK_M")),
        ("channel", channels, Walk("whole", "BLOCK_C")),
        ("col", neighbours, Walk("whole", "BLOCK_N")),
    )
    sized = {"BLOCK_C": covering(product(a.size for a in channels))} if channels else {}
    sized["BLOCK_N"] = covering(product(a.size for a in neighbours))
    length = "(block_c * block_n)" if channels else "block_n"
    templates = tuple(
        {block: text.replace("block_n", length) for block, text in tile.items()}
        for tile in tiles(suited(cluster, rows, (*channels, *neighbours)))
    )
    return Schedule(walks, tuple(walks), ROWS, rewrites, sized, templates[0], templates)


def whole_at_once(reduced: Axes) -> Schedule:
    """All that there is in one program."""
    walks, rewrites = nest(("col", reduced, Walk("whole", "BLOCK_N")))
    configs = tuple({"num_warps": w} for w in (4, 8, 16))
    sized = {"BLOCK_N": covering(product(a.size for a in reduced))}
    return Schedule(walks, ("col",), configs, rewrites, sized, WHOLE[0])


def chunked(cluster: Cluster, condition: str) -> Alternative:
    """All reductions by partial results of chunks; else one after the other, then what they are for."""
    cluster = at_once(cluster, online)
    if can_split_at_once(cluster):
        (first, partial), last = in_chunks(cluster)
        return Alternative("split", ((first, replace(partial, streams=True)), last), condition)
    found: list[tuple[Cluster, Schedule]] = []
    for stage in staged(cluster):
        found += in_chunks(stage) if stage.reduces() else always(pointwise.alternatives(stage)).kernels
    return Alternative("staged", tuple(found), condition)


def in_chunks(cluster: Cluster) -> list[tuple[Cluster, Schedule]]:
    """Two kernels for a long reduction over neighbours."""
    reduced = in_memory_order(cluster.reduces()[0].axes, cluster)
    cluster = fuse("col", reduced)(cluster)
    (over,) = cluster.reduces()[0].axes
    first, rest = split(cluster, over, CHUNK)
    loop = Walk("loop", "BLOCK_N")
    rows = tuple(a for a in first.free() if a.name not in ("part", "i"))
    grid, fused = nest(("row", rows, Walk("grid")))
    partial = Schedule({**grid, "part": Walk("grid"), "i": loop}, ("i",), CHUNKS, fused)
    if first.inner_reduces():  # Loops would read the chunk again for each.
        walks = {**partial.walks, "i": Walk("whole", "BLOCK_N")}
        partial = replace(partial, walks=walks, configs=WARPS, sized={"BLOCK_N": str(CHUNK)})
    grid, fused = nest(("row", rest.free(), Walk("grid")))
    return [(first, partial), (rest, Schedule({**grid, "part": loop}, ("part",), GATHERS, fused))]
