"""What the statements of a function take, from what its variables held in several runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.graph.shown_inputs import size_text
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.worker.wire.tracing import Held

FREE_SIZES = (1, 5, 40)
"""At which a size that depends on values is tried."""

Seen = Mapping[int, Sequence[Held]]
"""What a variable held whenever a run came to a statement, by the run's number."""


@dataclass
class SizesSeen:
    """The sizes of tensors over dims; those that follow from no declared dim are dims of their own."""

    points: Sequence[Point]
    """The declared dims in each run."""
    of_values: frozenset[tuple[int, int]]
    """A run and a size in it that depends on values."""
    taken: set[str] = field(default_factory=set)
    free: dict[tuple[int | None, ...], str] = field(default_factory=dict)
    """Dims that several tensors may share, by the sizes that they stand for."""
    names: list[str] = field(default_factory=list)
    """All dims that were added."""

    def text(self, seen: Sequence[int | None]) -> str:
        """A size by run; None where it changed within one."""
        if None not in seen and not all((run, size) in self.of_values for run, size in enumerate(seen)):
            if text := size_text(seen, self.points):
                return text
        elif None in seen or size_text(seen, self.points):
            return self.added()  # No two tensors can be known to share it.
        if tuple(seen) not in self.free:
            self.free[tuple(seen)] = self.added()
        return self.free[tuple(seen)]

    def added(self) -> str:
        """A dim of its own."""
        name = fresh("K", self.taken)
        self.taken.add(name)
        self.names.append(name)
        return name


def tensor_spec(seen: Seen, sizes: SizesSeen) -> TensorSpec | None:
    """A tensor as it is declared; None where its rank or its dtype changes within a run."""
    runs = [seen[run] for run in sorted(seen)]
    ranks = {len(held.shape) for run in runs for held in run}
    if len(ranks) != 1 or any(len({held.dtype for held in run}) != 1 for run in runs):
        return None
    shape = (
        sizes.text([only(held.shape[axis] for held in run) for run in runs]) for axis in range(ranks.pop())
    )
    dtypes = dict.fromkeys(run[0].dtype for run in runs)
    return TensorSpec.model_validate({"dtypes": tuple(dtypes), "shape": tuple(shape)})


def only(values: Iterable[int]) -> int | None:
    """The value, where there is one alone."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def number_source(seen: Seen, points: Sequence[Point], tensors: Mapping[str, Sequence[str]]) -> str | None:
    """An integer as source over the sizes of `tensors`; None where it follows from them in no plain way."""
    runs = [only({int(held.value or 0) for held in seen[run]}) for run in sorted(seen)]
    text = None if None in runs else size_text(runs, points)
    if text is None:
        return None
    for dim in names_in(text):
        places = ((name, list(shape).index(dim)) for name, shape in tensors.items() if dim in shape)
        if (found := next(places, None)) is None:
            return None
        text = text.replace(dim, f"{found[0]}.shape[{found[1]}]")
    return text
