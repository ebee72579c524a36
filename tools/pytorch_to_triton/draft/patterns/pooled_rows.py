"""Rows whose elements are reduced over another axis first: the mean of a sentence's tokens, normalised.

`apart`: one reduction after the other. `pooled`: a program holds rows whole and adds what lies beneath them.
`few`: the same as `apart`, where there are too few rows to keep all multiprocessors busy. `few_and_deep`:
that, with what lies beneath them in shares.
"""

from collections.abc import Sequence

from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import Axis, Buffer, Cluster, Load, Reduce, axes_of, walk
from pytorch_to_triton.draft.patterns import columns, pointwise, rows, window
from pytorch_to_triton.draft.schedule.axes import in_memory_order, innermost, nest
from pytorch_to_triton.draft.schedule.blocks import covering
from pytorch_to_triton.draft.schedule.conditions import always, at_most, more_than, together
from pytorch_to_triton.draft.schedule.pattern import Traits
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch, Schedule, Walk
from pytorch_to_triton.draft.schedule.split import staged

EXAMPLES = ("def pooled(x: 'float32[B, T, D]'):\n    return torch.softmax(x.mean(dim=1), dim=-1)",)
TRAITS = Traits()
LARGEST_IN_REGISTERS = 8192
TILES = rows.tiles((1024, 256))
"""Small ones first: each element that a program holds has an address of its own in the loop."""
FEW_ROWS = 256
LONG_WALK = 2**16
"""Elements beneath a row."""


def match(cluster: Cluster) -> Mismatch | None:
    if cluster.scans():
        return Mismatch("it scans")
    if len({frozenset(r.axes) for r in cluster.reduces()}) != 2:
        return Mismatch("it does not reduce over two sets of axes")
    row, beneath = map(set, divided(cluster))
    if not row or not beneath:
        return Mismatch("no axis that it reduces holds neighbours")
    free = set(cluster.free())
    if row & beneath or beneath & free or row & free not in (set(), row):
        return Mismatch("what it stores are not rows of what it reduced first, nor values of them")
    if not free - row:
        return Mismatch("it has one row alone")
    deep = [r for r in cluster.reduces() if set(r.axes) == beneath]
    if any(isinstance(v, Reduce) for r in deep for v in walk(*r.args)):
        return Mismatch("it walks beneath its rows more than once")
    along, at_results = (
        {_read(r) for r in deep if (row <= axes_of(r)) == is_row} for is_row in (True, False)
    )
    if along & at_results:
        return Mismatch("its results are elements of its rows at other places")
    if at_most(product(a.size for a in row), LARGEST_IN_REGISTERS) is None:
        return Mismatch("its rows do not fit into registers")
    return None


def _read(r: Reduce) -> frozenset[Buffer]:
    return frozenset(v.buffer for v in walk(*r.args) if isinstance(v, Load))


def divided(cluster: Cluster) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The reduced axes of a row, along which neighbours lie, and those that are reduced first; as reduced."""
    lanes = {innermost(load) for load in cluster.largest_loads()}
    reduces = cluster.reduces()
    row = dict.fromkeys(a for r in reduces if lanes & set(r.axes) for a in r.axes)
    beneath = dict.fromkeys(a for r in reduces if not lanes & set(r.axes) for a in r.axes)
    return tuple(row), tuple(beneath)


def alternatives(cluster: Cluster) -> tuple[Alternative, ...]:
    row, beneath = (in_memory_order(axes, cluster) for axes in divided(cluster))
    outer = tuple(a for a in cluster.free() if a not in row)
    length, depth = product(a.size for a in row), product(a.size for a in beneath)
    walks, rewrites = nest(
        ("row", outer, Walk("grid", "BLOCK_M")),
        ("k", beneath, Walk("loop")),
        ("col", row, Walk("whole", "BLOCK_N")),
    )
    sized = {"BLOCK_N": covering(length)}
    schedule = Schedule(walks, ("row", "col"), rows.ROWS, rewrites, sized, TILES[0], TILES)
    fits = at_most(length, LARGEST_IN_REGISTERS)
    assert fits is not None
    found = [
        Alternative("apart", kernels_of(apart(cluster))),
        Alternative("pooled", ((cluster, schedule),), fits, is_enough=True),
    ]
    n_rows = product(a.size for a in outer)
    few = together(at_most(n_rows, FEW_ROWS - 1), more_than(length * depth, LONG_WALK))
    for name, ways in (("few", apart(cluster)), ("few_and_deep", apart(cluster, beneath="split"))):
        condition = together(few, *(way.condition for way in ways))
        if condition is not None and condition not in (a.condition for a in found):
            found.append(Alternative(name, kernels_of(ways), condition))
    return tuple(found)


def apart(cluster: Cluster, beneath: str = "") -> list[Alternative]:
    """Each reduction in kernels of its own, then what goes on with them; `beneath`: in which way columns."""
    found = []
    for stage in staged(cluster):
        pattern = next(p for p in (pointwise, rows, columns, window) if p.match(stage) is None)
        ways = pattern.alternatives(stage)
        wanted = (a for a in ways if pattern is columns and a.name == beneath)
        found.append(next(wanted, always(ways)))
    return found


def kernels_of(ways: Sequence[Alternative]) -> tuple[tuple[Cluster, Schedule], ...]:
    """All of their kernels."""
    return tuple(kernel for way in ways for kernel in way.kernels)
