"""A contraction, a softmax of it, a contraction of that.

`flash`: scores never leave the registers. `staged`: one reduction after the other, for heads that are wider.
"""

from pytorch_to_triton.draft.ir.monoids import WEIGHTED_SOFTMAX
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Axis, Cluster, axes_of
from pytorch_to_triton.draft.patterns import contraction, rows
from pytorch_to_triton.draft.schedule.axes import nest
from pytorch_to_triton.draft.schedule.blocks import SMALLEST, configurations, covering, power_of_two
from pytorch_to_triton.draft.schedule.conditions import at_most, kernels_by_first, together
from pytorch_to_triton.draft.schedule.online import online
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk
from pytorch_to_triton.draft.schedule.split import staged

EXAMPLES = (
    "def attention(q: 'float32[B, M, 16]', k: 'float32[B, N, 16]', v: 'float32[B, N, 32]'):\n"
    "    return torch.softmax(q @ k.transpose(1, 2) * 0.25, dim=-1) @ v",
    "def attention(q: 'float32[B, M, D]', k: 'float32[B, N, D]', v: 'float32[B, N, D]'):\n"
    "    return torch.softmax(q @ k.transpose(1, 2) * 0.25, dim=-1) @ v",
)
TRAITS = Traits(reads_once=False, repeats=False)
CONFIGS = configurations(
    "BLOCK_M BLOCK_N num_warps num_stages", (64, 32, 4, 2), (128, 64, 8, 2), (64, 64, 4, 3), (128, 32, 4, 2)
)
LARGEST_HEAD = 256
LARGEST_OF_A_DIM = 128
"""Of a head whose width is a dim: it fits into the shared memory of every GPU."""


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.scans():
        return Mismatch("it scans")
    if len(cluster.reduces()) < 2:
        return Mismatch("it does not reduce what it reduced")
    reduces = online(cluster).reduces()
    weighted = [r for r in reduces if r.monoid == WEIGHTED_SOFTMAX]
    if len(weighted) != 1 or len(weighted[0].axes) != 1:
        return Mismatch("nothing is weighted by a softmax along one axis")
    if len(reduces) != 2:
        return Mismatch("the scores are not one contraction")
    found = parts(cluster)
    if found is None:
        return Mismatch("its axes are not queries, keys, and the widths of keys and values")
    inner, width = found[2], found[3]
    condition = fits(inner, width)
    if condition is None or (condition and apart(cluster) is None):
        return Mismatch(f"a head may be wider than {LARGEST_HEAD}")
    return None


def fits(*widths: Axis) -> str | None:
    """Where heads of these widths lie in registers, as a condition; None: nowhere."""
    sizes = (width.size for width in widths)
    return together(*(at_most(s, LARGEST_HEAD if s.is_Integer else LARGEST_OF_A_DIM) for s in sizes))


def apart(cluster: Cluster) -> Alternative | None:
    """Scores, statistics and the weighted sum one after the other; None where one is something else."""
    found: list[tuple[Cluster, Schedule]] = []
    for stage in staged(cluster):
        kernels = kernels_by_first((contraction, rows), stage)
        if not kernels:
            return None
        found += kernels
    return Alternative("staged", tuple(found))


def parts(cluster: Cluster) -> tuple[Axis, Axis, Axis, Axis, tuple[Axis, ...]] | None:
    """Queries, keys, the width of keys, the width of values, and the axes around them."""
    reduces = online(cluster).reduces()
    (weighted,) = [r for r in reduces if r.monoid == WEIGHTED_SOFTMAX]
    others = [r for r in reduces if r != weighted]
    if len(others) != 1 or len(others[0].axes) != 1:
        return None
    (key,), (inner,) = weighted.axes, others[0].axes
    value_axes = axes_of(weighted.args[1])
    score_axes = axes_of(weighted.args[0])
    width = [a for a in cluster.free() if a in value_axes and a not in score_axes]
    query = [a for a in cluster.free() if a in score_axes and a not in value_axes]
    if len(width) != 1 or not query:
        return None
    # Of several axes that only the scores have, the last is the queries'; others are heads that share keys.
    around = tuple(a for a in cluster.free() if a not in (query[-1], width[0]))
    return query[-1], key, inner, width[0], around


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    found = parts(cluster)
    assert found is not None
    query, key, inner, width, around = found
    walks, fused = nest(
        ("head", around, Walk("grid")),
        ("query", (query,), Walk("grid", "BLOCK_M")),
        ("d", (inner,), Walk("whole", "BLOCK_D")),
        ("e", (width,), Walk("whole", "BLOCK_E")),
        ("key", (key,), Walk("loop", "BLOCK_N")),
    )
    blocks = {"BLOCK_D": _block(inner.size), "BLOCK_E": _block(width.size)}
    schedule = Schedule(walks, ("query", "d", "key", "e"), CONFIGS, (*fused, online), blocks)
    condition = fits(inner, width)
    assert condition is not None
    flash = Alternative("flash", ((cluster, schedule),), condition, limit=condition)
    wider = apart(cluster) if condition else None
    return (wider, flash) if wider else (flash,)


def _block(size: Size) -> str:
    """A power of two that holds a head whole, and that tl.dot takes."""
    if size.is_Integer:
        return str(max(SMALLEST, power_of_two(size)))
    return f"max({covering(size)}, {SMALLEST})"
