"""Which steps lie in memory. All others are computed in the kernels that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pytorch_to_triton.draft.defects import concerning
from pytorch_to_triton.draft.groups import Group, group_of
from pytorch_to_triton.draft.ir.rewriting import decided, picked, rewrite, written_out
from pytorch_to_triton.draft.ir.tails import without_tails
from pytorch_to_triton.draft.ir.values import Cluster, Load, Map, Store, Value, axes_of, kind_of, named
from pytorch_to_triton.draft.program import Call, Program, Step, anchors_of, buffers_of, read_through
from pytorch_to_triton.draft.schedule.axes import merged
from pytorch_to_triton.draft.schedule.schedule import Mismatch
from pytorch_to_triton.draft.schedule.unified import over_axes_of, unified


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
            stores.append(over_axes_of(stores, Store(s.buffer, s.tensor.indices, value)))
        cluster = without_tails(Cluster(steps[-1].name, tuple(stores)))
        return group_of(merged(unified(cluster)), tuple(steps))

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
