"""Steps that one kernel computes, the order in which kernels and calls of PyTorch run, and which groups are
twins: they compute the same of different tensors, as a deep net's layers do, and share their kernels."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import cast

from pytorch_to_triton.draft import patterns
from pytorch_to_triton.draft.ir.rewriting import beside, rewritten
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
    axes_of,
    walk,
)
from pytorch_to_triton.draft.program import Call, Step
from pytorch_to_triton.draft.schedule.axes import rename
from pytorch_to_triton.draft.schedule.pattern import Pattern, Traits
from pytorch_to_triton.draft.schedule.schedule import Mismatch

LARGEST = 160
"""Values that one kernel may compute: beyond that registers run out, and readers' patience."""


@dataclass(frozen=True)
class Group:
    """Steps that one pattern computes."""

    cluster: Cluster
    pattern: Pattern
    steps: tuple[Step, ...]
    """Those that it stores."""
    operators: frozenset[str] = frozenset()
    """Of all steps that it computes."""
    apart: tuple[Group, ...] = ()
    """Those that it is made of, each computed by programs of its own, in one launch."""

    @property
    def traits(self) -> Traits:
        """What fusion asks of its pattern."""
        return self.pattern.TRAITS


def group_of(cluster: Cluster, steps: tuple[Step, ...]) -> Group | Mismatch:
    """The steps that the cluster stores, with the first pattern that takes it."""
    reasons = []
    for pattern in PATTERNS:
        mismatch = pattern.match(cluster)
        if mismatch is None:
            return Group(cluster, pattern, steps)
        reasons.append(f"{pattern.__name__.rpartition('.')[2]}: {mismatch.reason}")
    return Mismatch("; ".join(reasons))


def is_large(group: Group) -> bool:
    """Whether its kernel would compute too much."""
    return len(group.cluster.values()) > LARGEST


def repeats(group: Group) -> bool:
    """Whether the kernel would reduce the same again for each of several outputs.

    Where its pattern leaves that to the axes: if a reduction does not vary along an axis of the outputs that
    none runs over (what one runs over is in one program), and stands beside none that does vary.
    """
    if group.traits.repeats is not None:
        return group.traits.repeats
    reduces = group.cluster.reduces()
    apart = set(group.cluster.free()) - {a for r in reduces for a in r.axes}
    return any(apart - axes_of(r) and not any(beside(r, q) for q in reduces) for r in reduces)


def in_order(groups: Sequence[Group], calls: Sequence[Call]) -> tuple[Group | Call, ...] | None:
    """Each after all that it reads; None where some wait for each other."""
    waiting: list[Group | Call] = [*groups, *calls]
    made: set[str] = set()
    everything = {n for g in waiting for n in made_by(g)}
    ordered: list[Group | Call] = []
    while waiting:
        ready = (g for g in waiting if not (read_by(g) & everything) - made - set(made_by(g)))
        if (first := next(ready, None)) is None:
            return None
        waiting.remove(first)
        ordered.append(first)
        made |= set(made_by(first))
    return tuple(ordered)


def made_by(item: Group | Call) -> tuple[str, ...]:
    """Names of what it stores or returns."""
    return item.names if isinstance(item, Call) else tuple(s.name for s in item.steps)


def read_by(item: Group | Call) -> set[str]:
    """Names of what it reads."""
    return set(item.reads) if isinstance(item, Call) else {v.buffer.name for v in item.cluster.loads()}


Form = tuple[Pattern, tuple[Store, ...], tuple[str, ...]]
"""A pattern, what it stores, and the dtypes, whatever tensors and axes are called: twins have equal ones."""


def form(group: Group, dtypes: Mapping[str, str]) -> Form:
    """The group without names; `dtypes` are those in memory, by tensor."""
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
    stored = tuple(replace(s, buffer=buffers[s.buffer]) for s in stores)
    return group.pattern, stored, tuple(dtypes.get(b.name, "") for b in buffers)


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


NEEDED = {
    "__doc__": "a docstring that says which computation it drafts",
    "match": "match(cluster) -> Mismatch | None",
    "alternatives": "alternatives(cluster) -> tuple[Alternative, ...]",
    "EXAMPLES": "EXAMPLES, functions as text that it must draft",
    "TRAITS": "TRAITS, what fusion asks of it: Traits() is enough for a start",
}


class MalformedPattern(Exception):
    """A file in patterns/ that is no pattern; the message says what it lacks."""


def all_patterns() -> tuple[Pattern, ...]:
    """Every pattern; a cluster goes to the first that matches it. Raises MalformedPattern."""
    names = sorted(module.name for module in pkgutil.iter_modules(patterns.__path__))
    every = [checked(importlib.import_module(f"{patterns.__name__}.{name}")) for name in names]
    return tuple(sorted(every, key=lambda p: p.TRAITS.asked_last))


def checked(pattern: ModuleType) -> Pattern:
    """The module, if it has all that a pattern needs."""
    missing = [what for name, what in NEEDED.items() if not getattr(pattern, name, None)]
    if missing:
        raise MalformedPattern(f"{pattern.__name__} is no drafting pattern: it lacks {'; '.join(missing)}.")
    return cast(Pattern, pattern)


PATTERNS = all_patterns()
