"""Nothing is reduced: every element by itself, gathers included.

`elements`: the output as one long axis. `tiled`: where an operand lies transposed in memory, square tiles, so
that reads and writes are both coalesced.
"""

from pytorch_to_triton.draft.ir.values import Axis, Cluster, Index, Map
from pytorch_to_triton.draft.schedule.axes import fuse, innermost, rename
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk

EXAMPLES = (
    "def swish(x: 'float32[M, N]', b: 'float32[N]'):\n    return (x + b) * torch.sigmoid(x + b)",
    "def turned(x: 'float32[M, N]'):\n    return x.t() * 2.0",
)
BLOCKS = tuple({"BLOCK": b, "num_warps": w} for b, w in ((512, 4), (1024, 4), (1024, 8), (2048, 8)))
TILES = tuple(
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": w} for m, n, w in ((64, 64, 4), (32, 64, 4), (32, 32, 4))
)


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.reduces() or cluster.scans():
        return Mismatch("it reduces or scans")
    return None


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    free = cluster.free()
    if not free:
        schedule = Schedule({}, (), ({"num_warps": 1},))
    else:
        schedule = Schedule({"i": Walk("grid", "BLOCK")}, ("i",), BLOCKS, (fuse("i", free),))
    elements = Alternative("elements", ((cluster, schedule),))
    across = turned(cluster)
    return (elements, tiled(cluster, across)) if across else (elements,)


def turned(cluster: Cluster) -> Axis | None:
    """The axis along which a large operand is contiguous and the output is not."""
    index = cluster.stores[-1].index
    last = index[-1].axis if index and isinstance(index[-1], Index) else None
    if last is None:
        return None
    for load in cluster.loads():
        inner = innermost(load.index)
        varies = {a for i in load.index for a in _axes(i)}
        if inner is not None and inner != last and last in varies and inner in cluster.free():
            return inner
    return None


def _axes(v: object) -> tuple[Axis, ...]:
    match v:
        case Index(axis=a):
            return (a,)
        case Map(args=args):
            return tuple(a for x in args for a in _axes(x))
    return ()


def tiled(cluster: Cluster, across: Axis) -> Alternative:
    last = cluster.stores[-1].index[-1]
    assert isinstance(last, Index)
    others = tuple(a for a in cluster.free() if a not in (across, last.axis))
    names = {across: "row", last.axis: "col"}
    rewrites = (fuse("outer", others), rename(names)) if others else (rename(names),)
    walks = {
        **({"outer": Walk("grid")} if others else {}),
        "row": Walk("grid", "BLOCK_M"),
        "col": Walk("grid", "BLOCK_N"),
    }
    return Alternative("tiled", ((cluster, Schedule(walks, ("row", "col"), TILES, rewrites)),))
