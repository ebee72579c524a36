"""What every cluster has to be, checked after every pass."""

from __future__ import annotations

from pytorch_to_triton.draft.ir.functions import FUNCTIONS
from pytorch_to_triton.draft.ir.sizes import Size, equal
from pytorch_to_triton.draft.ir.values import Cluster, Load, Map, Store, axes_of, bound_axes


class Malformed(AssertionError):
    """A cluster that a pass left broken: a defect of the drafter, never of its user."""


def check(cluster: Cluster) -> None:
    """Ranks fit, every axis is bound by a Store, Reduce or Scan, one size for a name, functions are known."""
    found: dict[str, Size] = {}
    for s in cluster.stores:
        _check_store(s)
    for v in cluster.values():
        match v:
            case Load(buffer=buffer, index=index) if len(index) != len(buffer.shape):
                raise Malformed(f"{buffer.name} has {len(buffer.shape)} dimensions and {len(index)} indices")
            case Map(fn=fn) if fn not in FUNCTIONS:
                raise Malformed(f"{fn} is no row of FUNCTIONS")
        for a in (*axes_of(v), *bound_axes(v)):
            if not equal(found.setdefault(a.name, a.size), a.size):
                raise Malformed(f"{a.name} has the sizes {found[a.name]} and {a.size}")


def _check_store(s: Store) -> None:
    if len(s.index) != len(s.buffer.shape):
        raise Malformed(f"{s.buffer.name} has {len(s.buffer.shape)} dimensions and {len(s.index)} indices")
    written = {a for i in s.index for a in axes_of(i)}
    stray = axes_of(s.value) - written
    if stray and s.combine is None:
        raise Malformed(
            f"{s.buffer.name} varies along {', '.join(a.name for a in stray)}, which no index has"
        )
