"""The axes that a group of steps runs over, and how each tensor lies along them.

Every dimension of every value gets an axis; broadcasting joins axes; neighbouring axes that every tensor
walks through in one stride are merged. What remains is the loop nest of one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pytorch_to_triton.graph.program import Program, Step
from pytorch_to_triton.graph.symbolic_size import ZERO, SymbolicSize
from pytorch_to_triton.graph.views import View, whole


@dataclass(frozen=True)
class Misfit:
    """Why steps do not form one kernel of a pattern."""

    reason: str


@dataclass(frozen=True)
class Axis:
    """One loop of the kernel."""

    size: SymbolicSize
    traced: int
    reduced: bool


@dataclass(frozen=True)
class Memory:
    """A tensor in memory as the kernel walks it: `strides` along the axes, 0 where it does not vary."""

    buffer: str
    strides: tuple[SymbolicSize, ...]
    offset: tuple[SymbolicSize, ...]
    dtype: str
    label: str | None


@dataclass(frozen=True)
class Nest:
    """The loop nest of one group: its axes in memory order, what it reads and what it writes."""

    axes: tuple[Axis, ...]
    loads: dict[tuple[str, int], Memory]
    """(step, position of the operand) -> tensor that is read there."""
    stores: dict[str, Memory]
    """step -> tensor that its value is written to."""

    @property
    def reduced(self) -> int | None:
        """The one reduced axis, if there is one."""
        return next((i for i, axis in enumerate(self.axes) if axis.reduced), None)


def nest(program: Program, steps: Sequence[Step], stored: frozenset[str]) -> Nest | Misfit:
    """The loop nest that computes `steps` and stores those named in `stored`; or why there is none."""
    joined = _Joined(program, {s.name: s for s in steps})
    for step in steps:
        reason = joined.add(step)
        if reason:
            return Misfit(reason)
    if len(joined.reduced_together()) > 1:
        return Misfit("its reductions run over different axes")
    order = joined.order()
    if isinstance(order, Misfit):
        return order
    found = joined.nest(order, stored)
    # An axis of no elements starts no program, and a value that does not vary along it would never be stored.
    partial = next((name for name, memory in found.stores.items() if not _spans(found, memory)), None)
    return Misfit(f"{partial} does not vary along all the axes") if partial else _merged(found)


def _spans(nest: Nest, memory: Memory) -> bool:
    """Whether the tensor varies along every axis that is not reduced."""
    return all(a.reduced or not s.is_zero for a, s in zip(nest.axes, memory.strides, strict=True))


@dataclass
class _Joined:
    """Union-find over the dimensions of a group's values."""

    program: Program
    group: dict[str, Step]
    parent: list[int] = field(default_factory=list)
    sizes: list[tuple[SymbolicSize, int]] = field(default_factory=list)
    values: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    operands: dict[tuple[str, int], tuple[int | None, ...]] = field(default_factory=dict)
    shared: dict[View, tuple[int | None, ...]] = field(default_factory=dict)
    reduced: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Reducing step -> the axes that it reduces."""

    def add(self, step: Step) -> str | None:
        """Take a step in; a reason if it cannot be in this group."""
        for position, operand in enumerate(step.operands):
            if isinstance(operand, View):
                axes = self._operand(operand)
                if axes is None:
                    return f"{step.name} reads {operand.source} through a slice or a reshape"
                self.operands[step.name, position] = axes
        if step.is_pointwise:
            self.values[step.name] = self._pointwise(step)
        elif self._repeats_reduced(step):
            return f"{step.name} reduces a dimension that only repeats values"
        else:
            self.values[step.name] = self._reduction(step)
        for axes in (self.values[step.name], *self._axes_of(step)):
            found = [self._root(a) for a in axes if a is not None]
            if len(found) != len(set(found)):
                return f"{step.name} meets the same axis twice"
        return None

    def _axes_of(self, step: Step) -> list[tuple[int | None, ...]]:
        return [axes for (name, _), axes in self.operands.items() if name == step.name]

    def _operand(self, view: View) -> tuple[int | None, ...] | None:
        if view.source not in self.group:
            # The same tensor read the same way lies along the same axes wherever it is read.
            key = replace(view, label=None)
            if key not in self.shared:
                # A dimension of one element, such as that of x[:1], is broadcast.
                self.shared[key] = tuple(
                    None if d.stride.is_zero or d.size.is_one else self._new(d.size, d.traced)
                    for d in view.dims
                )
            return self.shared[key]
        if not view.aligned:
            return None
        source = self.values[view.source]
        return tuple(None if d.source_dim is None else source[d.source_dim] for d in view.dims)

    def _pointwise(self, step: Step) -> tuple[int | None, ...]:
        operands = self._axes_of(step)
        rank = len(step.shape)
        result: list[int | None] = []
        for i in range(rank):
            axis = None
            for axes in operands:
                at = i - (rank - len(axes))
                if at >= 0 and axes[at] is not None:
                    axis = axes[at] if axis is None else self._join(axis, axes[at])
            if axis is None and step.shape.traced[i] != 1:
                axis = self._new(SymbolicSize.parse(step.shape.expressions[i]), step.shape.traced[i])
            result.append(axis)
        return tuple(result)

    def _repeats_reduced(self, step: Step) -> bool:
        """Whether a reduced dimension is expanded, or all of them have one element."""
        view, axes = step.views[0], self.operands[step.name, 0]
        none = [i for i in step.reduced if axes[i] is None]
        return len(none) == len(step.reduced) or any(view.dims[i].traced != 1 for i in none)

    def reduced_together(self) -> set[frozenset[int]]:
        """The sets of axes that the group's steps reduce; a kernel can walk one of them."""
        return {frozenset(self._root(a) for a in axes) for axes in self.reduced.values()}

    def _reduction(self, step: Step) -> tuple[int | None, ...]:
        first = self.operands[step.name, 0]
        self.reduced[step.name] = tuple(a for i in step.reduced if (a := first[i]) is not None)
        if step.kind in NORMALISING:
            for axes in self._axes_of(step)[1:]:
                for mine, theirs in zip(first[len(first) - len(axes) :], axes, strict=True):
                    if mine is not None and theirs is not None:
                        self._join(mine, theirs)
            return first
        if step.keepdim and len(step.shape) == len(first):
            return tuple(None if i in step.reduced else a for i, a in enumerate(first))
        return tuple(a for i, a in enumerate(first) if i not in step.reduced)

    def order(self) -> tuple[int, ...] | Misfit:
        """All axes, in the order of a value that spans them; the last such value decides."""
        needed = {self._root(a) for axes in self._all() for a in axes if a is not None}
        spanning: tuple[int, ...] | None = None
        for axes in self._all():
            roots = tuple(self._root(a) for a in axes if a is not None)
            if set(roots) == needed and (spanning is None or self._prefers(axes)):
                spanning = roots
        if spanning is None:
            return Misfit("no single tensor spans all the axes")
        return spanning

    def _prefers(self, axes: tuple[int | None, ...]) -> bool:
        """Whether the order of these axes is that of a computed value, which is written in that order."""
        return axes in self.values.values()

    def _all(self) -> Iterable[tuple[int | None, ...]]:
        yield from self.operands.values()
        yield from self.values.values()

    def nest(self, order: tuple[int, ...], stored: frozenset[str]) -> Nest:
        reduced = frozenset().union(*self.reduced_together())
        axes = tuple(Axis(*self.sizes[a], a in reduced) for a in order)
        loads = {key: self._memory(view, self.operands[key], order) for key, view in self._external()}
        stores = {
            name: self._memory(whole(name, self.program.shape(name)), self.values[name], order)
            for name in self.group
            if name in stored
        }
        return Nest(axes, loads, stores)

    def _external(self) -> Iterable[tuple[tuple[str, int], View]]:
        for name, position in self.operands:
            operand = self.group[name].operands[position]
            assert isinstance(operand, View)
            if operand.source not in self.group:
                yield (name, position), operand

    def _memory(self, view: View, axes: tuple[int | None, ...], order: tuple[int, ...]) -> Memory:
        strides = {self._root(a): d.stride for a, d in zip(axes, view.dims, strict=True) if a is not None}
        along = tuple(strides.get(a, ZERO) for a in order)
        return Memory(view.source, along, view.offset, self.program.dtype(view.source), view.label)

    def _new(self, size: SymbolicSize, traced: int) -> int:
        self.parent.append(len(self.parent))
        self.sizes.append((size, traced))
        return len(self.parent) - 1

    def _root(self, axis: int) -> int:
        while self.parent[axis] != axis:
            axis = self.parent[axis]
        return axis

    def _join(self, a: int, b: int | None) -> int:
        if b is None:
            return a
        a, b = self._root(a), self._root(b)
        self.parent[b] = a
        return a


NORMALISING = frozenset({"softmax", "log_softmax", "layer_norm"})
"""Kinds that reduce, yet give a value of the input's shape."""


def _merged(nest: Nest) -> Nest:
    """Neighbouring axes merged wherever every tensor walks through both in one stride."""
    axes = list(nest.axes)
    keep = list(range(len(axes)))
    for i in range(len(axes) - 2, -1, -1):
        inner = keep[keep.index(i) + 1]
        memories = [*nest.loads.values(), *nest.stores.values()]
        if axes[i].reduced == axes[inner].reduced and all(
            m.strides[i] == axes[inner].size * m.strides[inner] for m in memories
        ):
            size, traced = axes[i].size * axes[inner].size, axes[i].traced * axes[inner].traced
            axes[inner] = Axis(size, traced, axes[i].reduced)
            keep.remove(i)
    return Nest(
        tuple(axes[i] for i in keep),
        {key: _picked(m, keep) for key, m in nest.loads.items()},
        {key: _picked(m, keep) for key, m in nest.stores.items()},
    )


def _picked(memory: Memory, keep: list[int]) -> Memory:
    strides = tuple(memory.strides[i] for i in keep)
    return Memory(memory.buffer, strides, memory.offset, memory.dtype, memory.label)
