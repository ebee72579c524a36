"""The sizes of a trace: all of them distinct, and of the kind for which a program is wanted."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import at_sizes, holds, names_in, sizes_listed
from pytorch_to_triton.schema.graph import Graph, Shape

PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
SIZES_TRIED = 10_000
"""Of each family of sizes."""

Sizes = tuple[int, ...]


def distinct_sizes(
    names: Sequence[str], requirements: Sequence[str], excluded: Collection[int]
) -> dict[str, int] | None:
    """A size for each dim, all different and none `excluded`, that meets every requirement; else None."""
    by_last, listed = _by_last_name(names, requirements), sizes_listed(requirements)
    for sizes in _families(len(names), requirements):
        family = [listed.get(name, of_name) for name, of_name in zip(names, sizes, strict=True)]
        steps = iter(range(SIZES_TRIED))
        search = _assignments(names, family, by_last, {}, excluded, steps)
        solution = next(search, None)
        if solution is not None:
            return solution
    return None


def _assignments(
    names: Sequence[str],
    family: Sequence[Sizes],
    by_last: Mapping[str, Sequence[str]],
    chosen: Mapping[str, int],
    excluded: Collection[int],
    steps: Iterator[int],
) -> Iterator[dict[str, int]]:
    """All ways to go on from the `chosen` sizes, while there are steps; a requirement is looked at once its
    last dim has a size."""
    if len(chosen) == len(names):
        yield dict(chosen)
        return
    name = names[len(chosen)]
    for size in family[len(chosen)]:
        if next(steps, None) is None:
            return
        if size in excluded or size in chosen.values():
            continue
        dims = {**chosen, name: size}
        if all(holds(text, dims) for text in by_last[name]):
            yield from _assignments(names, family, by_last, dims, excluded, steps)


def _by_last_name(names: Sequence[str], requirements: Sequence[str]) -> dict[str, list[str]]:
    """The requirements by the last dim that they name."""
    by_last: dict[str, list[str]] = {name: [] for name in names}
    for text in requirements:
        named = names_in(text)
        by_last[max(named, key=names.index) if named else names[-1]].append(text)
    return by_last


def _families(count: int, requirements: Sequence[str]) -> Iterator[list[Sizes]]:
    """Candidates for each dim, the most telling ones first: primes, multiples of one factor, of several."""
    numbers = sorted({int(n) for text in requirements for n in re.findall(r"\d+", text)} - {0, 1})
    for factor in dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128, *numbers, math.lcm(*numbers))):
        yield [tuple(p * factor for p in PRIMES[i:] + PRIMES[:i])[:6] for i in range(count)]
    yield [tuple(p * f for f in (16, 32, 64, 1) for p in PRIMES[:5])] * count
    multiples = (1, 2, 3, 4, *numbers)
    yield [tuple(dict.fromkeys(p * f for p in (11, 5, 3) for f in multiples))] * count
    # Small sizes are distinguished less reliably, so they come last.
    yield [tuple(range(3, 11))] * count


PINNED = re.compile(r"([^\W\d]\w*) == (\d+)")
"""A condition that leaves one size."""


@dataclass(frozen=True)
class SizeKind:
    """What the sizes of a trace are to be like, beyond what is declared."""

    conditions: tuple[str, ...] = ()
    pinned: Mapping[str, int] = field(default_factory=dict)
    """Dims that have this size and no other."""


def trace_dims(declaration: Declaration, kind: SizeKind | None = None) -> dict[str, int]:
    """Distinct sizes, of at least 11 if possible, that meet all requirements and are of this kind.

    Without a kind they are those of the program that a file's own inputs take. A dim whose sizes are listed
    has another one, since small numbers are not told apart, unless the kind pins it. Raises NotConvertible
    where there are none.
    """
    own = declaration.same_program if kind is None else kind.conditions
    pinned = {} if kind is None else dict(kind.pinned)
    required = (text for text in declaration.requires if not sizes_listed([text]))
    conditions = [at_sizes(text, pinned) for text in (*required, *own)]
    left = [name for name in declaration.dims if name not in pinned]
    requirements = [text for text in conditions if names_in(text)]
    numbers = {int(size) for spec in declaration.tensors().values() for size in spec.shape if size.isdigit()}
    dims = distinct_sizes(left, requirements, numbers | set(pinned.values())) if left else {}
    if dims is None or not all(holds(text, {}) for text in conditions if not names_in(text)):
        raise NotConvertible(
            f"No sizes differ from dim to dim and meet {', '.join(conditions)}: a trace tells dims "
            "apart by their sizes.",
            how_to_join_dims(declaration.requires) or "Loosen REQUIRES for the conversion.",
        )
    return {name: {**dims, **pinned}[name] for name in declaration.dims}


def kind_of_declared_sizes(declaration: Declaration) -> SizeKind | None:
    """What all declared sizes share: divisors, and which dims are larger than which; None: nothing."""
    divisors = {name: math.gcd(*sizes) for name, sizes in declaration.dims.items()}
    found = [f"{name} % {divisor} == 0" for name, divisor in divisors.items() if divisor > 1]
    found += [
        f"{larger} > {smaller}"
        for larger, smaller in permutations(declaration.dims, 2)
        if min(declaration.dims[larger]) > max(declaration.dims[smaller])
    ]
    pinned = {name: max(sizes) for name, sizes in sizes_listed(declaration.requires).items()}
    return SizeKind((*declaration.same_program, *found), pinned) if found or pinned else None


def how_to_join_dims(requires: Sequence[str]) -> str:
    """What to write where two dims must be equal; empty where none must."""
    equal = (re.fullmatch(r"\s*(\w+)\s*==\s*(\w+)\s*", text) for text in requires)
    names = next((e.groups() for e in equal if e and not any(n.isdecimal() for n in e.groups())), None)
    if names is None:
        return ""
    first, other = names
    inputs = f"write {first} for {other} in the inputs"
    return f"{first} == {other} makes them one dim: {inputs}, and drop the condition."


def pinned_by(conditions: Sequence[str]) -> dict[str, int]:
    """The dims to which a condition leaves one size."""
    return {found[1]: int(found[2]) for text in conditions if (found := PINNED.fullmatch(text))}


def joined(conditions: Sequence[str]) -> str:
    """All of them as one condition, which may stand beside others."""
    whole = (f"({text})" if " or " in text else text for text in conditions)
    return " and ".join(whole)


def at_pinned_sizes(graph: Graph) -> Graph:
    """The graph with the dims of which its trace leaves one size as numbers."""
    pinned = pinned_by(graph.guards)
    inputs = tuple(
        tensor.model_copy(
            update={
                "shape": Shape(
                    expressions=tuple(at_sizes(size, pinned) for size in tensor.shape.expressions),
                    traced=tensor.shape.traced,
                )
            }
        )
        for tensor in graph.inputs
    )
    dims = {name: size for name, size in graph.dims.items() if name not in pinned}
    guards = tuple(text for text in (at_sizes(guard, pinned) for guard in graph.guards) if names_in(text))
    return graph.model_copy(update={"inputs": inputs, "dims": dims, "guards": guards}) if pinned else graph
