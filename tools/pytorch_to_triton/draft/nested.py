"""Operators that reduce what they have reduced, such as attention, as a step for each reduction.

A pattern may still compute them together: only what none takes in one walk is taken apart, since it would be
computed again for each element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.ir.rewriting import repeated, rewrite
from pytorch_to_triton.draft.ir.values import Cluster, Load, Store, axes_in_order
from pytorch_to_triton.draft.lower.tensor import Tensor
from pytorch_to_triton.draft.patterns import window
from pytorch_to_triton.draft.program import Call, Program, Step
from pytorch_to_triton.draft.registry import pattern_of


def with_nested_apart(program: Program) -> Program:
    """The same program, in which no step has to be computed again and again."""
    taken = set(program.steps) | {i.name for i in program.graph.inputs}
    items: list[Step | Call] = []
    for item in program.items:
        items += _apart(item, taken) if isinstance(item, Step) and _repeats(item) else [item]
    return replace(program, items=tuple(items))


def _repeats(step: Step) -> bool:
    """Whether a reduction lies inside of another, and no pattern has a walk for both."""
    if repeated(step.tensor.value) is None:
        return False
    cluster = Cluster(step.name, (Store(step.buffer, step.tensor.indices, step.tensor.value),))
    return pattern_of(cluster) is window


def _apart(step: Step, taken: set[str]) -> Iterator[Step]:
    """The nested reductions, the innermost first, and the step that reads them."""
    value = step.tensor.value
    while (inner := repeated(value)) is not None:
        name = fresh(inner.name or f"{step.name}_{inner.monoid.name}", taken)
        taken.add(name)
        dims = tuple((a,) for a in axes_in_order(inner))
        part = Step(
            name, Tensor(dims, inner, step.tensor.dtype), step.node.model_copy(update={"source_name": None})
        )
        yield part
        load = Load(part.buffer, part.tensor.indices, name=name)
        value = rewrite(value, lambda v: load if v == inner else None)  # noqa: B023 (used at once)
    yield replace(step, tensor=replace(step.tensor, value=value))
