"""A cluster and its schedule as a kernel's source, with all that its launch needs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytorch_to_triton.draft.emit import blocks, memory, reductions
from pytorch_to_triton.draft.emit.memory import padded
from pytorch_to_triton.draft.emit.pairs import PAIR
from pytorch_to_triton.draft.emit.printer import Printer
from pytorch_to_triton.draft.emit.scans import WRITERS
from pytorch_to_triton.draft.emit.tidy import WIDTH, tidied
from pytorch_to_triton.draft.fresh_names import in_ascii
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.functions import Helper
from pytorch_to_triton.draft.ir.monoids import identities
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Buffer,
    Cluster,
    Get,
    Index,
    Map,
    Reduce,
    Value,
    axes_of,
    kind_of,
    walk,
)
from pytorch_to_triton.draft.schedule.schedule import Schedule

KNOWN = frozenset({"tl", "triton", "libdevice", "float", "range", "max", "min"})


Grid = tuple[tuple[str, str | None], ...]
"""Size and block along each axis."""


@dataclass(frozen=True)
class PrintedKernel:
    """A kernel's text and its interface."""

    name: str
    parameters: tuple[str, ...]
    """As source, with annotations: pointers, sizes, numbers, blocks."""
    body: tuple[str, ...]
    """What comes behind its docstring."""
    buffers: tuple[Buffer, ...]
    """What it reads and writes, in the order of its pointers."""
    sizes: tuple[str, ...]
    """Names of sizes that it takes."""
    arguments: tuple[Argument, ...]
    """Numbers that it takes."""
    blocks: tuple[str, ...]
    """Its block sizes."""
    grids: tuple[Grid, ...]
    """One, or those of several tensors that one launch takes one after the other."""
    size_sources: dict[str, str]
    """Sizes that `run` computes: name -> Python over the dims."""
    schedule: Schedule
    stores: tuple[Buffer, ...]
    helpers: dict[str, Helper]
    multiplies: bool
    """It has a tl.dot."""
    loops: int
    """How many it has behind each other."""
    compares: bool
    """Fused multiply-adds would round one side of a difference and not the other."""
    aligned: str
    """The size that is a multiple of ALIGNMENT, where there is one."""

    def on(self, others: Mapping[Buffer, Buffer]) -> PrintedKernel:
        """The same kernel's interface to other tensors."""
        names = {b.name: other.name for b, other in others.items()}

        def moved(b: Buffer) -> Buffer:
            return others.get(b) or replace(b, like=names.get(b.like, b.like))

        buffers, stores = (tuple(map(moved, found)) for found in (self.buffers, self.stores))
        return replace(self, buffers=buffers, stores=stores)


def printed(cluster: Cluster, schedule: Schedule, dtypes: Mapping[str, str]) -> PrintedKernel:
    """Write the kernel; `dtypes` are those in memory, by tensor."""
    p = Printer(cluster, schedule, WRITERS, dtypes)
    p.scopes[0].lines += memory.grid_lines(p)
    for n in p.walks:  # The grid's indices first, as a reader looks for them there.
        if p.walks[n].how in ("grid", "whole") and n in p.axes and n != PAIR:
            p.named(Index(p.axes[n]))
    for r in p.cluster.reduces():
        if (
            not blocks.looped(p, r.axes) and r.monoid.is_plain
        ):  # Its loads may be needed for something else first.
            padded(p, r.args[0], reductions.tiled(p, r.axes), identities(r.monoid, kind_of(r))[0])
    blocks.block(p, p.cluster.stores)
    unmasked = [f"tl.static_assert({size} % {block} == 0)" for block, size in p.filled.items()]
    p.scopes[0].lines = [*unmasked, *_aligned(p), *p.scopes[0].lines]
    name = f"{in_ascii(cluster.name)}_kernel"
    body = "\n".join(f"    {line}" for line in p.scopes[0].lines)
    # Without a docstring, a comment at the beginning would be taken for one.
    source = tidied(f'def {name}():\n    """"""\n{body}')
    return _assembled(p, name, source)


def _aligned(p: Printer) -> list[str]:
    """What tells the compiler that a row begins, and ends, where a wide load may."""
    if not (name := aligned_size(p)):
        return []
    comment = "'# The compiler sees a multiple of ALIGNMENT, so that a load may take several elements.'"
    return [comment, f"{name} = {name} // ALIGNMENT * ALIGNMENT"]


def aligned_size(p: Printer) -> str:
    """The argument that is a multiple of ALIGNMENT; empty where none is."""
    axis = p.axes.get(p.schedule.aligned)
    text = p.size(axis.size) if axis else ""
    return text if text.isidentifier() else ""


def _assembled(p: Printer, name: str, source: str) -> PrintedKernel:
    free = _free_names(source) | ({aligned_size(p)} - {""})
    loaded = [v.buffer for v in p.cluster.loads()]
    buffers = tuple(dict.fromkeys([*loaded, *(s.buffer for s in p.cluster.stores)]))
    buffers = tuple(b for b in buffers if f"{b.name}_ptr" in free)
    given = {v.name: v for v in p.cluster.values() if isinstance(v, Argument)}
    arguments = tuple(a for n, a in given.items() if n in free)
    named = {n: sizes.text(s) for s, n in p.size_names.items()}
    walked = [w.block for w in p.walks.values() if w.block]
    grouped = ["GROUP_M"] if p.schedule.grouped else []
    blocks_ = [*walked, "STAGES", *grouped, "PRECISION", "ALIGNMENT", "INDEX"]
    constexprs = tuple(b for b in dict.fromkeys(blocks_) if b in free)
    rest = free - {f"{b.name}_ptr" for b in buffers} - set(given) - set(constexprs) - set(p.helpers)
    order = [n for b in buffers for s in b.shape for n in sorted(sizes.names(s))]
    sized = tuple(sorted(rest, key=lambda n: (order.index(n) if n in order else len(order), n)))
    exact = p.compute == "tl.float64"  # An argument would come as float32.
    unrolled = {
        n
        for a, w in p.walks.items()
        if w.how == "unroll" and a in p.axes
        for n in _free_names(p.size(p.axes[a].size))
    }
    parameters = (
        *(f"{b.name}_ptr" for b in buffers),
        *(f"{n}: tl.constexpr" if n in unrolled else n for n in sized),
        *(f"{a.name}{': tl.constexpr' if exact else ''}" for a in arguments),
        *(f"{b}: tl.constexpr" for b in constexprs),
    )
    grid = tuple((p.size(p.axes[n].size), p.walks[n].block) for n in memory.on_grid(p))
    needed = {n: text for n, text in named.items() if n in free or any(n in _free_names(g) for g, _ in grid)}
    return PrintedKernel(
        name=name,
        parameters=parameters,
        body=tuple(source.splitlines()[2:]),
        buffers=buffers,
        sizes=sized,
        arguments=arguments,
        blocks=constexprs,
        grids=(grid,),
        size_sources=needed,
        schedule=p.schedule,
        stores=tuple(s.buffer for s in p.cluster.stores),
        helpers=dict(p.helpers),
        multiplies=p.multiplies,
        loops=p.loops,
        compares=_compares(p),
        aligned=aligned_size(p),
    )


def _compares(p: Printer) -> bool:
    """Whether a computed value is subtracted from another.

    A fused multiply-add would round one side of the difference and not the other: what should cancel would
    not, and a value below its own maximum would not be at most 0.
    """

    def computed(v: Value) -> bool:
        return isinstance(v, Map | Reduce | Get) and bool(axes_of(v)) and kind_of(v) == "float"

    found = (v for v in p.cluster.values() if isinstance(v, Map) and v.fn == "sub" and kind_of(v) == "float")
    return any(
        all(map(computed, v.args))
        and any(isinstance(x, Map) and x.fn in ("mul", "div", "div_literal") for x in walk(*v.args))
        for v in found
    )


def signature(name: str, parameters: Sequence[str]) -> tuple[str, ...]:
    """The head of a function's source."""
    line = f"def {name}({', '.join(parameters)}):"
    return (line,) if len(line) <= WIDTH else (f"def {name}(", *(f"    {p}," for p in parameters), "):")


def _free_names(source: str) -> set[str]:
    names = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    written = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names} - written - KNOWN
