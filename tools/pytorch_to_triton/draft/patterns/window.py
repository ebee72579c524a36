"""Any reductions, each output element by itself: pools, small windows, and whatever no other pattern takes.

`window`: the outputs are one long axis over the grid. `lines`: a block of lines of neighbouring outputs.
`tiled`: where an operand lies in another order, tiles in both. A small window is unrolled; a large one is a
loop.
"""

from dataclasses import replace

from pytorch_to_triton.draft.ir.rewriting import rewritten, substitute
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Index, Reduce, Value
from pytorch_to_triton.draft.patterns import pointwise
from pytorch_to_triton.draft.schedule.axes import nest
from pytorch_to_triton.draft.schedule.blocks import configurations
from pytorch_to_triton.draft.schedule.conditions import more_than
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk

EXAMPLES = ("def pooled(x: 'float32[N, C, H, W]'):\n    return torch.nn.functional.max_pool2d(x, 3, 2, 1)",)
BLOCKS = configurations("BLOCK num_warps", (256, 4), (128, 4), (512, 4), (1024, 4))
TILES = configurations("BLOCK_M BLOCK_N num_warps", (1, 256, 4), (1, 512, 4), (4, 128, 4), (16, 64, 4))
TURNED = configurations(
    "BLOCK_M BLOCK_N num_warps", (32, 32, 4), (64, 16, 4), (16, 64, 4), (32, 64, 4), (64, 64, 4)
)
TRAITS = Traits(asked_last=3, reads_once=False, repeats=True)
LARGEST_UNROLLED = 32
SHORT_LINE = 31


def match(cluster: Cluster) -> Mismatch | None:
    if not cluster.reduces():
        return Mismatch("it reduces nothing")
    if cluster.scans():
        return Mismatch("it scans")
    return None


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    cluster = apart(cluster)
    free = cluster.free()
    taps: dict[str, Walk] = {}
    for r in cluster.reduces():
        how = Walk("unroll" if _is_small(r) else "loop")
        taps |= dict.fromkeys((a.name for a in r.axes), how)
    grid, fused = nest(("i", free, Walk("grid", "BLOCK")))
    flat = Schedule({**grid, **taps}, ("i",), BLOCKS if free else ({"num_warps": 4},), fused)
    found = [Alternative("window", ((cluster, flat),))]
    last = last_axis(cluster)
    if last is not None and (long := more_than(last.size, SHORT_LINE)) is not None:
        found.append(Alternative("lines", ((cluster, lines(cluster, last, taps)),), long))
    if across := pointwise.turned(cluster):
        turned = pointwise.tiles(cluster, *across, pointwise.fitted(TURNED, *across), taps)
        found.append(Alternative("tiled", ((cluster, turned),)))
    return tuple(found)


def apart(cluster: Cluster) -> Cluster:
    """Reductions over axes of their own, also where an output runs over the same ones."""
    free = set(cluster.free())

    def renamed(v: Value) -> Value | None:
        match v:
            case Reduce(args=args, axes=axes) if set(axes) & free:
                own = {a: Axis(f"{a.name}_in", a.size) for a in axes if a in free}
                to: dict[Axis, Value] = {a: Index(b) for a, b in own.items()}
                new = tuple(own.get(a, a) for a in axes)
                return replace(v, args=tuple(substitute(x, to) for x in args), axes=new)
        return None

    return rewritten(cluster, renamed)


def last_axis(cluster: Cluster) -> Axis | None:
    """The axis along which the outputs are neighbours, where there are others beside it."""
    index = cluster.stores[-1].index
    match index[-1:]:
        case (Index(axis=a),) if len(cluster.free()) > 1:
            return a
    return None


def lines(cluster: Cluster, last: Axis, taps: dict[str, Walk]) -> Schedule:
    """Outputs that are neighbours side by side, a few lines of them a program: what is decided by the other
    indices is decided once."""
    row = [a for a in cluster.free() if a != last][-1]
    return pointwise.tiles(cluster, (row,), (last,), TILES, taps)


def _is_small(r: Reduce) -> bool:
    size = product(a.size for a in r.axes)
    return bool(size.is_Integer) and int(size) <= LARGEST_UNROLLED
