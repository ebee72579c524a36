"""One set of axes for a whole program: where one reader looks at D as G and K, all over D is over G and K.

A view splits an axis only in what is seen through it, so what stands before it and what stands behind it
would never share a kernel. Each load says how its reader cuts a dimension that its writer cut in its own way:
both get the axes that are common to them. Sizes that do not go into each other stay arithmetic on indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import size_of
from pytorch_to_triton.draft.ir.rewriting import rebound
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Const,
    Index,
    Load,
    Map,
    Scan,
    Value,
    bound_axes,
    walk,
)
from pytorch_to_triton.draft.lower.tensor import Dim, Names, Tensor, digits, position
from pytorch_to_triton.draft.program import Program, Step


def with_refined_axes(program: Program) -> Program:
    """The same program over axes that all of its views share."""
    refinement = _Refinement(program)
    axes = refinement.axes()
    if not axes:
        return program

    def refined(tensor: Tensor) -> Tensor:
        return _over(axes, tensor)

    return replace(
        program,
        items=tuple(
            replace(i, tensor=refined(i.tensor)) if isinstance(i, Step) else i for i in program.items
        ),
        results=tuple(replace(r, tensor=refined(r.tensor)) for r in program.results),
        tensors={name: refined(t) for name, t in program.tensors.items()},
    )


def _over(axes: Mapping[Axis, Dim], tensor: Tensor) -> Tensor:
    """The tensor over other axes."""
    mine = {a: axes[a] for a in _axes(tensor) if a in axes}
    dims = tuple(tuple(new for a in d for new in axes.get(a, (a,))) for d in tensor.dims)
    to = {a: position(d) for a, d in mine.items()}
    return replace(tensor, dims=dims, value=rebound(tensor.value, to, mine)) if mine else tensor


def _axes(tensor: Tensor) -> dict[Axis, None]:
    """All axes of a tensor, those that its reductions bind included."""
    found = dict.fromkeys(tensor.axes)
    for v in walk(tensor.value):
        found |= dict.fromkeys((v.axis,) if isinstance(v, Index) else bound_axes(v))
    return found


class _Refinement:
    """What becomes of each axis: several, of which it is made, or one that is the same."""

    def __init__(self, program: Program) -> None:
        self.names: Names = program.axes
        self.parts: dict[Axis, Dim] = {}
        self.holders: dict[Axis, set[int]] = {}
        """The tensors that have an axis: no two of a tensor's axes become one."""
        self.whole: set[Axis] = set()
        """What is scanned stays one axis."""
        self.shared: set[Axis] = set()
        steps = [i.tensor for i in program.items if isinstance(i, Step)]
        views = [*program.tensors.values(), *(r.tensor for r in program.results)]
        for number, tensor in enumerate((*steps, *views)):
            for a in _axes(tensor):
                self.holders.setdefault(a, set()).add(number)
        for tensor in steps:
            self.whole |= {v.axis for v in walk(tensor.value) if isinstance(v, Scan)}
        dims = {name: list(step.tensor.dims) for name, step in program.steps.items()}
        for tensor in steps:
            self._read(dims, tensor)

    def _read(self, dims: dict[str, list[Dim]], reader: Tensor) -> None:
        """Agree on the dimensions of all that is read; who reads an input first says how it is cut."""
        for load in (v for v in walk(reader.value) if isinstance(v, Load)):
            cut = [self._cut(i, n) for i, n in zip(load.index, load.buffer.shape, strict=True)]
            known = dims.setdefault(load.buffer.name, [d or () for d in cut])
            for at, (mine, seen) in enumerate(zip(known, cut, strict=True)):
                if seen and mine:
                    self._agree(mine, seen)
                known[at] = mine or seen or ()

    def _cut(self, index: Value, size: Size) -> Dim | None:
        """The axes of an index; every n-th element is one of n in turn, which are an axis too."""
        match index:
            case Map(fn="add", args=(Map(fn="mul", args=(high, n)), Const())) | Map(fn="mul", args=(high, n)):
                turns = size_of(n)
                outer = None if turns is None else digits(high, sizes.FloorDiv(size, turns))
                if turns is None or outer is None or not sizes.divides(turns, size):
                    return None
                turn = self.names.axis("turn", turns)
                self.holders[turn] = set()
                return (*outer, turn)
        return digits(index, size)

    def _agree(self, mine: Dim, other: Dim) -> None:
        """Cut both in the same way, as far as sizes go into each other."""
        left, right = self._made_of(mine), self._made_of(other)
        while left and right:
            a, b = left.pop(0), right.pop(0)
            if a == b:
                continue
            if sizes.equal(a.size, b.size):
                agreed = self._same(a, b)
            elif sizes.divides(b.size, a.size):
                agreed = self._split(a, b, left)
            else:
                agreed = sizes.divides(a.size, b.size) and self._split(b, a, right)
            if not agreed:
                return

    def _same(self, a: Axis, b: Axis) -> bool:
        """Make them one axis, unless one tensor has both."""
        if self.holders[a] & self.holders[b]:
            return False
        if a in self.whole or (a in self.shared and b not in self.whole):
            a, b = b, a
        self.holders[b] |= self.holders[a]
        self.parts[a] = (b,)
        return a not in self.whole

    def _split(self, wide: Axis, outer: Axis, rest: list[Axis]) -> bool:
        """Make one axis of this outer one and a new one inside of it, which goes before the `rest`."""
        if wide in self.whole or self.holders[wide] & self.holders[outer]:
            return False
        word = wide.name.partition("_")[0]
        inner = self.names.axis(f"{word}_inner", sizes.FloorDiv(wide.size, outer.size))
        if outer not in self.whole:
            named = self.names.axis(f"{word}_outer", outer.size)
            self.holders[named] = self.holders[outer]
            self.parts[outer] = (named,)
            outer = named
        self.holders[inner] = set(self.holders[wide])
        self.holders[outer] |= self.holders[wide]
        self.parts[wide] = (outer, inner)
        self.shared |= {outer, inner}
        rest.insert(0, inner)
        return True

    def _made_of(self, dim: Iterable[Axis]) -> list[Axis]:
        return [p for a in dim for p in (self._made_of(self.parts[a]) if a in self.parts else [a])]

    def axes(self) -> dict[Axis, Dim]:
        """What to replace: axes that are split, and those that are one of their parts."""
        parts = {a: tuple(self._made_of((a,))) for a in self.parts}
        shared = set(self._made_of(self.shared))
        return {a: dim for a, dim in parts.items() if len(dim) > 1 or dim[0] in shared}
