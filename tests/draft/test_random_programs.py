"""Whatever a program is composed of, every way to compute it gives what its steps give one by one."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from pytorch_to_triton.draft.groups import Group
from pytorch_to_triton.draft.ir.rewriting import check
from pytorch_to_triton.draft.ir.values import Cluster, Store
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.draft.partition.partition import partition
from pytorch_to_triton.draft.patterns import columns, rows
from pytorch_to_triton.draft.program import Program, buffers_of
from pytorch_to_triton.draft.reading import read_program
from pytorch_to_triton.draft.refinement import with_refined_axes
from pytorch_to_triton.draft.storage import with_results_stored
from pytorch_to_triton.draft.sums import with_sums_by_row
from pytorch_to_triton.schema.graph import Graph

from ..random_programs import random_program, with_column_sums
from ..random_statements import RANGES, Variable, traced
from .evaluate import Array, evaluate

PROGRAMS = 20
PROGRAMS_OF_THE_CORPORA = 500
BATCH = 20
FAILED_ONCE = (749, 2775, 2930, 5727)
"""Seeds beyond those: a turned pool, sums over as many elements as one chunk has, a padded triangle."""


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions are split into chunks of a few elements: the programs are small."""
    for pattern in (rows, columns):
        monkeypatch.setattr(pattern, "CHUNK", 4)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(n, marks=() if n < PROGRAMS else pytest.mark.corpora)
        for n in range(0, PROGRAMS_OF_THE_CORPORA, BATCH)
    ],
)
def test_every_way_to_compute_a_program_agrees_with_its_steps(first: int) -> None:
    check_programs(range(first, first + BATCH))


def test_programs_that_failed_once_agree_with_their_steps() -> None:
    check_programs(FAILED_ONCE)


def check_programs(seeds: Iterable[int]) -> None:
    """Asserts it for the program of each seed, and for the same with sums over the columns of its results."""
    programs = [(seed, random_program(seed)) for seed in seeds]
    for seed, program in [*programs, *((seed, with_column_sums(p)) for seed, p in programs)]:
        try:
            rng = np.random.default_rng(seed)
            faults = list(disagreements(program.graph(), {v.name: drawn(v, rng) for v in program.inputs}))
        except Exception as error:
            error.add_note(f"seed {seed}:\n{program.source()}")
            raise
        assert not faults, f"seed {seed}: {faults}\n{program.source()}"


def test_a_seed_always_gives_the_same_program() -> None:
    assert random_program(5) == random_program(5)
    assert len({random_program(seed).source() for seed in range(20)}) == 20


def disagreements(graph: Graph, given: dict[str, Array]) -> Iterator[str]:
    """Each way that computes something else than the steps do, in words."""
    program = with_results_stored(read_program(graph, frozenset(), PURE))
    assert not program.calls, program.calls
    expected = step_by_step(program, given)
    program = with_sums_by_row(with_refined_axes(program))
    rewritten = step_by_step(program, given)
    yield from (f"{name} (rewritten)" for name in expected if not alike(rewritten[name], expected[name]))
    expected = rewritten
    outputs = {b for r in program.results for b in buffers_of(r.tensor) if b in program.steps}
    for plain in (True, False):
        groups = [g for g in partition(program, outputs, plain=plain) if isinstance(g, Group)]
        yield from of_groups(groups, given, expected, graph.dims, "plain" if plain else "fused")


def step_by_step(program: Program, given: dict[str, Array]) -> dict[str, Array]:
    """The values of all steps."""
    arrays = dict(given)
    for step in program.steps.values():
        cluster = Cluster(step.name, (Store(step.buffer, step.tensor.indices, step.tensor.value),))
        check(cluster)
        evaluate(cluster, arrays, program.graph.dims)
    return arrays


def of_groups(
    groups: list[Group], given: dict[str, Array], expected: dict[str, Array], dims: dict[str, int], how: str
) -> Iterator[str]:
    """What the clusters compute, and each of their alternatives in the form that is printed.

    A step that partitioning has added is `expected` to be what it is computed of.
    """
    arrays = dict(given)
    for group in groups:
        before = dict(arrays)
        check(group.cluster)
        for step in (s for s in group.steps if s.name not in expected):
            evaluate(Cluster(step.name, (step.store,)), expected, dims)
        evaluate(group.cluster, arrays, dims)
        yield from differing(group, arrays, expected, how)
        for alternative in group.pattern.alternatives(group.cluster):
            made = dict(before)
            for cluster, schedule in alternative.kernels:
                applied = schedule.applied(cluster)
                check(applied)
                evaluate(applied, made, dims)
            yield from differing(group, made, expected, f"{how}, {alternative.name}")


def differing(group: Group, found: dict[str, Array], expected: dict[str, Array], how: str) -> Iterator[str]:
    for step in group.steps:
        if not alike(found[step.name], expected[step.name]):
            yield f"{step.name} ({group.pattern.__name__.rpartition('.')[2]}, {how})"


def alike(found: Array, right: Array) -> bool:
    return np.allclose(found, right, rtol=1e-6, atol=1e-9, equal_nan=True)


def drawn(v: Variable, rng: np.random.Generator) -> Array:
    shape = tuple(map(traced, v.shape))
    if v.dtype == "bool":
        return rng.random(shape) < 0.6
    if v.dtype == "int64":
        return rng.integers(*RANGES[v.name], shape)
    return rng.standard_normal(shape)
