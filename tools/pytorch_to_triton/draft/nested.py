"""Operators that reduce what they have reduced, such as attention, as a step for each reduction.

A pattern may still compute them together: only what none takes in one walk is taken apart, since it would be
computed again for each element.
"""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.ir.rewriting import repeated
from pytorch_to_triton.draft.ir.values import Cluster, Store
from pytorch_to_triton.draft.patterns import window
from pytorch_to_triton.draft.program import Call, Program, Step, taken_apart
from pytorch_to_triton.draft.registry import pattern_of


def with_nested_apart(program: Program) -> Program:
    """The same program, in which no step has to be computed again and again."""
    taken = set(program.steps) | {i.name for i in program.graph.inputs}
    items: list[Step | Call] = []
    for item in program.items:
        if isinstance(item, Step) and _repeats(item):
            items += taken_apart(item, item.tensor.value, repeated, taken)
        else:
            items.append(item)
    return replace(program, items=tuple(items))


def _repeats(step: Step) -> bool:
    """Whether a reduction lies inside of another, and no pattern has a walk for both."""
    if repeated(step.tensor.value) is None:
        return False
    cluster = Cluster(step.name, (Store(step.buffer, step.tensor.indices, step.tensor.value),))
    return pattern_of(cluster) is window
