"""How a cluster is computed: a schedule is data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, plus, quotient
from pytorch_to_triton.draft.ir.rewriting import decided, rewrite
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Const, Index, Value, op
from pytorch_to_triton.inputs.expression import names_in, value_of

Config = Mapping[str, int]
"""Block sizes, `num_warps` and `num_stages` of a launch."""
Rewrite = Callable[[Cluster], Cluster]


@dataclass(frozen=True)
class Mismatch:
    """Why a pattern does not draft a cluster: the end of a sentence."""

    reason: str


LEAST_SHARE = 4
"""Elements that a program has at least where its results are rows: bytes to write and read as well."""


@dataclass(frozen=True)
class Share:
    """The elements of an axis that one program walks: `length` neighbours."""

    part: Axis
    """The axis of the programs."""
    length: Size

    @classmethod
    def of(cls, axis: Axis, programs: Size, least: int = LEAST_SHARE) -> Share:
        """The axis in shares of at least so many elements, for one program or more and at most so many."""
        length = sizes.larger(sizes.ceiling(axis.size, sizes.larger(programs, 1)), least)
        return cls(Axis("part", sizes.ceiling(axis.size, length)), length)

    def holds(self, axis: Axis) -> Value:
        """Whether the element at hand is in the share."""
        return op("eq", quotient(Index(axis), self.length), Index(self.part))

    def first(self, axis: Axis) -> Value:
        """Where the share begins."""
        return op("mul", Index(self.part), extent(self.length), name=f"first_{axis.name}")

    def end(self, axis: Axis) -> Value:
        """Where it ends; the last ones are shorter, or empty."""
        behind = plus(self.first(axis), extent(self.length))
        return op("smaller", behind, extent(axis.size), name=f"end_{axis.name}")


@dataclass(frozen=True)
class Walk:
    """How one axis is walked. Without a block: one element at a time."""

    how: Literal["grid", "loop", "whole", "unroll"]
    block: str | None = None
    share: Share | None = None
    """What a program's loop walks, where that is not all of the axis."""


@dataclass(frozen=True)
class Schedule:
    """One kernel's walk over its cluster."""

    walks: Mapping[str, Walk]
    """Axis -> walk, in the order of the grid and of nested loops. Axes are those after the rewrites."""
    order: tuple[str, ...]
    """Axes that lie in registers, in the order of a tile's dimensions."""
    configs: tuple[Config, ...]
    """What is worth measuring; the first is the one that needs no measurement."""
    rewrites: tuple[Rewrite, ...] = ()
    """Identities that give the cluster this form."""
    sized: Mapping[str, str] = field(default_factory=dict)
    """Block -> Python over the sizes and other blocks that `run` computes it by."""
    untuned: Mapping[str, str] = field(default_factory=dict)
    """Block or `num_warps` -> Python over the sizes and other blocks: better than the first configuration
    where nothing was measured."""
    templates: tuple[Mapping[str, str], ...] = ()
    """Configurations as Python over the blocks: in place of `configs`, with numbers of the sizes at hand."""
    singly: tuple[Config, ...] = ()
    """In place of `configs` at sizes at hand at which neighbours are loaded one by one."""
    aligned: str = ""
    """An axis of neighbours whose size is known to be a multiple of some power of two below 16. Triton looks
    itself for multiples of 16."""
    covered: Mapping[str, int] = field(default_factory=dict)
    """Block of `sized` -> its number at the largest sizes at hand, which the configurations suit."""
    streams: bool = False
    """What it reads along all of its axes is read once, and little is stored: the cache is for others."""
    grouped: bool = False
    """Programs in groups of GROUP_M blocks of the first grid axis: a group shares the second's tiles."""

    def applied(self, cluster: Cluster) -> Cluster:
        """The cluster in the form that is walked."""
        for step in self.rewrites:
            cluster = step(cluster)
        return cluster

    def walked(self, cluster: Cluster) -> Cluster:
        """The applied cluster as one program sees it: what it walks is in its share."""
        cluster = self.applied(cluster)
        axes = {a.name: a for r in cluster.reduces() for a in r.axes}
        shares = {axes[n]: w.share for n, w in self.walks.items() if w.share and n in axes}
        known = {share.holds(axis) for axis, share in shares.items()}
        return (
            cluster.map(lambda root: rewrite(root, lambda v: Const(True) if v in known else decided(v)))
            if known
            else cluster
        )

    @cached_property
    def launched(self) -> tuple[Mapping[str, str], ...]:
        """The `values` of every launch that may be: measured, or where nothing was."""
        return tuple(self.values(c) for c in (*self.configs, {**self.configs[0], **self.untuned}))

    def values(self, config: Mapping[str, object]) -> dict[str, str]:
        """Of a launch: block or `num_warps` -> its number, or Python over sizes and blocks in lower case."""
        found: dict[str, str] = {}
        for name, text in {**self.sized, **{k: str(v) for k, v in config.items()}}.items():
            for known, number in found.items():
                text = text.replace(known.lower(), number) if number.isdigit() else text
            found[name] = text if names_in(text) else str(value_of(text, {}))
        return found


@dataclass(frozen=True)
class Alternative:
    """One way to compute a cluster: one kernel, or several in a row."""

    name: str
    kernels: tuple[tuple[Cluster, Schedule], ...]
    condition: str = ""
    """Python over the sizes: where it is taken; empty: everywhere."""
    limit: str | None = None
    """What is left of the condition, without what is about speed alone, where all sizes at hand meet it: no
    other is written then. None: others are written all the same."""
