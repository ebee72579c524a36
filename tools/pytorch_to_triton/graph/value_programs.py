"""A program for each value of a constant of which several are declared, where they are not one program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.size_programs import programs_for_all_sizes
from pytorch_to_triton.graph.trace_sizes import joined
from pytorch_to_triton.graph.tracing import Branch, TargetTracer, Traced, traced_by
from pytorch_to_triton.inputs.listed_values import is_one_of
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.dtype import Scalar
from pytorch_to_triton.schema.graph import Graph

MOST_TRACED = 32
"""Combinations of values, each of which takes a second or more."""
MOST_PROGRAMS = 8
Values = Mapping[str, Scalar]
Listed = Mapping[str, Sequence[Scalar]]


async def programs_for_all_calls(tracer: TargetTracer, first: Traced, named: Sequence[Point] = ()) -> Traced:
    """The target at all declared sizes, and those `named` besides, with all declared values of constants:
    `first`, a trace with the first of each, and programs for what it does not hold for.

    Raises NotConvertible where that takes too many programs, or one of them cannot be traced.
    """
    listed, function = tracer.declaration.listed(), first.graph.function
    if not listed:
        return await programs_for_all_sizes(tracer, first, named)
    if (count := math.prod(map(len, listed.values()))) > MOST_TRACED:
        raise _too_many(f"{function} has {count} combinations of declared values; {MOST_TRACED} are traced.")
    programs: list[tuple[Traced, list[Values]]] = []
    for values, declaration in tracer.declaration.each_value():
        at_values = replace(tracer, declaration=declaration)
        try:
            trace = await traced_by(at_values) if programs else first
            traced = await programs_for_all_sizes(at_values, trace, named)
        except NotConvertible as refusal:
            raise NotConvertible(f"Where {_all_of(values)}: {refusal.message}", refusal.hint) from refusal
        alike = next((of for known, of in programs if _programs_of(known) == _programs_of(traced)), None)
        if alike is None:
            if len(programs) == MOST_PROGRAMS:
                raise _too_many(f"{function} is more than {MOST_PROGRAMS} programs at its declared values.")
            programs.append((traced, alike := []))
        alike.append(values)
    return _as_one(programs, listed)


def _too_many(problem: str) -> NotConvertible:
    return NotConvertible(problem, "List fewer values, and convert once more for the others.")


def _all_of(values: Values) -> str:
    return joined([is_one_of(name, [value]) for name, value in values.items()])


def _programs_of(traced: Traced) -> list[Branch]:
    """What is computed, whatever values it was traced with: a float that is an argument may differ."""
    return [_without_values(branch) for branch in (traced.rest, *traced.branches)]


def _without_values(branch: Branch) -> Branch:
    def without(graph: Graph) -> Graph:
        return graph.model_copy(update={"constants": {}, "fixed": ()})

    backward = branch.backward and replace(branch.backward, graph=without(branch.backward.graph))
    return replace(branch, graph=without(branch.graph), backward=backward)


def _as_one(programs: Sequence[tuple[Traced, list[Values]]], listed: Listed) -> Traced:
    """The program of the first values, with those of the others as branches before it."""
    (main, _), *others = programs
    branches: list[Branch] = []
    for other, combinations in others:
        values = tuple(_conditions(combinations, listed))
        _refuse_other_results(main, other, values)
        branches += [replace(branch, values=values) for branch in (*other.branches, other.rest)]
    fixed = dict.fromkeys(name for traced, _ in programs for name in (*traced.graph.fixed, *listed))
    return replace(
        main,
        graph=main.graph.model_copy(update={"fixed": tuple(fixed), "listed": dict(listed)}),
        branches=(*branches, *main.branches),
        for_other_values=tuple(guard for other, _ in others for guard in other.holds_where),
    )


def _conditions(combinations: Sequence[Values], listed: Listed) -> list[str]:
    """When a call has one of these combinations, among those that are declared."""
    among = {
        name: [v for v in all_ if any(c[name] == v for c in combinations)] for name, all_ in listed.items()
    }
    if len(combinations) == math.prod(map(len, among.values())):
        return [is_one_of(name, some) for name, some in among.items() if len(some) < len(listed[name])]
    return [" or ".join(f"({_all_of(values)})" for values in combinations)]


def _refuse_other_results(main: Traced, other: Traced, values: Sequence[str]) -> None:
    """Raises NotConvertible where results are nested in another way with other values."""
    if [o.path for o in main.graph.outputs] != [o.path for o in other.graph.outputs]:
        raise NotConvertible(
            f"{main.graph.function} returns other results where {joined(values)}.",
            "Declare values with which it returns the same, and convert once more for the others.",
        )
