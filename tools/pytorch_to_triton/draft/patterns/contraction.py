"""Sums of products: matrix products and convolutions, with what is computed of their result at once.

A block of the output a program, rows and columns on the grid. `tiled`: in order. `grouped`: in an order that
keeps operands in the cache. `of_copies`: the same of copies whose rows begin where wide loads may. Float32 is
multiplied as PyTorch does it: in TF32 where it may, else by bfloat16 parts that together err less than
float32 (six products; measured 2.13e-7 against 1.15e-6 for 4096 summands). A convolution's rows are its
output's pixels, its columns output channels; channels and taps are one axis.
"""

from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Map, Reduce, axes_of, kind_of
from pytorch_to_triton.draft.patterns import columns, pointwise
from pytorch_to_triton.draft.schedule.axes import nest
from pytorch_to_triton.draft.schedule.blocks import configurations, pipelined, tiles_in_loop, within
from pytorch_to_triton.draft.schedule.conditions import always, at_most, more_than, together
from pytorch_to_triton.draft.schedule.padded import padded
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk
from pytorch_to_triton.draft.schedule.split import split

EXAMPLES = (
    "def projected(a: 'float32[M, K]', b: 'float32[K, N]', c: 'float32[N]'):\n"
    "    return torch.nn.functional.gelu(a @ b + c)",
)
TRAITS = Traits(reads_once=False)


NUMBERS = "BLOCK_M BLOCK_N BLOCK_K num_warps num_stages"
CONFIGS = configurations(
    NUMBERS,
    (64, 64, 32, 4, 3), (128, 128, 64, 8, 3), (128, 64, 32, 8, 3), (64, 128, 32, 4, 4),
    (128, 256, 32, 8, 3), (64, 32, 64, 4, 4), (32, 64, 64, 4, 4), (16, 64, 64, 4, 4),
)  # fmt: skip
SHORT = 64
"""Summands that one block holds."""
SHORT_SUMS = (*configurations(NUMBERS, (64, 128, 64, 4, 3)), *CONFIGS)
"""Each program reads its operands once: what a convolution of one pixel is limited by."""
TAPS = configurations(
    NUMBERS,
    (128, 128, 16, 4, 3), (64, 128, 16, 4, 4), (256, 128, 16, 8, 3), (256, 64, 16, 4, 3),
    (64, 128, 32, 4, 3), (128, 64, 32, 4, 3), (64, 32, 32, 4, 2),
)  # fmt: skip
"""For convolutions, the fastest of 72 for each of eight of them, in TF32 on an H200."""
FEW_OUTPUTS = 2**19
LONG_SUM = 2**14
CHUNK = 4096
LARGE = (512, 512, 256)
"""Rows, columns and summands: an element of an operand is multiplied so often that its copy is paid for."""


def match(cluster: Cluster) -> Mismatch | None:
    reduces = cluster.reduces()
    if not reduces or any(r.monoid != SUM for r in reduces) or cluster.scans():
        return Mismatch("it is no sum")
    if not all(
        isinstance(r.args[0], Map) and r.args[0].fn == "mul" and kind_of(r) == "float" for r in reduces
    ):
        return Mismatch("it sums no products")
    if len({(sides(cluster, r)) for r in reduces}) > 1:
        return Mismatch("its products lie along different axes")
    free = set(cluster.free())
    if any(axes_of(r) - free or set(r.axes) & free for r in reduces):
        return Mismatch("a product lies inside of another reduction")
    _, m, n, _ = sides(cluster, reduces[0])
    if not m or not n:
        return Mismatch("one operand varies along no axis of its own: a matrix times a vector")
    return None


def sides(cluster: Cluster, r: Reduce) -> tuple[tuple[Axis, ...], ...]:
    """Axes of both operands, of the left or the right one alone, and the reduced ones."""
    assert isinstance(r.args[0], Map)
    a, b = (axes_of(x) for x in r.args[0].args)
    free = cluster.free()
    batch = tuple(x for x in free if (x in a) == (x in b))
    m = tuple(x for x in free if x in a and x not in b)
    return batch, m, tuple(x for x in free if x in b and x not in a), r.axes


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    found: tuple[Alternative, ...] = in_tiles(cluster)
    batch, m, n, k = sides(cluster, cluster.reduces()[0])
    if len(k) > 1 or len(cluster.reduces()) > 1:
        return found
    outputs = product(a.size for a in (*batch, *m, *n))
    few_and_long = together(at_most(outputs, FEW_OUTPUTS), more_than(k[0].size, LONG_SUM))
    if few_and_long is not None and (kernels := split_k(cluster, k[0])):
        found = (*found, Alternative("split_k", kernels, few_and_long))
    large = together(
        *(
            more_than(product(a.size for a in axes), least - 1)
            for axes, least in zip((m, n, k), LARGE, strict=True)
        )
    )
    copied = None if large is None else of_copies(cluster, large)
    return found if copied is None else (*found, copied)


def in_tiles(cluster: Cluster) -> tuple[Alternative, Alternative]:
    """A tile of the output a program, the programs in order and in groups."""
    batch, m, n, k = sides(cluster, cluster.reduces()[0])
    walks, fused = nest(
        ("batch", batch, Walk("grid")),
        ("row", m, Walk("grid", "BLOCK_M")),
        ("col", n, Walk("grid", "BLOCK_N")),
        ("k", k, Walk("loop", "BLOCK_K")),
    )
    sides_of = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    blocks = {block: product(a.size for a in axes) for block, axes in sides_of.items()}
    tiles = tiles_in_loop(Schedule(walks, (), (), fused).applied(cluster), walks)
    is_short = at_most(blocks["BLOCK_K"], SHORT) == ""
    candidates = TAPS if len(k) > 1 else SHORT_SUMS if is_short else CONFIGS
    configs = pipelined(within(candidates, blocks), tiles)
    order = ("row", "k", "col")
    first = pipelined(within(CONFIGS[:1], blocks), tiles)
    plain = Schedule(walks, order, first, fused)
    grouped = tuple({**c, "GROUP_M": 8} for c in configs)
    best = Schedule(walks, order, grouped, fused, grouped=True)
    return Alternative("tiled", ((cluster, plain),)), Alternative("grouped", ((cluster, best),))


def of_copies(cluster: Cluster, large: str) -> Alternative | None:
    """Operands whose rows begin anywhere in memory copied first, in large products."""
    if (found := padded(cluster)) is None:
        return None
    where, copies, whole = found
    if match(whole):
        return None
    kernels = [kernel for copy in copies for kernel in always(pointwise.alternatives(copy)).kernels]
    _, grouped = in_tiles(whole)
    return Alternative("of_copies", (*kernels, *grouped.kernels), together(where, large) or "")


def split_k(cluster: Cluster, k: Axis) -> tuple[tuple[Cluster, Schedule], ...]:
    """A long sum for few outputs: products of chunks of it, then the sum of those.

    Empty where the last chunk would have to be masked after the product.
    """
    first, rest = split(cluster, k, CHUNK)
    if match(first):
        return ()
    _, grouped = in_tiles(first)
    return (*grouped.kernels, columns.alternatives(rest)[0].kernels[0])
