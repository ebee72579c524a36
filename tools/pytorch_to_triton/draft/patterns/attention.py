"""A contraction, a softmax of it, a contraction of that: scores never leave the registers."""

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.monoids import WEIGHTED_SOFTMAX
from pytorch_to_triton.draft.ir.values import Axis, Cluster, axes_of
from pytorch_to_triton.draft.schedule.axes import fuse, rename
from pytorch_to_triton.draft.schedule.blocks import SMALLEST, power_of_two
from pytorch_to_triton.draft.schedule.online import online
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk

EXAMPLES = (
    "def attention(q: 'float32[B, M, 16]', k: 'float32[B, N, 16]', v: 'float32[B, N, 32]'):\n"
    "    return torch.softmax(q @ k.transpose(1, 2) * 0.25, dim=-1) @ v",
)
CONFIGS = tuple(
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": w, "num_stages": s}
    for m, n, w, s in ((64, 32, 4, 2), (128, 64, 8, 2), (64, 64, 4, 3), (128, 32, 4, 2))
)
LARGEST_HEAD = 256


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.scans():
        return Mismatch("it scans")
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
    if not all(a.size.is_Integer and int(a.size) <= LARGEST_HEAD for a in (inner, width)):
        return Mismatch(f"a head may be wider than {LARGEST_HEAD}")
    return None


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
    names = {query: "query", key: "key", inner: "d", width: "e"}
    rewrites = (*((fuse("head", around),) if around else ()), rename(names), online)
    walks = {
        **({"head": Walk("grid")} if around else {}),
        "query": Walk("grid", "BLOCK_M"),
        "d": Walk("whole", "BLOCK_D"),
        "e": Walk("whole", "BLOCK_E"),
        "key": Walk("loop", "BLOCK_N"),
    }
    blocks = {"BLOCK_D": _block(inner), "BLOCK_E": _block(width)}
    schedule = Schedule(walks, ("query", "d", "key", "e"), CONFIGS, rewrites, blocks)
    return (Alternative("flash", ((cluster, schedule),)),)


def _block(a: Axis) -> str:
    return str(max(SMALLEST, power_of_two(a.size))) if a.size.is_Integer else sizes.text(a.size)
