"""Which steps lie in memory. All others are computed in the kernels that read them.

Steps inside of an attention are placed together: each by itself would be cut off before the whole is seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pytorch_to_triton.draft.defects import concerning
from pytorch_to_triton.draft.groups import Group, group_of, is_large, read_by, repeats
from pytorch_to_triton.draft.ir.padding import without_tails
from pytorch_to_triton.draft.ir.rewriting import decided, picked, rewrite, written_out
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import (
    Cluster,
    Const,
    Index,
    Load,
    Map,
    Store,
    Value,
    axes_of,
    kind_of,
    named,
    walk,
)
from pytorch_to_triton.draft.patterns import attention, contraction
from pytorch_to_triton.draft.program import (
    Call,
    Program,
    Step,
    anchors_of,
    buffers_of,
    read_through,
    reduces_of,
    taken_apart,
)
from pytorch_to_triton.draft.schedule.axes import merged, over_axes_of, unified
from pytorch_to_triton.draft.schedule.parts import in_halves, reduced_by_part
from pytorch_to_triton.draft.schedule.schedule import Mismatch


@dataclass(frozen=True)
class Placement:
    """A program, and the names of its steps that lie in memory."""

    program: Program
    stored: frozenset[str]
    plain: bool
    """Whether a kernel reduces once at most."""

    @cached_property
    def steps(self) -> dict[str, Step]:
        """All steps by name, in order."""
        return self.program.steps

    @cached_property
    def _values(self) -> dict[tuple[str, frozenset[str]], Value]:
        return {}

    def storing(self, names: Iterable[str]) -> Placement:
        """The same with more steps in memory."""
        return replace(self, stored=self.stored.union(names))

    def value(self, name: str, on_the_way: frozenset[str] = frozenset()) -> Value:
        """What the step computes, with all in place that is not stored, or is stored on the way."""
        key = name, on_the_way - {name}
        if key not in self._values:
            self._values[key] = self._computed(self.steps[name], key[1])
        return self._values[key]

    def _computed(self, step: Step, on_the_way: frozenset[str]) -> Value:
        def computed(v: Value) -> Value | None:
            if not isinstance(v, Load) or v.buffer.name not in self.steps:
                return None
            name = v.buffer.name
            if name in self.stored and name not in on_the_way:
                return None
            inner = self.value(name, on_the_way)
            return read_through(v, self.steps[name], written_out(inner) if step.anchors else inner)

        value = rewrite(step.tensor.value, lambda v: computed(v) or picked(decided(plain_float(v))))
        return named(step.name, value) if step.node.source_name else value

    def has_anchor(self, name: str) -> bool:
        """Whether the step's kernel would reduce or scan."""
        return bool(anchors_of(self.value(name)))

    def repeats_along_axes(self, name: str) -> bool:
        """Whether the step has the same again along an axis, so that storing it spares nothing."""
        return bool(set(self.steps[name].tensor.axes) - axes_of(self.value(name)))

    def direct(self, step: Step) -> list[str]:
        """The steps that would be computed in this one's kernel and that it reads itself, in order."""
        read = buffers_of(step.tensor)
        return [n for n in self.steps if n in read and n not in self.stored]

    def inside(self, name: str) -> set[str]:
        """All steps that would be computed in this one's kernel."""
        seen: set[str] = set()
        todo = self.direct(self.steps[name])
        while todo:
            n = todo.pop()
            if n not in seen:
                seen.add(n)
                todo += self.direct(self.steps[n])
        return seen

    def behind(self, group: Group) -> set[str]:
        """What is computed from the group's values."""
        made = {s.name for s in group.steps}
        later: set[str] = set()
        for item in self.program.items:
            reads = item.reads if isinstance(item, Call) else buffers_of(item.tensor)
            if set(reads) & (made | later):
                later |= {item.name} if isinstance(item, Step) else set(item.names)
        return later - made

    def matched(self, steps: Sequence[Step]) -> Group | Mismatch:
        """All of these stored by one kernel, the last one computed from the others on the way."""
        on_the_way = frozenset(s.name for s in steps[:-1])
        stores: list[Store] = []
        for s in steps:
            value = self.value(s.name, on_the_way)
            value = named(s.name, value) if isinstance(value, Map) else value
            stores.append(over_axes_of(stores, replace(s.store, value=value)))
        cluster = without_tails(Cluster(steps[-1].name, tuple(stores)))
        whole = merged(reduced_by_part(unified(cluster)))
        matched = group_of(whole, tuple(steps))
        if isinstance(matched, Group) and not repeats(matched):
            return matched
        # Rows that each part would reduce again are reduced once where all parts are stored side by side.
        divided = in_halves(whole)
        by_part = group_of(divided, tuple(steps)) if divided != whole and whole.reduces() else matched
        is_by_row = isinstance(by_part, Group) and by_part.traits.reduces == "rows" and not repeats(by_part)
        return by_part if is_by_row else matched

    def matched_alone(self, names: Iterable[str]) -> Iterator[Group]:
        """The kernels that these steps would have for themselves."""
        matched = (self.matched((self.steps[n],)) for n in names)
        return (m for m in matched if isinstance(m, Group))

    def group(self, steps: Sequence[Step]) -> Group:
        """The same where a pattern is known to take it. Raises DraftingDefect where none does."""
        with concerning([s.node for s in steps]):
            matched = self.matched(steps)
            assert isinstance(matched, Group), matched
        return matched

    def in_order_of_program(self, names: Iterable[str]) -> list[Step]:
        """The steps of these names as they are computed."""
        wanted = set(names)
        return [s for s in self.steps.values() if s.name in wanted]

    def operators(self, steps: Sequence[Step]) -> frozenset[str]:
        """The operators of these and of all that is computed with them."""
        inside = {n for s in steps for n in self.inside(s.name)}
        return frozenset(s.node.op for s in (*steps, *(self.steps[n] for n in inside)))


def plain_float(v: Value) -> Value:
    """A float that is computed where it is read, not loaded, needs no conversion: it is a float32."""
    match v:
        case Map(fn="to_float", args=(x,)) if not isinstance(x, Load) and kind_of(x) == "float":
            return x
    return v


LONG = frozenset({"sin", "cos", "tan", "pow", "uniform"})
"""Functions of dozens of instructions, more than memory leaves time for."""
FEWEST_READS = 16
"""Elements that a value has to be computed for, to be worth a kernel and its launch."""


def with_producers_of(placement: Placement, step: Step) -> Placement:
    """Producers stored until a pattern takes the step with those that are left."""
    while True:
        inside = placement.direct(step)
        anchors = [n for n in inside if placement.has_anchor(n)]
        if placement.plain and anchors and not _is_epilogue(placement, anchors, step):
            placement = placement.storing(anchors)
            continue
        if beside := _laid_side_by_side(placement, step, anchors):
            placement = placement.storing(beside)
            continue
        matched = placement.matched((step,))
        if products := _without_tiles(placement, anchors, matched):
            placement = placement.storing(products)
            continue
        if isinstance(matched, Group) and not is_large(matched):
            once = not repeats(matched) or _goes_on_with_windows(placement, step, anchors, matched)
            if once or all(map(placement.repeats_along_axes, anchors)):
                return placement.storing(n for n in inside if _is_table(placement, n, step))
        if not inside:
            return placement
        with_statistics = with_statistics_of_columns(placement, step, anchors)
        placement = with_statistics or placement.storing((anchors or inside)[-1:])


def with_shared_reductions(placement: Placement) -> Placement:
    """Steps stored that reduce and that more than one kernel would compute."""
    while shared := _computed_twice(placement):
        placement = placement.storing(shared)
    return placement


def _is_epilogue(placement: Placement, anchors: Sequence[str], step: Step) -> bool:
    """Whether the step only goes on with the one result that it reads."""
    if step.anchors or len(anchors) != 1:
        return False
    return set(placement.steps[anchors[0]].tensor.axes) == set(step.tensor.axes)


def _laid_side_by_side(placement: Placement, step: Step, anchors: Sequence[str]) -> list[str]:
    """Sums of the same rows that the step only joins, none of what another comes to: others may read the rows
    too."""
    if placement.plain or step.anchors:
        return []
    guarded = {v.buffer.name for v in walk(step.tensor.value) if isinstance(v, Load) and v.where is not None}
    parts = [n for n in anchors if n in guarded and _is_sum(placement, n)]
    read = [{v.buffer.name for v in walk(placement.value(n)) if isinstance(v, Load)} for n in parts]
    apart = not any(placement.inside(n) & {*parts} for n in parts)
    return parts if len(parts) > 1 and apart and set.intersection(*read) else []


def _without_tiles(placement: Placement, anchors: Sequence[str], group: Group | Mismatch) -> list[str]:
    """Products of matrices that the kernel would sum one by one: by themselves they are computed in tiles."""
    if isinstance(group, Mismatch) or not group.traits.reads_once:
        return []
    return [g.steps[0].name for g in placement.matched_alone(anchors) if g.pattern is contraction]


def _is_sum(placement: Placement, name: str) -> bool:
    """Whether the step is smaller than what it reduces."""
    reduces = reduces_of(placement.value(name))
    return bool(reduces) and not any(set(r.axes) & set(placement.steps[name].tensor.axes) for r in reduces)


def _is_table(placement: Placement, name: str, reader: Step) -> bool:
    """Whether the reader would compute long functions of it for each row, where loads give the same."""
    value = placement.value(name)
    if anchors_of(value):
        return False
    everything = {a for v in walk(reader.tensor.value) for a in axes_of(v)}
    reads = [v for v in walk(reader.tensor.value) if isinstance(v, Load) and v.buffer.name == name]
    again = [product(a.size for a in everything - axes_of(v)) for v in reads]
    long = any(isinstance(v, Map) and v.fn in LONG and len(axes_of(v)) > 1 for v in walk(value))
    return long and all(not n.is_Integer or int(n) >= FEWEST_READS for n in again)


def _goes_on_with_windows(placement: Placement, step: Step, anchors: Sequence[str], group: Group) -> bool:
    """Whether each window is computed just once: for the one element that goes on with it."""
    if not group.traits.repeats or step.anchors:
        return False
    alone = [*placement.matched_alone(anchors)]
    if len(alone) < len(anchors) or not all(g.traits.repeats for g in alone):
        return False
    reads = [v for v in walk(step.tensor.value) if isinstance(v, Load) and v.buffer.name in anchors]
    plain = all(v.where is None and all(isinstance(i, Index | Const) for i in v.index) for v in reads)
    return plain and all(set(step.tensor.axes) <= axes_of(v) for v in reads)


def _computed_twice(placement: Placement) -> set[str]:
    readers: dict[str, set[str]] = {}
    for name in placement.stored:
        for inner in placement.inside(name):
            readers.setdefault(inner, set()).add(name)
    twice = {n for n, by in readers.items() if len(by) > 1 and placement.steps[n].anchors}
    twice = {n for n in twice if placement.plain or not _is_computed_at_once(placement, readers[n])}
    # Only the outermost: what they compute themselves is computed once then.
    return {n for n in twice if not any(n in placement.inside(m) for m in twice)}


def _is_computed_at_once(placement: Placement, names: Collection[str]) -> bool:
    """Whether one kernel of rows computes all of these: what they share is computed once there."""
    both = placement.matched(placement.in_order_of_program(names))
    if isinstance(both, Mismatch) or is_large(both) or repeats(both):
        return False
    return both.traits.reduces == "rows"


def with_statistics_of_columns(placement: Placement, step: Step, anchors: Sequence[str]) -> Placement | None:
    """The statistics stored of the last anchor that reduces columns; None where that spares nothing.

    It spares something where the step goes on with that anchor and with a result of rows.
    """
    if placement.plain or step.anchors:
        return None
    reduced = {g.steps[0].name: g.traits.reduces for g in placement.matched_alone(anchors)}
    across = [n for n, r in reduced.items() if r == "columns" and not placement.repeats_along_axes(n)]
    if not across or "rows" not in reduced.values():
        return None
    return _with_reductions_stored(placement, placement.steps[across[-1]])


def with_columns_apart(placement: Placement) -> Placement:
    """The same for all that stores columns which it reduces, where a kernel of rows reads what it reads."""
    groups = [*placement.matched_alone(n for n in placement.steps if n in placement.stored)]
    read = {b for g in groups if g.traits.reduces == "rows" for b in read_by(g)}
    for group in (g for g in groups if g.traits.reduces == "columns"):
        stores_all = {a for r in group.cluster.reduces() for a in r.axes} <= set(group.cluster.free())
        if stores_all and read & {v.buffer.name for v in group.cluster.largest_loads()}:
            placement = _with_reductions_stored(placement, group.steps[0]) or placement
    return placement


def _with_reductions_stored(placement: Placement, step: Step) -> Placement | None:
    """A step for each of its reductions, inner ones first; None where one carries several values."""
    value, program = placement.value(step.name), placement.program
    if not all(v.monoid.is_plain for v in anchors_of(value)):
        return None
    taken = {*placement.steps, *(i.name for i in program.graph.inputs)}
    *parts, whole = taken_apart(step, value, lambda v: next(iter(reduces_of(v)), None), taken)
    apart = (*(replace(part, is_kept=True) for part in parts), whole)
    items = tuple(new for i in program.items for new in (apart if i is step else (i,)))
    return replace(placement, program=replace(program, items=items)).storing(p.name for p in parts)


MOST_ANCHORS = 3
"""Steps of an attention that reduce, before the last one: the scores, and the softmax by hand."""


def with_attentions(placement: Placement) -> tuple[Placement, set[str]]:
    """What attentions read that reduces, such as a projection, stored; and the steps inside of them."""
    products = {s.name for s in placement.steps.values() if _is_product(s)}
    attended: set[str] = set()
    for step in placement.in_order_of_program(products):
        for inside in _from_products(placement, step, products):
            others = [n for n, s in placement.steps.items() if n not in inside and s.anchors]
            if cluster := _attention(placement.storing(others), step):
                attended |= inside
                read = {v.buffer.name for v in cluster.loads()} & placement.steps.keys()
                placement = placement.storing(n for n in read if placement.steps[n].anchors)
    return placement, attended - placement.stored


def _is_product(step: Step) -> bool:
    return bool(step.anchors) and contraction.match(Cluster(step.name, (step.store,))) is None


def _attention(placement: Placement, step: Step) -> Cluster | None:
    """The step with all that is not stored in one cluster, where that is an attention."""
    store = replace(step.store, value=placement.value(step.name))
    cluster = Cluster(step.name, (store,))
    return cluster if attention.match(cluster) is None else None


def _from_products(placement: Placement, step: Step, products: set[str]) -> list[set[str]]:
    """For each product shortly before this one: it, and what leads from it here past no other."""
    leads: dict[str, set[str]] = {}

    def sources(name: str) -> set[str]:
        if name in products:
            leads[name] = {name}
        elif name not in leads:
            leads[name] = {p for n in placement.direct(placement.steps[name]) for p in sources(n)}
        return leads[name]

    first = {p for n in placement.direct(step) for p in sources(n)}
    ways = [{n for n, by in leads.items() if p in by} for p in sorted(first)]
    return [w for w in ways if sum(bool(placement.steps[n].anchors) for n in w) <= MOST_ANCHORS]
