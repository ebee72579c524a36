"""Which steps share a kernel.

Every step reads its operands as Loads; to fuse is to replace a Load by what was computed there. A value stays
in memory only if it must: it is returned or a call of PyTorch reads it, no pattern takes producer and reader
together, or it reduces and more than one kernel would compute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType

from pytorch_to_triton.draft.defects import concerning
from pytorch_to_triton.draft.groups import Group, group_of, in_order, made_by, read_by
from pytorch_to_triton.draft.ir.rewriting import beside, decided, picked, rewrite, written_out
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.tails import without_tails
from pytorch_to_triton.draft.ir.values import (
    Cluster,
    Const,
    Index,
    Load,
    Map,
    Reduce,
    Scan,
    Store,
    Value,
    axes_of,
    kind_of,
    named,
    walk,
)
from pytorch_to_triton.draft.patterns import (
    attention,
    columns,
    contraction,
    pointwise,
    row_totals,
    rows,
    rows_with_column_sums,
    window,
)
from pytorch_to_triton.draft.patterns.rows_with_column_sums import largest, stores_as_it_reads
from pytorch_to_triton.draft.program import Call, Program, Step, buffers_of, read_through, taken_apart
from pytorch_to_triton.draft.schedule.axes import innermost, merged
from pytorch_to_triton.draft.schedule.schedule import Mismatch
from pytorch_to_triton.draft.schedule.unified import over_axes_of, unified

LARGEST = 160
"""Values that one kernel may compute: beyond that registers run out, and readers' patience."""

LONG = frozenset({"sin", "cos", "tan", "pow"})
"""Functions of dozens of instructions, more than memory leaves time for."""
FEWEST_READS = 16
"""Elements that a value has to be computed for, to be worth a kernel and its launch."""

JOINED = (rows_with_column_sums, row_totals, rows, pointwise)
"""Patterns that compute several results of the same rows in one kernel."""

IN_ATTENTION = 3
"""Steps of an attention that reduce, before the last one: the scores, and the softmax by hand."""


def partition(program: Program, outputs: Iterable[str], *, plain: bool) -> tuple[Group | Call, ...]:
    """Groups and calls in order of execution. `outputs`: steps to be stored; `plain`: one anchor each."""
    return _Partition(program, set(outputs), plain=plain).found()


class _Partition:
    def __init__(self, program: Program, outputs: set[str], *, plain: bool) -> None:
        self.program, self.plain = program, plain
        self.steps = program.steps
        called = {r for c in program.calls for r in c.reads}
        self.required = {n for n in (outputs | called) if n in self.steps}
        self.kept = self.required | {n for n, s in self.steps.items() if s.is_kept}
        self.inlined_values: dict[tuple[str, frozenset[str]], Value] = {}

    def found(self) -> tuple[Group | Call, ...]:
        absorbed = set() if self.plain else self._attended()
        for step in self.steps.values():
            if step.name not in absorbed:
                with concerning([step.node]):
                    self._settle(step)
        while again := self._computed_twice():
            self.kept |= again
            self.inlined_values.clear()
        if not self.plain:
            self._take_columns_apart()
        groups: list[Group] = []
        for name in (n for n in self.steps if n in self.kept):
            groups = self._with(groups, self.steps[name])
        if not self.plain:
            groups = self._joined(groups)
        groups = [needed for g in groups if (needed := self._without_unread(g, groups))]
        ordered = in_order(
            [replace(g, operators=self._operators(g.steps)) for g in groups], self.program.calls
        )
        assert ordered is not None
        return ordered

    def _with(self, groups: list[Group], step: Step) -> list[Group]:
        """The groups with one more step: in the first that may store it, else in one of its own."""
        for at, home in enumerate(groups):
            if self._shares(home, step):
                shared = [*groups[:at], self._group((*home.steps, step)), *groups[at + 1 :]]
                if in_order(shared, self.program.calls):
                    return shared
        read = (relaid for home in groups if (relaid := self._from_copy(home, step)))
        return [*groups, next(read, None) or self._group((step,))]

    def _from_copy(self, home: Group, step: Step) -> Group | None:
        """The step's sums across rows of a copy that another group stores, if its rows lie better there."""
        copying = any(isinstance(s.value, Load) for s in home.cluster.stores)
        if self.plain or not copying or not self._has_anchor(step.name):
            return None
        together = self._matched((*home.steps, step))
        if isinstance(together, Mismatch) or together.pattern is not rows_with_column_sums:
            return None
        *stored, last = together.cluster.stores
        copies: dict[Value, Value] = {
            s.value: Load(s.buffer, s.index, name=s.buffer.name)
            for s in stored
            if isinstance(s.value, Load) and s.value.buffer.dtype == s.buffer.dtype
        }
        if stores_as_it_reads(together.cluster):
            return None
        again = Cluster(step.name, (last.map(lambda v: rewrite(v, copies.get)),))
        found = group_of(merged(again), (step,))
        return found if isinstance(found, Group) and found.pattern is columns else None

    def _joined(self, groups: Sequence[Group]) -> list[Group]:
        """Groups that read the same rows in one kernel: sums across rows with those of rows, and siblings."""
        joined = list(groups)
        for home in [g for g in groups if g.pattern in (columns, rows, pointwise)]:
            while home in joined and (more := self._with_another(joined, home)):
                home, joined = more
        return joined

    def _with_another(self, groups: Sequence[Group], home: Group) -> tuple[Group, list[Group]] | None:
        """The group with the first that may be in its kernel, and all groups then; None where none may."""
        for other in (g for g in groups if g is not home):
            if both := self._together(home, other):
                joined = [both if g is other else g for g in groups if g is not home]
                if in_order(joined, self.program.calls):
                    return both, joined
        return None

    def _together(self, home: Group, other: Group) -> Group | None:
        """Both in one kernel, if it reads once what each would read, and neither waits for the other."""
        read = {v.buffer.name for v in largest(home.cluster)} & read_by(other)
        if not read and not read_by(home) & set(made_by(other)):
            return None
        made = {*made_by(home), *made_by(other)}
        both = self._matched([s for s in self.steps.values() if s.name in made])
        if isinstance(both, Mismatch) or both.pattern not in JOINED or _is_large(both) or _repeats(both):
            return None
        if both.pattern in (row_totals, rows) and not _lies_in_rows(both):
            return None
        waits = (read_by(both) - made) & (self._later(home) | self._later(other))
        return both if stores_as_it_reads(both.cluster) and not waits else None

    def _without_unread(self, group: Group, groups: Sequence[Group]) -> Group | None:
        """The group without stores that nothing else reads, now that it computes their readers too.

        None where nothing is left: a reader that looks at another part of what it joins.
        """
        read = self.required.union(*(read_by(g) for g in groups if g is not group))
        needed = tuple(s for s in group.steps if s.name in read)
        if len(needed) == len(group.steps):
            return group
        unread = {s.name for s in group.steps} - {s.name for s in needed}
        self.kept -= unread
        self.inlined_values.clear()
        if not needed:
            return None
        without = self._group(needed)
        if without.pattern is group.pattern:
            return without
        self._keep(list(unread))
        return group

    def _attended(self) -> set[str]:
        """Steps inside of an attention: each by itself would be cut off before the whole is seen.

        What they read that reduces, such as a projection, is kept.
        """
        products = {s.name for s in self.steps.values() if self._is_product(s)}
        found: set[str] = set()
        for step in (s for s in self.steps.values() if s.name in products):
            for inside in self._from_product(step, products):
                before = set(self.kept)
                self._keep([n for n, s in self.steps.items() if n not in inside and self._reduces(s)])
                matched = self._alone(step, attention)
                self.kept = before
                self.inlined_values.clear()
                if matched:
                    found |= inside
                    read = {v.buffer.name for v in matched.loads()} & self.steps.keys()
                    self._keep([n for n in read if self._reduces(self.steps[n])])
        return found - self.kept

    def _is_product(self, step: Step) -> bool:
        return self._reduces(step) and contraction.match(Cluster(step.name, (step.store,))) is None

    def _alone(self, step: Step, pattern: ModuleType) -> Cluster | None:
        """The step with all that is not kept in one cluster, where the pattern takes it."""
        store = Store(step.buffer, step.tensor.indices, self._inlined(step.name))
        cluster = Cluster(step.name, (store,))
        return cluster if pattern.match(cluster) is None else None

    def _from_product(self, step: Step, products: set[str]) -> list[set[str]]:
        """For each product shortly before this one: it, and what leads from it here past no other."""
        leads: dict[str, set[str]] = {}

        def sources(name: str) -> set[str]:
            if name not in leads:
                own = {name} if name in products else set[str]()
                leads[name] = own or {p for n in self._direct(self.steps[name]) for p in sources(n)}
            return leads[name]

        first = {p for n in self._direct(step) for p in sources(n)}
        ways = [{n for n, by in leads.items() if p in by} for p in sorted(first)]
        return [w for w in ways if sum(self._reduces(self.steps[n]) for n in w) <= IN_ATTENTION]

    def _settle(self, step: Step) -> None:
        """Keep producers until a pattern takes the step with those that are left."""
        while True:
            inside = self._direct(step)
            anchors = [n for n in inside if self._has_anchor(n)]
            if (
                self.plain
                and anchors
                and (self._reduces(step) or not _is_epilogue(self.steps, anchors, step))
            ):
                self._keep(anchors)
                continue
            if beside := self._laid_side_by_side(step, anchors):
                self._keep(beside)
                continue
            matched = self._matched((step,))
            if isinstance(matched, Group) and not _is_large(matched):
                repeats = _repeats(matched) and not self._goes_on(step, anchors, matched)
                if not repeats or all(map(self._is_spread, anchors)):
                    self._keep([n for n in inside if self._is_table(n, step)])
                    return
            if not inside:
                return
            self._keep(self._statistics(step, anchors) or (anchors or inside)[-1:])

    def _laid_side_by_side(self, step: Step, anchors: Sequence[str]) -> list[str]:
        """Sums of the same rows that the step only joins: it would read the rows again for each of them."""
        if self.plain or self._reduces(step):
            return []
        guarded = {
            v.buffer.name for v in walk(step.tensor.value) if isinstance(v, Load) and v.where is not None
        }
        parts = [n for n in anchors if n in guarded and self._is_sum(n)]
        read = [{v.buffer.name for v in walk(self._inlined(n)) if isinstance(v, Load)} for n in parts]
        return parts if len(parts) > 1 and set.intersection(*read) else []

    def _is_sum(self, name: str) -> bool:
        """Whether the step is smaller than what it reduces."""
        reduces = [v for v in walk(self._inlined(name)) if isinstance(v, Reduce)]
        return bool(reduces) and not any(set(r.axes) & set(self.steps[name].tensor.axes) for r in reduces)

    def _statistics(self, step: Step, anchors: Sequence[str]) -> list[str]:
        """What an anchor is reduced to across rows, where the step goes on with it and with another's rows.

        In memory that takes fewer bytes than the anchor itself, which the kernel of the rows computes then.
        """
        if self.plain or self._reduces(step):
            return []
        matched = {n: self._matched((self.steps[n],)) for n in anchors}
        patterns = {n: m.pattern for n, m in matched.items() if isinstance(m, Group)}
        across = [n for n, p in patterns.items() if p is columns and not self._is_spread(n)]
        if not across or rows not in patterns.values():
            return []
        return self._taken_apart(self.steps[across[-1]])

    def _take_columns_apart(self) -> None:
        """Keep the statistics of columns where a kernel of rows that reads the same can go on with them."""
        matched = [self._matched((self.steps[n],)) for n in self.steps if n in self.kept]
        groups = [m for m in matched if isinstance(m, Group)]
        read = {b for g in groups if g.pattern is rows for b in read_by(g)}
        for group in (g for g in groups if g.pattern is columns):
            cluster = group.cluster
            stores_all = {a for r in cluster.reduces() for a in r.axes} <= set(cluster.free())
            if stores_all and read & {v.buffer.name for v in largest(cluster)}:
                self._keep(self._taken_apart(group.steps[0]))

    def _taken_apart(self, step: Step) -> list[str]:
        """Give each of its reductions a step, inner ones first, and the step their results; their names.

        None where one carries several values.
        """
        if not all(v.monoid.is_plain for v in walk(self._inlined(step.name)) if isinstance(v, Reduce | Scan)):
            return []
        taken = {*self.steps, *(i.name for i in self.program.graph.inputs)}
        *parts, whole = taken_apart(step, self._inlined(step.name), _first_reduction, taken)
        found = (*(replace(part, is_kept=True) for part in parts), whole)
        items = (new for i in self.program.items for new in (found if i is step else (i,)))
        self.program = replace(self.program, items=tuple(items))
        self.steps = self.program.steps
        return [part.name for part in parts]

    def _is_spread(self, name: str) -> bool:
        """Whether the step has the same again along an axis, so that storing it spares nothing."""
        return bool(set(self.steps[name].tensor.axes) - axes_of(self._inlined(name)))

    def _is_table(self, name: str, reader: Step) -> bool:
        """Whether the reader would compute long functions of it for each row, where loads give the same."""
        values = [*walk(self._inlined(name))]
        if any(isinstance(v, Reduce | Scan) for v in values):
            return False
        everything = {a for v in walk(reader.tensor.value) for a in axes_of(v)}
        reads = [v for v in walk(reader.tensor.value) if isinstance(v, Load) and v.buffer.name == name]
        again = [product(a.size for a in everything - axes_of(v)) for v in reads]
        long = any(isinstance(v, Map) and v.fn in LONG and len(axes_of(v)) > 1 for v in values)
        return long and all(not n.is_Integer or int(n) >= FEWEST_READS for n in again)

    def _goes_on(self, step: Step, anchors: Sequence[str], group: Group) -> bool:
        """Whether each window is computed just once: for the one element that goes on with it."""
        if group.pattern is not window or self._reduces(step):
            return False
        if not all(self._is_window(n) for n in anchors):
            return False
        reads = [v for v in walk(step.tensor.value) if isinstance(v, Load) and v.buffer.name in anchors]
        plain = all(v.where is None and all(isinstance(i, Index | Const) for i in v.index) for v in reads)
        return plain and all(set(step.tensor.axes) <= axes_of(v) for v in reads)

    def _is_window(self, name: str) -> bool:
        """Whether no pattern would compute the step better in a kernel of its own."""
        matched = self._matched((self.steps[name],))
        return isinstance(matched, Group) and matched.pattern is window

    def _keep(self, names: Sequence[str]) -> None:
        self.kept |= set(names)
        self.inlined_values.clear()

    def _reduces(self, step: Step) -> bool:
        return any(isinstance(v, Reduce | Scan) for v in walk(step.tensor.value))

    def _has_anchor(self, name: str) -> bool:
        return any(isinstance(v, Reduce | Scan) for v in walk(self._inlined(name)))

    def _direct(self, step: Step) -> list[str]:
        """The steps that would be computed in this one's kernel and that it reads itself, in order."""
        read = buffers_of(step.tensor)
        return [n for n in self.steps if n in read and n not in self.kept]

    def _inlined(self, name: str, also: frozenset[str] = frozenset()) -> Value:
        """What the step computes, with what is not kept, or is stored on the way, computed in place."""
        if (name, also) not in self.inlined_values:
            self.inlined_values[name, also] = self._computed(self.steps[name], also - {name})
        return self.inlined_values[name, also]

    def _computed(self, step: Step, also: frozenset[str]) -> Value:
        def computed(v: Value) -> Value | None:
            if not isinstance(v, Load) or v.buffer.name not in self.steps:
                return None
            name = v.buffer.name
            if name in self.kept and name not in also:
                return None
            inner = self._inlined(name, also)
            return read_through(v, self.steps[name], written_out(inner) if reduces else inner)

        reduces = self._reduces(step)
        value = rewrite(step.tensor.value, lambda v: computed(v) or picked(decided(plain_float(v))))
        return named(step.name, value) if step.node.source_name else value

    def _group(self, steps: Sequence[Step]) -> Group:
        with concerning([s.node for s in steps]):
            matched = self._matched(steps)
            assert isinstance(matched, Group), matched
        return matched

    def _matched(self, steps: Sequence[Step]) -> Group | Mismatch:
        own = frozenset(s.name for s in steps[:-1])
        stores: list[Store] = []
        for s in steps:
            value = self._inlined(s.name, own)
            value = named(s.name, value) if isinstance(value, Map) else value
            stores.append(over_axes_of(stores, Store(s.buffer, s.tensor.indices, value)))
        cluster = without_tails(Cluster(steps[-1].name, tuple(stores)))
        return group_of(merged(unified(cluster)), tuple(steps))

    def _operators(self, steps: Sequence[Step]) -> frozenset[str]:
        inside = {n for s in steps for n in self._inside(s.name)}
        return frozenset(s.node.op for s in (*steps, *(self.steps[n] for n in inside)))

    def _computed_twice(self) -> set[str]:
        """Reducing steps that more than one stored step would compute."""
        readers: dict[str, set[str]] = {}
        for name in self.kept:
            for inner in self._inside(name):
                readers.setdefault(inner, set()).add(name)
        twice = {n for n, by in readers.items() if len(by) > 1 and self._reduces(self.steps[n])}
        twice = {n for n in twice if self.plain or not self._is_computed_at_once(readers[n])}
        # Only the outermost: what they compute themselves is computed once then.
        return {n for n in twice if not any(n in self._inside(m) for m in twice)}

    def _is_computed_at_once(self, names: set[str]) -> bool:
        """Whether one kernel of rows computes all of these: what they share is computed once there."""
        both = self._matched([s for s in self.steps.values() if s.name in names])
        return isinstance(both, Group) and both.pattern is rows and not _is_large(both) and not _repeats(both)

    def _inside(self, name: str) -> set[str]:
        found: set[str] = set()
        todo = self._direct(self.steps[name])
        while todo:
            n = todo.pop()
            if n not in found:
                found.add(n)
                todo += self._direct(self.steps[n])
        return found

    def _shares(self, group: Group, step: Step) -> bool:
        """Whether what is stored anyway can be stored on the way to this one, over the same axes."""
        if self.plain and len(group.steps) >= 1 and self._reduces(step):
            return False
        last = group.steps[-1]
        own = frozenset(s.name for s in group.steps)
        reads = [v for v in walk(self._inlined(step.name)) if isinstance(v, Load)]
        mine = [v for v in reads if v.buffer.name in own]
        siblings = step.node is last.node and set(step.tensor.axes) == set(last.tensor.axes)
        if not step.is_kept and any(self.steps[v.buffer.name].is_kept for v in mine):
            return False
        if not (mine or siblings or self._saves(group, step, reads)) or (
            set(last.tensor.axes) - set(step.tensor.axes) and not _narrower(group, step)
        ):
            return False
        if not all(v.index == self.steps[v.buffer.name].tensor.indices and v.where is None for v in mine):
            return False
        if {v.buffer.name for v in reads} & self._later(group):
            return False
        together = self._matched((*group.steps, step))
        if isinstance(together, Mismatch) or _is_large(together) or (not siblings and _repeats(together)):
            return False
        if together.pattern is rows_with_column_sums and not stores_as_it_reads(together.cluster):
            return False
        return together.pattern is group.pattern or group.pattern.__name__.endswith("pointwise")

    def _saves(self, group: Group, step: Step, reads: Sequence[Load]) -> bool:
        """Whether one kernel would read once what both read in full, and write both in the same order."""
        if self.plain or group.pattern in (contraction, window, attention):
            return False
        mine, others = step.tensor.axes, group.steps[-1].tensor.axes
        if [a for a in mine if a in others] != [a for a in others if a in mine]:
            return False
        axes = set(mine if len(mine) > len(others) else others)
        filling = {v.buffer for v in group.cluster.loads() if len(axes_of(v)) >= len(axes)}
        return any(v.buffer in filling and axes <= axes_of(v) for v in reads)

    def _later(self, group: Group) -> set[str]:
        """What is computed from the group's values: a member must not read it."""
        made = {s.name for s in group.steps}
        found: set[str] = set()
        for item in self.program.items:
            reads = item.reads if isinstance(item, Call) else buffers_of(item.tensor)
            if set(reads) & (made | found):
                found |= {item.name} if isinstance(item, Step) else set(item.names)
        return found - made


def _first_reduction(value: Value) -> Reduce | None:
    return next((v for v in walk(value) if isinstance(v, Reduce)), None)


def _narrower(group: Group, step: Step) -> bool:
    """Whether the step reduces what the group stores: statistics beside the values."""
    return set(step.tensor.axes) < {a for s in group.steps for a in s.tensor.axes}


def _repeats(group: Group) -> bool:
    """Whether the kernel would reduce the same again for each of several outputs.

    The window pattern does so for every element; others where a reduction does not vary along an axis of the
    outputs that none runs over (what one runs over is in one program), and beside none that does vary.
    """
    if group.pattern is window:
        return True
    if group.pattern is attention:
        return False
    reduces = group.cluster.reduces()
    apart = set(group.cluster.free()) - {a for r in reduces for a in r.axes}
    return any(apart - axes_of(r) and not any(beside(r, q) for q in reduces) for r in reduces)


def _is_large(group: Group) -> bool:
    return len(group.cluster.values()) > LARGEST


def _lies_in_rows(group: Group) -> bool:
    """Whether neighbours in memory are reduced together wherever most is read."""
    reduced = {a for r in group.cluster.reduces() for a in r.axes}
    return all(innermost(load) in reduced for load in largest(group.cluster))


def _is_epilogue(steps: dict[str, Step], anchors: Sequence[str], step: Step) -> bool:
    """Whether the step only goes on with the one result that it reads."""
    return len(anchors) == 1 and set(steps[anchors[0]].tensor.axes) == set(step.tensor.axes)


def plain_float(v: Value) -> Value:
    """A float that is computed where it is read, not loaded, needs no conversion: it is a float32."""
    match v:
        case Map(fn="to_float", args=(x,)) if not isinstance(x, Load) and kind_of(x) == "float":
            return x
    return v
