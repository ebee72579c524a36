"""A cluster by its definition, in plain NumPy: what every lowering, rewrite and schedule is held to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.functions import FUNCTIONS
from pytorch_to_triton.draft.ir.monoids import identities
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Cluster,
    Const,
    Extent,
    Get,
    Index,
    Load,
    Map,
    Monoid,
    Reduce,
    Scan,
    Value,
    Var,
    axes_of,
    bound_axes,
    kind_of,
)

Array = np.ndarray[Any, Any]
KINDS = {"float": np.float64, "int": np.int64, "bool": np.bool_}


def evaluate(
    cluster: Cluster,
    arrays: dict[str, Array],
    dims: Mapping[str, int],
    arguments: Mapping[str, float] | None = None,
) -> None:
    """Compute the cluster's stores into `arrays`, by buffer; its loads are read from there.

    Every axis is a dimension of its own, so sizes must be small.
    """
    with np.errstate(all="ignore"):
        _Evaluation(cluster, arrays, dims, arguments or {}).run()


class _Evaluation:
    def __init__(
        self,
        cluster: Cluster,
        arrays: dict[str, Array],
        dims: Mapping[str, int],
        arguments: Mapping[str, float],
    ) -> None:
        self.cluster, self.arrays, self.dims, self.arguments = cluster, arrays, dims, arguments
        axes = [a for v in cluster.values() for a in (*axes_of(v), *bound_axes(v))]
        self.order = list(dict.fromkeys(axes))
        self.sized = {a: sizes.value(a.size, dims) for a in self.order}
        self.done: dict[Value, Any] = {}

    def run(self) -> None:
        written: set[str] = set()
        for s in self.cluster.stores:
            shape = tuple(sizes.value(n, self.dims) for n in s.buffer.shape)
            if s.buffer.name not in written:
                self.arrays[s.buffer.name] = np.zeros(shape, KINDS[s.buffer.kind])
            written.add(s.buffer.name)
            values = [self.of(v) for v in (*s.index, s.value)]
            full = np.ones([self.sized[a] if a in set(self._store_axes(s)) else 1 for a in self.order], bool)
            where = full if s.where is None else np.broadcast_to(self.of(s.where), full.shape)
            *at, value = (np.broadcast_to(x, full.shape)[where] for x in values)
            target = self.arrays[s.buffer.name]
            if at:
                target[tuple(at)] = value
            else:
                target[...] = value.reshape(())

    @staticmethod
    def _store_axes(s: Any) -> list[Axis]:
        return [a for v in s.roots for a in axes_of(v)]

    def of(self, v: Value) -> Any:
        if v not in self.done:
            self.done[v] = self.compute(v)
        return self.done[v]

    def compute(self, v: Value) -> Any:
        match v:
            case Const(value=value):
                return np.asarray(value)
            case Extent(size=size):
                return np.asarray(sizes.value(size, self.dims))
            case Argument(name=name, source=source):
                if name in self.arguments:
                    return np.asarray(self.arguments[name])
                return np.asarray(eval(source, {"math": math, "float": float}, dict(self.dims)))
            case Index(axis=a):
                shape = tuple(self.sized[a] if b == a else 1 for b in self.order)
                return np.arange(self.sized[a]).reshape(shape)
            case Load():
                return self.load(v)
            case Map(fn=fn, args=args):
                found = FUNCTIONS[fn].numpy(*(self.of(a) for a in args))
                return np.asarray(found, KINDS[kind_of(v)])
            case Reduce(monoid=m, axes=axes):
                totals = self.fold(m, v.args, axes)
                return totals[0] if m.is_plain else totals
            case Scan(monoid=m, axis=axis):
                steps = self.steps(m, v.args, axis)
                found = [self.at(x, axis, self.of(v.at)) for x in steps]
                return found[0] if m.is_plain else found
            case Get(of=r, part=i):
                return self.of(r)[i]
        raise AssertionError(v)

    def load(self, v: Load) -> Any:
        array = self.arrays[v.buffer.name]
        at = [self.of(i) for i in v.index]
        if v.where is None:
            return array[tuple(at)]
        if array.size == 0:
            return np.asarray(v.other, KINDS[v.buffer.kind])
        at = [np.clip(i, 0, n - 1) for i, n in zip(at, array.shape, strict=True)]
        return np.asarray(np.where(self.of(v.where), array[tuple(at)], v.other), KINDS[v.buffer.kind])

    def rows(self, args: Sequence[Value], axes: Sequence[Axis]) -> list[Array]:
        """The arguments with the axes first, flattened."""
        at = [self.order.index(a) for a in axes]
        values = np.broadcast_arrays(*(self.of(a) for a in args), np.ones((1,) * len(self.order), bool))[:-1]
        full = [self.sized[a] if a in axes else n for a, n in zip(self.order, values[0].shape, strict=True)]
        moved = [np.moveaxis(np.broadcast_to(x, full), at, range(len(at))) for x in values]
        return [x.reshape(-1, *x.shape[len(at) :]) for x in moved]

    def folds(self, m: Monoid, args: Sequence[Value], axes: Sequence[Axis]) -> list[list[Array]]:
        """What is carried after each element; first: after none."""
        rows = self.rows(args, axes)
        kind = kind_of(args[0])
        carried = [np.full(rows[0].shape[1:], i) for i in identities(m, kind)]
        history = [carried]
        for row in zip(*rows, strict=True):
            lifted = [_of(x, {f"x{i}": r for i, r in enumerate(row)}) for x in m.lift(*_vars("x", args))]
            names = {f"a{i}": x for i, x in enumerate(carried)} | {f"b{i}": x for i, x in enumerate(lifted)}
            both = (tuple(Var(f"{s}{i}", kind=kind) for i in range(len(carried))) for s in "ab")
            carried = [_of(x, names) for x in m.combine(*both)]
            history.append(carried)
        return history

    def fold(self, m: Monoid, args: Sequence[Value], axes: Sequence[Axis]) -> list[Array]:
        at = sorted(self.order.index(a) for a in axes)
        return [np.expand_dims(t, at) for t in self.folds(m, args, axes)[-1]]

    def steps(self, m: Monoid, args: Sequence[Value], axis: Axis) -> list[Array]:
        history = self.folds(m, args, (axis,))[1:]
        if not history:
            return [np.zeros((0,))]
        place = self.order.index(axis)
        return [np.moveaxis(np.stack([h[i] for h in history]), 0, place) for i in range(len(history[0]))]

    def at(self, x: Array, axis: Axis, at: Array) -> Array:
        """The running totals along `axis`, read at other positions."""
        place = self.order.index(axis)
        shape = np.broadcast_shapes(tuple(1 if i == place else n for i, n in enumerate(x.shape)), at.shape)
        full = tuple(x.shape[i] if i == place else n for i, n in enumerate(shape))
        moved = np.moveaxis(np.broadcast_to(x, full), place, 0)
        index = np.broadcast_to(at, shape)
        # The bound axis is free only where `at` itself varies along an axis of that name.
        grid = np.ogrid[tuple(slice(n) for n in moved.shape[1:])]
        if index.shape[place] == 1:
            taken = moved[(np.moveaxis(index, place, 0)[0], *grid)]
            return np.expand_dims(taken, place)
        columns = [moved[(np.moveaxis(index, place, 0)[j], *grid)] for j in range(index.shape[place])]
        return np.stack(columns, place)


def _vars(prefix: str, args: Sequence[Value]) -> tuple[Var, ...]:
    return tuple(Var(f"{prefix}{i}", kind=kind_of(a)) for i, a in enumerate(args))


def _of(v: Value, names: Mapping[str, Any]) -> Any:
    match v:
        case Var(name=name):
            return names[name]
        case Const(value=value):
            return np.asarray(value)
        case Map(fn=fn, args=args):
            return FUNCTIONS[fn].numpy(*(_of(a, names) for a in args))
    raise AssertionError(f"{v} in a monoid's combine")
