"""The items of a sweep: what is drafted from, or a candidate and what it is compared with."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.schema.target import Target


@dataclass(frozen=True)
class SweepItem:
    """One item; at least one of `problem` and `candidate` is there."""

    key: str
    """Its own in the sweep: `norms/rms_norm`, `losses:focal`."""
    problem: Target | None = None
    """What PyTorch computes; None: the candidate's own file says it."""
    candidate: Target | None = None
    """A kernel; None: it is drafted from the problem."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the files."""
    backward: bool = False
    """Whether gradients are drafted, compared and timed too."""

    @property
    def name(self) -> str:
        return self.key

    @property
    def digest(self) -> str:
        """Of the files' texts and of what is given beside them, wherever they lie."""
        sides = [(t and (text_of(t.path), t.name, t.init)) for t in (self.problem, self.candidate)]
        return digest_of(sides, asdict(self.options), self.backward)


@dataclass(frozen=True)
class Candidate:
    """The kernel that an item's phases judge: its own, its draft, or the draft with tuned configurations."""

    target: Target
    allow_torch: frozenset[str] = field(default_factory=frozenset)
    """The operators that a draft leaves to PyTorch."""


def candidate_of(item: SweepItem, known: Mapping[str, Mapping[str, Any]], out: Path) -> Candidate | None:
    """The item's candidate, `known` being its records by phase; None where there is none, or none yet."""
    if item.candidate is not None:
        return Candidate(item.candidate)
    draft = known.get("draft", {})
    if draft.get("status") != "drafted":
        return None
    return Candidate(Target(path=out / draft["file"]), frozenset(draft["calls"]))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def digest_of(*parts: object) -> str:
    """A short name of what the parts say."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]
