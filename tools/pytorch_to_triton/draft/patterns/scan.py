"""Running totals along one axis.

`carried`: a block of rows a program, the axis a tile at a time on top of what came before. `in_registers`: no
loop, for rows that fit.
"""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus
from pytorch_to_triton.draft.ir.rewriting import rewritten, substitute
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Index, Scan, Value, axes_in_order
from pytorch_to_triton.draft.schedule.axes import fuse, rename
from pytorch_to_triton.draft.schedule.blocks import covering
from pytorch_to_triton.draft.schedule.conditions import at_most
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk

EXAMPLES = (
    "def running(x: 'float32[M, N]'):\n    return torch.cumsum(x, dim=1)",
    "def from_the_end(x: 'float32[M, N]'):\n    return torch.cumsum(x.flip(1), dim=1).flip(1)",
    "def best_so_far(x: 'float32[M, N]'):\n    return torch.cummax(x, dim=1)",
)
LOOPS = tuple(
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": w}
    for m, n, w in ((1, 1024, 4), (4, 256, 4), (1, 4096, 8), (16, 64, 4))
)
ROWS = tuple({"BLOCK_M": m, "num_warps": w} for m, w in ((1, 4), (1, 8), (4, 4)))
LARGEST_IN_REGISTERS = 16384


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
    rewrites = (aligned, *((fuse("row", rows),) if rows else ()), rename({along: "col"}))
    grid = {"row": Walk("grid", "BLOCK_M")} if rows else {}
    order = ("row", "col") if rows else ("col",)
    loops = LOOPS if rows else tuple({k: v for k, v in c.items() if k != "BLOCK_M"} for c in LOOPS)
    carried = Schedule({**grid, "col": Walk("loop", "BLOCK_N")}, order, loops, rewrites)
    found = [Alternative("carried", ((cluster, carried),))]
    if (fits := at_most(along.size, LARGEST_IN_REGISTERS)) is not None:
        configs = ROWS if rows else tuple({"num_warps": w} for w in (4, 8))
        walks, sized = {**grid, "col": Walk("whole", "BLOCK_N")}, {"BLOCK_N": covering(along.size)}
        whole = Schedule(walks, order, configs, rewrites, sized)
        found.append(Alternative("in_registers", ((cluster, whole),), fits, is_enough=True))
    return tuple(found)
