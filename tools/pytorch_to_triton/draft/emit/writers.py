"""Which part of the printer writes which kind of value."""

from __future__ import annotations

from collections.abc import Mapping

from pytorch_to_triton.draft.emit import memory, reductions, scans
from pytorch_to_triton.draft.emit.names import Name
from pytorch_to_triton.draft.emit.printer import Printer, Writer
from pytorch_to_triton.draft.ir.values import Get, Index, Load, Reduce, Scan, Value

Layout = tuple[str, ...]


def _index(p: Printer, v: Index, layout: Layout) -> Name:
    return memory.opened(p, v.axis)


def _load(p: Printer, v: Load, layout: Layout) -> Name:
    text = memory.load(p, v, layout)
    return p.defined(v, text, layout, p.depth(v))


def _reduce(p: Printer, v: Reduce, layout: Layout) -> Name:
    text = reductions.at_once(p, v, layout)
    return p.defined(v, text, layout, p.depth(v))


def _field(p: Printer, v: Get, layout: Layout) -> Name:
    if isinstance(v.of, Scan):
        return scans.scanned(p, v, layout)
    reductions.compound_at_once(p, v.of)
    return p.env[v]


WRITERS: Mapping[type[Value], Writer] = {
    Index: _index,
    Load: _load,
    Reduce: _reduce,
    Get: _field,
    Scan: scans.scanned,
}
