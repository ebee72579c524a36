"""Any reductions, each output element by itself: pools, small windows, and whatever no other pattern takes.

The outputs are one long axis over the grid. A small window is unrolled; a large one is a loop.
"""

from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Cluster, Reduce
from pytorch_to_triton.draft.schedule.axes import fuse
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk

EXAMPLES = ("def pooled(x: 'float32[N, C, H, W]'):\n    return torch.nn.functional.max_pool2d(x, 3, 2, 1)",)
BLOCKS = tuple({"BLOCK": b, "num_warps": 4} for b in (256, 128, 512, 1024))
LARGEST_UNROLLED = 32


def match(cluster: Cluster) -> Mismatch | None:
    if not cluster.reduces():
        return Mismatch("it reduces nothing")
    if cluster.scans():
        return Mismatch("it scans")
    return None


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    free = cluster.free()
    walks = {"i": Walk("grid", "BLOCK")} if free else {}
    for r in cluster.reduces():
        how = Walk("unroll" if _is_small(r) else "loop")
        walks |= dict.fromkeys((a.name for a in r.axes), how)
    configs = BLOCKS if free else ({"num_warps": 4},)
    rewrites = (fuse("i", free),) if free else ()
    return (Alternative("window", ((cluster, Schedule(walks, ("i",), configs, rewrites)),)),)


def _is_small(r: Reduce) -> bool:
    size = product(a.size for a in r.axes)
    return bool(size.is_Integer) and int(size) <= LARGEST_UNROLLED
