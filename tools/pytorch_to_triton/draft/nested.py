"""Operators that reduce what they have reduced, such as attention, as a step for each reduction.

A pattern may still compute them together: only what none takes in one walk is taken apart, since it would be
computed again for each element.
"""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.groups import Group, group_of
from pytorch_to_triton.draft.ir.rewriting import repeated
from pytorch_to_triton.draft.ir.values import Cluster
from pytorch_to_triton.draft.patterns import window
from pytorch_to_triton.draft.program import Call, Program, Step, taken_apart


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
    group = group_of(Cluster(step.name, (step.store,)), (step,))
    return isinstance(group, Group) and group.pattern is window
