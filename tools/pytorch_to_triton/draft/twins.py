"""Groups that compute the same of different tensors, as a deep net's layers do: they share their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType

from pytorch_to_triton.draft.groups import Group
from pytorch_to_triton.draft.ir.rewriting import rewritten
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Buffer,
    Cluster,
    Const,
    Index,
    Load,
    Reduce,
    Scan,
    Store,
    Value,
    walk,
)
from pytorch_to_triton.draft.schedule.axes import rename


@dataclass(frozen=True)
class Form:
    """What a group computes, whatever its tensors and axes are called: twins have equal ones."""

    pattern: ModuleType
    stores: tuple[Store, ...]
    """With numbers for names."""


def form(group: Group) -> Form:
    """The group without names."""
    buffers = {b: replace(b, name=str(n)) for n, b in enumerate(_buffers(group.cluster))}

    def nameless(v: Value) -> Value | None:
        match v:
            case Load(buffer=buffer):
                return replace(v, buffer=buffers[buffer])
            case Const(value=number, kind=kind):  # Of the numbers, -0.0 equals 0.0, and NaN nothing.
                return Argument(repr(number), "", kind)
        return None

    numbered = rename({a: str(n) for n, a in enumerate(_axes(group.cluster))})(group.cluster)
    stores = rewritten(numbered, nameless).stores
    return Form(group.pattern, tuple(replace(s, buffer=buffers[s.buffer]) for s in stores))


def counterparts(twin: Cluster, of: Cluster) -> Mapping[Buffer, Buffer]:
    """The first one's buffers -> the twin's."""
    return dict(zip(_buffers(of), _buffers(twin), strict=True))


def _buffers(cluster: Cluster) -> tuple[Buffer, ...]:
    return tuple(dict.fromkeys([*(v.buffer for v in cluster.loads()), *(s.buffer for s in cluster.stores)]))


def _axes(cluster: Cluster) -> tuple[Axis, ...]:
    found: list[Axis] = []
    for v in walk(*cluster.roots):
        match v:
            case Index(axis=axis) | Scan(axis=axis):
                found.append(axis)
            case Reduce(axes=axes):
                found += axes
    return tuple(dict.fromkeys(found))
