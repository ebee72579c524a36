"""How a kernel walks its axes, and so where each of its tensors is read and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytorch_to_triton.convert.draft.axes import Axis, Memory
from pytorch_to_triton.graph.symbolic_size import SymbolicSize


@dataclass(frozen=True)
class Form:
    """How a kernel walks its axes."""

    setup: tuple[tuple[str, str], ...]
    """Names and their definitions before any pass; only those that are used get written."""
    index: tuple[str, ...]
    """The index along each axis, as text; () for axes that a decomposed index covers."""
    masks: tuple[str | None, ...]
    """The mask along each axis; None where the index is always inside."""
    loop: str | None = None
    """The loop over the reduced axis, e.g. `for start in range(0, N, BLOCK_N):`."""
    loop_setup: tuple[tuple[str, str], ...] = ()
    tile: str = ""
    """Shape of an accumulator, e.g. `[BLOCK_N]`."""
    collapsed: str = "[]"
    """Shape of one value a row."""
    collapse: str = "axis=0"
    """Arguments that collapse a tile along the reduced axis."""
    both: str = "mask"
    """Name for the conjunction of all masks."""
    narrow: frozenset[str] = frozenset()
    """Indices of 32 bits, which are widened before a stride multiplies them beyond 2**31."""
    flat: tuple[tuple[int, ...], str] = ((), "")
    """Axes that share one flattened index, and its name."""


@dataclass(frozen=True)
class Addresses:
    """Offsets and masks of memory accesses in one form."""

    form: Form
    axes: tuple[Axis, ...]
    names: Mapping[SymbolicSize, str]
    """Sizes that have a name in this kernel."""

    def offset(self, memory: Memory) -> str:
        """What is added to the tensor's pointer, e.g. ` + row * N + col`."""
        terms = [self._start(term) for term in memory.offset]
        terms += [
            index if stride.is_one else f"{self._wide(index)} * {self.named(stride)}"
            for index, stride in self._strided(memory)
        ]
        return "".join(f" + {t}" for t in terms)

    def _wide(self, index: str) -> str:
        """An index that may be multiplied: 64 bits, so that neither it nor the product overflows."""
        return f"{index}.to(tl.int64)" if index in self.form.narrow else index

    def _start(self, term: SymbolicSize) -> str:
        """Where a cut tensor starts; a product of sizes may need 64 bits."""
        first, _, rest = self.named(term).partition(" * ")
        return f"tl.cast({first}, tl.int64) * {rest}" if rest else first

    def _strided(self, memory: Memory) -> Iterable[tuple[str, SymbolicSize]]:
        """Each index with the stride it is multiplied by; flattened where the tensor allows it."""
        together, name = self.form.flat
        strides = memory.strides
        chained = all(strides[i] == self.axes[i + 1].size * strides[i + 1] for i in together[:-1])
        if len(together) > 1 and chained and not strides[together[-1]].is_zero:
            yield name, strides[together[-1]]
        else:
            together = ()
        for i, stride in enumerate(strides):
            if i not in together and not stride.is_zero:
                yield self.form.index[i], stride

    def named(self, size: SymbolicSize) -> str:
        """A size in this kernel's own names; behind an index of 64 bits, products need no parentheses."""
        return size_text(size, self.names)

    def mask(self, memory: Memory) -> str | None:
        """The mask of an access; None where every index is inside."""
        names = [m for m, s in zip(self.form.masks, memory.strides, strict=True) if m and not s.is_zero]
        distinct = list(dict.fromkeys(names))
        if not distinct:
            return None
        everything = {m for m in self.form.masks if m}
        return self.form.both if len(distinct) > 1 and set(distinct) == everything else " & ".join(distinct)

    def definitions(self, *, in_loop: bool) -> tuple[tuple[str, str], ...]:
        """The conjunction of all masks, where it is first known: in the loop, or before it."""
        masks = list(dict.fromkeys(m for m in self.form.masks if m))
        if len(masks) < 2 or in_loop != bool(self.form.loop):
            return ()
        return ((self.form.both, " & ".join(masks)),)


def size_text(size: SymbolicSize, names: Mapping[SymbolicSize, str]) -> str:
    """A size with the largest named products replaced by their names."""
    rest, found = size, []
    for named, name in sorted(names.items(), key=lambda item: -len(item[0].factors)):
        while named.factors and rest.coefficient % named.coefficient == 0 and _divides(named, rest):
            remaining = list(rest.factors)
            for factor in named.factors:
                remaining.remove(factor)
            rest = SymbolicSize(rest.coefficient // named.coefficient, tuple(remaining))
            found.append(name)
    own = [] if rest.is_one and found else [str(rest)]
    return " * ".join([*own, *found])


def _divides(part: SymbolicSize, whole: SymbolicSize) -> bool:
    return all(whole.factors.count(f) >= part.factors.count(f) for f in part.factors)
