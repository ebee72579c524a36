"""Running totals along one axis.

`carried`: a block of rows a program, the axis a tile at a time on top of what came before. `in_registers`: no
loop, for rows that fit. `in_chunks`: for few and long rows, what chunks of them come to first.
"""

from collections.abc import Sequence

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus
from pytorch_to_triton.draft.ir.rewriting import rewritten, substitute
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Index, Scan, Value, axes_in_order, walk
from pytorch_to_triton.draft.schedule.axes import nest
from pytorch_to_triton.draft.schedule.blocks import configurations, covering
from pytorch_to_triton.draft.schedule.conditions import at_most
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Config, Mismatch, Rewrite, Schedule, Walk
from pytorch_to_triton.draft.schedule.split import scans_in_chunks

EXAMPLES = (
    "def running(x: 'float32[M, N]'):\n    return torch.cumsum(x, dim=1)",
    "def from_the_end(x: 'float32[M, N]'):\n    return torch.cumsum(x.flip(1), dim=1).flip(1)",
    "def best_so_far(x: 'float32[M, N]'):\n    return torch.cummax(x, dim=1)",
)
TRAITS = Traits()
LOOPS = configurations("BLOCK_M BLOCK_N num_warps", (1, 1024, 4), (4, 256, 4), (1, 4096, 8), (16, 64, 4))
ROWS = configurations("BLOCK_M num_warps", (1, 4), (1, 8), (4, 4))
LARGEST_IN_REGISTERS = 16384
FEW_ROWS = 512
CHUNK = 1024
CHUNKS = configurations("BLOCK_M num_warps", (4, 8), (1, 4), (8, 8), (16, 8))


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.reduces():
        return Mismatch("it reduces as well")
    scans = cluster.scans()
    if not scans:
        return Mismatch("it scans nothing")
    ends = {_end(s) for s in scans}
    if None in ends or len(ends) != 1:
        return Mismatch("its scans are not read in order, or not along one axis")
    if len({_is_reversed(s) for s in scans}) != 1:
        return Mismatch("it scans in both directions")
    return None


def _end(s: Scan) -> Axis | None:
    """The free axis along which all of the scan is read, forwards or from its end."""
    ends = (Index, lambda a: minus(extent(a.size - 1), Index(a)))
    along = (a for a in axes_in_order(s.at) if sizes.equal(a.size, s.axis.size))
    return next((a for a in along if s.at in [end(a) for end in ends]), None)


def _is_reversed(s: Scan) -> bool:
    return not isinstance(s.at, Index)


def aligned(cluster: Cluster) -> Cluster:
    """The scans' own axis is the one along which they are read; from the end, all of it is turned round."""
    scan = cluster.scans()[0]
    along = _end(scan)
    assert along is not None
    if _is_reversed(scan):
        turned = minus(extent(along.size - 1), Index(along))
        cluster = cluster.map(lambda root: substitute(root, {along: turned}))

    def on_axis(v: Value) -> Value | None:
        if not isinstance(v, Scan):
            return None
        args = tuple(substitute(x, {v.axis: Index(along)}) for x in v.args)
        return Scan(v.monoid, args, along, Index(along), v.name)

    return rewritten(cluster, on_axis)


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    along = _end(cluster.scans()[0])
    assert along is not None
    rows = tuple(a for a in cluster.free() if a != along)
    found = [Alternative("carried", ((cluster, carried(cluster, along, aligned)),))]
    few = at_most(product(a.size for a in rows), FEW_ROWS - 1)
    if few is not None and can_chunk(cluster):
        found.append(Alternative("in_chunks", in_chunks(aligned(cluster), along, rows), few))
    if (fits := at_most(along.size, LARGEST_IN_REGISTERS)) is not None:
        whole = at_once(rows, along, aligned)
        found.append(Alternative("in_registers", ((cluster, whole),), fits, limit=fits))
    return tuple(found)


def carried(cluster: Cluster, along: Axis, *rewrites: Rewrite) -> Schedule:
    """A tile of the axis at a time."""
    rows = tuple(a for a in cluster.free() if a != along)
    loops = LOOPS if rows else without_rows(LOOPS)
    walks, fused = nest(("row", rows, Walk("grid", "BLOCK_M")), ("col", (along,), Walk("loop", "BLOCK_N")))
    return Schedule(walks, tuple(walks), loops, (*rewrites, *fused))


def at_once(rows: tuple[Axis, ...], along: Axis, *rewrites: Rewrite) -> Schedule:
    """All of the axis in registers."""
    walks, fused = nest(("row", rows, Walk("grid", "BLOCK_M")), ("col", (along,), Walk("whole", "BLOCK_N")))
    configs = ROWS if rows else configurations("num_warps", (4,), (8,))
    return Schedule(walks, tuple(walks), configs, (*rewrites, *fused), {"BLOCK_N": covering(along.size)})


def can_chunk(cluster: Cluster) -> bool:
    """Whether what a chunk comes to is one value, and no scan goes on with another."""
    scans = cluster.scans()
    nested = any(isinstance(v, Scan) for s in scans for x in s.args for v in walk(x))
    return not nested and all(s.monoid.is_plain for s in scans)


def in_chunks(cluster: Cluster, along: Axis, rows: tuple[Axis, ...]) -> tuple[tuple[Cluster, Schedule], ...]:
    """Totals of chunks, their running totals, and each chunk on top of what came before it."""
    totals, running, whole = scans_in_chunks(cluster, along, CHUNK)
    (part,) = (s.axis for s in running.scans()[:1])
    grid, fused = nest(("row", rows, Walk("grid", "BLOCK_M")))
    walks = {**grid, "i": Walk("whole", "BLOCK_N")}
    configs = CHUNKS if rows else without_rows(CHUNKS)
    sized = {"BLOCK_N": str(CHUNK)}
    chunk = Schedule({"part": Walk("grid"), **walks}, tuple(walks), configs, fused, sized)
    return (totals, chunk), (running, carried(running, part)), (whole, chunk)


def without_rows(configs: Sequence[Config]) -> tuple[Config, ...]:
    """The configurations for the only row."""
    return tuple({k: v for k, v in c.items() if k != "BLOCK_M"} for c in configs)
