"""A program for each kind of sizes: where no trace holds at a declared size, the target is traced there."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice, product

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.trace_sizes import SizeKind, joined, pinned_by
from pytorch_to_triton.graph.tracing import Branch, TargetTracer, Traced, traced_by
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import holds, names_in, value_of
from pytorch_to_triton.inputs.sizes import Point, largest_point, nearby
from pytorch_to_triton.schema.graph import Graph

MOST_PROGRAMS = 4
FIXED_HINT = (
    "Somewhere a size becomes a plain number: len() or int() in another file, NumPy, an argument that takes "
    "plain numbers only. Compute it from x.shape with operators and `math`, or declare sizes that meet it."
)
OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
ONE_SIZE = re.compile(r"[\w *()+-]+ [!=]= \d+")
"""A condition that leaves one size, or all but one."""
POINTS = 10_000
SMALL = 64
"""How many times as much data a call may have as a small one."""
SAMPLED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 32, 33, 64, 101, 1000, 1024, 4096, 2**20)


def sizes_that_shape(graph: Graph, declaration: Declaration) -> dict[str, int]:
    """The dims whose one declared size is a number in the program: a loop over it, `squeeze`.

    They have to be numbers in the declaration, for the program to be that of their sizes.
    """
    points = declared_points(declaration.dims, declaration.requires)
    numbers = (guard for guard in graph.guards if ONE_SIZE.fullmatch(guard))
    named = {name for guard in numbers if not any(met(guard, p) for p in points) for name in names_in(guard)}
    return {name: sizes[0] for name, sizes in declaration.dims.items() if name in named and len(sizes) == 1}


async def programs_for_all_sizes(tracer: TargetTracer, first: Traced, named: Sequence[Point] = ()) -> Traced:
    """The target at all declared sizes, and those `named` besides: `first`, and programs for the sizes at
    which it does not hold. The last named ones, else the largest, are those of the first program.

    Raises NotConvertible where that takes more than MOST_PROGRAMS, or no trace holds at some sizes.
    """
    declaration = tracer.declaration
    points = [*declared_points(declaration.dims, declaration.requires), *named]
    tried = [first]
    programs = [t for t in tried if not points or any(is_for(t, p) for p in points)]
    while left := [p for p in points if not any(is_for(t, p) for t in programs)]:
        if len(programs) == MOST_PROGRAMS:
            raise _too_many(programs, points)
        tried = await _traces_towards(left[0], tracer, tried)
        programs.append(tried[-1])
    nearest = (p for p in nearby(largest_point(declaration.dims), declaration.dims) if p in points)
    largest = named[-1] if named else declaration.generated or next(nearest, {})
    return _as_one(programs, largest, points)


async def _traces_towards(point: Point, tracer: TargetTracer, tried: Sequence[Traced]) -> list[Traced]:
    """Further traces, the last of which holds at the point: on its side of all guards, else at its sizes."""
    pinned: dict[str, int] = {}
    for _ in range(len(point) + 1):
        guards = tuple(dict.fromkeys(guard for traced in tried for guard in traced.guards))
        kind = kind_of(point, guards, pinned)
        try:
            traced = await traced_by(replace(tracer, kind=kind))
        except NotConvertible:
            if kind.pinned == point:
                raise
            pinned = dict(point)
            continue
        tried = [*tried, traced]
        if is_for(traced, point):
            return list(tried)
        broken = {name for guard in traced.guards if not met(guard, point) for name in names_in(guard)}
        pinned |= {name: point[name] for name in broken}
    function, guard = tried[-1].graph.function, next(g for g in tried[-1].guards if not met(g, point))
    raise NotConvertible(
        f"{function} can be traced only where {guard}, and sizes that do not meet it are declared.",
        FIXED_HINT,
    )


def kind_of(point: Point, guards: Sequence[str], pinned: Mapping[str, int]) -> SizeKind:
    """The sizes on the point's side of all guards; dims to which a guard leaves one size are pinned."""
    sides = tuple(guard if met(guard, point) else opposite(guard) for guard in guards)
    numbers = {name: point[name] for name in pinned_by((*guards, *sides))}
    return SizeKind(sides, {**numbers, **pinned})


def is_for(traced: Traced, point: Point) -> bool:
    """Whether the trace, in each dtype, is that of these sizes."""
    return _all_met(traced.guards, point)


def met(guard: str, point: Point) -> bool:
    """Whether a guard holds; one that cannot be evaluated here, `run` evaluates."""
    try:
        return holds(guard, point)
    except (TypeError, NameError):
        return True


def evaluable(guards: Sequence[str]) -> Iterator[str]:
    """Those of the guards that need no function which `run` alone computes."""
    for guard in guards:
        with suppress(TypeError):
            holds(guard, dict.fromkeys(names_in(guard), 2))
            yield guard


def opposite(guard: str) -> str:
    """The condition that holds where the guard does not."""
    tree = ast.parse(guard, mode="eval").body
    match tree:
        case ast.Compare(ops=[operator]) if type(operator) in OPPOSITES:
            tree.ops = [OPPOSITES[type(operator)]()]
            return ast.unparse(tree)
    return f"not ({guard})"


def declared_points(dims: Mapping[str, Sequence[int]], requires: Sequence[str]) -> list[Point]:
    """The declared sizes, each with each, that meet the requirements."""
    points = (dict(zip(dims, sizes, strict=True)) for sizes in islice(product(*dims.values()), POINTS))
    return [point for point in points if all(holds(text, point) for text in requires)]


def not_small(graph: Graph, points: Sequence[Point]) -> list[Point]:
    """The declared sizes at which inputs have enough elements for another kernel to be worth reading.

    A small call lasts as long as its launch, whichever kernel it takes.
    """

    def elements(point: Point) -> float:
        return sum(math.prod(value_of(s, point) for s in i.shape.expressions) for i in graph.inputs)

    most = max(map(elements, points), default=0)
    return [point for point in points if elements(point) * SMALL >= most]


def _as_one(programs: Sequence[Traced], largest: Point, points: Sequence[Point]) -> Traced:
    """The program of the largest sizes, with the others as branches before it."""
    main = next((t for t in programs if is_for(t, largest)), programs[0])
    others = [t for t in programs if t is not main]
    for other in others:
        _refuse_other_results(main, other, points)
    fixed = dict.fromkeys(name for t in programs for name in t.graph.fixed)
    left = frozenset(implied(main.guards, [other.guards for other in others]))
    return replace(
        main,
        graph=main.graph.model_copy(update={"fixed": tuple(fixed)}),
        branches=(*_branches(others), *(replace(branch, implied=left) for branch in main.branches)),
        implied=left,
    )


def _branches(others: Sequence[Traced]) -> Iterator[Branch]:
    """The programs for other sizes, in the order in which `run` asks for them: each in some dtypes, then in
    all others."""
    for number, other in enumerate(others):
        known = implied(other.guards, [before.guards for before in others[:number]])
        sizes = tuple(guard for guard in other.guards if guard not in known)
        for branch in (*other.branches, other.rest):
            yield replace(branch, sizes=sizes, implied=frozenset(other.guards))


def implied(guards: Sequence[str], others: Sequence[Sequence[str]]) -> list[str]:
    """The guards that hold at all sizes, of many, at which none of the `others` holds as a whole and the
    rest of the guards does."""
    left = [p for p in _sampled([*guards, *chain(*others)]) if not any(_all_met(o, p) for o in others)]
    kept = list(guards) if others else []
    for guard in [*kept]:
        rest = [text for text in kept if text != guard]
        if all(met(guard, point) for point in left if _all_met(rest, point)):
            kept = rest
    return [guard for guard in guards if others and guard not in kept]


def _all_met(guards: Sequence[str], point: Point) -> bool:
    return all(met(guard, point) for guard in guards)


def _sampled(conditions: Sequence[str]) -> list[Point]:
    """Sizes for the dims that the conditions name, those near the conditions' numbers among them."""
    numbers = {int(n) for text in conditions for n in re.findall(r"\b\d+\b", text)}
    near = (n + step for n in numbers for step in (-1, 0, 1) if n + step >= 0)
    sizes = sorted({*SAMPLED, *near})
    names = sorted(frozenset[str]().union(*map(names_in, conditions)))
    step = max(len(sizes) ** len(names) // POINTS, 1) | 1
    every = islice(product(sizes, repeat=len(names)), 0, None, step)
    return [dict(zip(names, point, strict=True)) for point in every]


def _refuse_other_results(main: Traced, other: Traced, points: Sequence[Point]) -> None:
    """Raises NotConvertible where results are nested in another way at other sizes."""
    if [o.path for o in main.graph.outputs] != [o.path for o in other.graph.outputs]:
        raise NotConvertible(
            f"{main.graph.function} returns other results where {joined(other.guards)}.",
            f"Convert each kind by itself: {_declaring([main], points)}, and {_declaring([other], points)}.",
        )


def _too_many(programs: Sequence[Traced], points: Sequence[Point]) -> NotConvertible:
    """Of sizes for which more programs are needed than a file has."""
    return NotConvertible(
        f"{programs[0].graph.function} is more than {MOST_PROGRAMS} programs at its declared sizes: one "
        f"where {joined(programs[0].guards)}, others elsewhere.",
        f"Convert a part of them at a time, beginning with {_declaring(programs, points)}, which was traced.",
    )


def _declaring(programs: Sequence[Traced], points: Sequence[Point]) -> str:
    """The option that declares sizes for which these programs are enough."""
    covered = [p for p in points if any(is_for(t, p) for t in programs)]
    for name in points[0]:
        sizes = dict.fromkeys(p[name] for p in covered)
        if [p for p in points if p[name] in sizes] == covered:
            return f"--dim {name}={','.join(map(str, sizes))}"
    condition = " or ".join(joined(t.guards) for t in programs)
    return f"--require '{condition}'"
