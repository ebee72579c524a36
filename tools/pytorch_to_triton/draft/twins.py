"""Groups that compute the same of different tensors, as a deep net's layers do: they share their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from pytorch_to_triton.draft.groups import Group
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Buffer,
    Cluster,
    Const,
    Extent,
    Get,
    Index,
    Load,
    Map,
    Reduce,
    Scan,
    Value,
    children,
    walk,
)


@dataclass(frozen=True)
class Form:
    """What a group computes, whatever its tensors and axes are called: twins have equal ones."""

    pattern: ModuleType
    values: tuple[object, ...]
    """Each with the numbers of its operands, of its buffers and of its axes."""
    stores: tuple[object, ...]
    buffers: tuple[tuple[tuple[Size, ...], str], ...]
    axes: tuple[Size, ...]


def form(group: Group) -> Form:
    """The group without names."""
    cluster = group.cluster
    values, buffers, axes = cluster.values(), _buffers(cluster), _axes(cluster)
    value_of, buffer_of, axis_of = _numbers(values), _numbers(buffers), _numbers(axes)

    def own(v: Value) -> object:
        match v:
            case Load(buffer=buffer, other=other, where=where):
                return buffer_of[buffer], type(other), other, where is None
            case Index(axis=axis):
                return axis_of[axis]
            case Reduce(monoid=monoid, axes=bound):
                return monoid, tuple(axis_of[a] for a in bound)
            case Scan(monoid=monoid, axis=bound):
                return monoid, axis_of[bound]
            case Map(fn=fn):
                return fn
            case Get(part=part):
                return part
            case Const(value=number, kind=kind):
                return kind, repr(number)
            case Extent() | Argument():
                return v
        raise AssertionError(v)

    described = tuple((type(v), own(v), tuple(value_of[c] for c in children(v))) for v in values)
    stores = tuple(
        (buffer_of[s.buffer], s.where is None, tuple(value_of[r] for r in s.roots)) for s in cluster.stores
    )
    layout = tuple((b.shape, b.dtype) for b in buffers)
    return Form(group.pattern, described, stores, layout, tuple(a.size for a in axes))


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


def _numbers(items: tuple[object, ...] | list[Value]) -> dict[object, int]:
    return {item: number for number, item in enumerate(items)}
