"""A program of the drafted file: its kernels, and the statements that launch them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytorch_to_triton.draft.defects import DraftingDefect, concerning
from pytorch_to_triton.draft.file import run as runs
from pytorch_to_triton.draft.file.calls import called
from pytorch_to_triton.draft.file.joint import Launched, together
from pytorch_to_triton.draft.file.launches import (
    Choice,
    Kernel,
    Memory,
    Stage,
    Surroundings,
    choices,
    launches,
)
from pytorch_to_triton.draft.file.lines import Lines, choice_source, without_repeats, wrapped
from pytorch_to_triton.draft.groups import Form, Group, counterparts, form, group_of, made_by, read_by
from pytorch_to_triton.draft.ir.values import Cluster
from pytorch_to_triton.draft.library import Ways
from pytorch_to_triton.draft.partition.partition import partition
from pytorch_to_triton.draft.program import Call, Program
from pytorch_to_triton.draft.reading import read_program
from pytorch_to_triton.draft.refinement import with_refined_axes
from pytorch_to_triton.draft.schedule.conditions import any_of, strictest
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.draft.storage import memory_dtypes, with_results_stored, with_wide_results
from pytorch_to_triton.draft.sums import with_nested_apart, with_sums_by_row
from pytorch_to_triton.graph.trace_sizes import at_pinned_sizes
from pytorch_to_triton.graph.tracing import ARGUMENT
from pytorch_to_triton.schema.graph import Graph

RESERVED = frozenset((
    "tl", "triton", "torch", "libdevice", "reference", "run", "device", "pid", "start", "group",
    "group_size", "tile", "math", "meta", "partial", "num_warps", "row", "col", "i", "k", "query",
    "key", "d", "e", "head", "batch", "outer", "part", "n_elements", "n_rows", "n_cols", "inside",
    "mask", "pair", "carry", "is_last", "new_max", "shift", "p", "rescale", "tile_n", "tile_mean",
    "deviation", "delta", "share", "block_m", "block_n", "block_k", "block_d", "block_e",
    "cdiv", "next_power_of_2", "dtype_of_offsets", "INDEX", "float32_precision", "PRECISION", "ALIGNMENT",
))  # fmt: skip
"""Names that kernels and launches use themselves."""


@dataclass(frozen=True)
class Part:
    """One program of the target, drafted."""

    program: Program
    items: tuple[Group | Call, ...]
    kernels: tuple[Kernel, ...]
    blocks: tuple[tuple[Lines, ...], ...]
    """The statements of `run` for each item."""
    condition: str = ""
    """When `run` takes it; empty: where it takes no other."""
    guards: tuple[str, ...] = ()
    """Of its trace, those that `run` checks."""
    limits: tuple[str, ...] = ()
    """Conditions on sizes, beyond which it has no kernels."""


@dataclass(frozen=True)
class DraftSetting:
    """How a program is drafted."""

    ways: Ways
    stage: Stage
    tuned: Mapping[str, Config]
    points: Sequence[Mapping[str, int]]
    """The declared sizes and the timed ones."""
    deciding: Sequence[Mapping[str, int]]
    """Those for which kernels are chosen."""
    suffix: str = ""
    """Of its kernels' names."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The dtypes of the function's arguments that come in one, by their source: `x.dtype`."""


def part_of(program: Program, setting: DraftSetting) -> Part:
    """Raises DraftingDefect for the steps that have no kernel even by themselves, else for the group's."""
    try:
        return _part_of(program, setting)
    except DraftingDefect as defect:
        raise DraftingDefect(dict(_failing_alone(program, setting)) or defect.left) from defect


def _failing_alone(program: Program, setting: DraftSetting) -> Iterator[tuple[str, str]]:
    """The steps whose own kernel cannot be drafted, by their nodes, with the reason."""
    for step in program.steps.values():
        try:
            with concerning([step.node]):
                group = group_of(Cluster(step.name, (step.store,)), (step,))
                assert isinstance(group, Group), group
                choices(group, step.name, setting.stage, Surroundings(setting.points, setting.deciding))
        except DraftingDefect as defect:
            yield from defect.left.items()


def _part_of(program: Program, setting: DraftSetting) -> Part:
    stage = setting.stage
    outputs = [n for r in program.results if (n := runs.result_text(program, r)) in program.steps]
    items = partition(program, outputs, plain=stage == 1)
    groups = [g for g in items if isinstance(g, Group)]
    program = with_wide_results(program, {name for g in groups for name in read_by(g) - {*made_by(g)}})
    function = re.sub(r"\W", "_", snake(program.graph.function)) + setting.suffix
    models = in_order(program, items)
    readers = Counter(name for item in items for name in read_by(item))
    again = {name for name, count in readers.items() if count > 1}
    read = {v.buffer.name for g in groups for v in g.cluster.loads()}
    dtypes = memory_dtypes(program, setting.arguments)
    forms = {g.cluster: form(g, dtypes) for g in groups}
    alike = Counter(forms.values())
    first: dict[Form, tuple[Group, tuple[Choice, ...]]] = {}
    alone: list[Launched | Call] = []
    for item in items:
        if isinstance(item, Call):
            alone.append(item)
            continue
        with concerning([step.node for step in item.steps]):
            own = forms[item.cluster]
            if own not in first:
                base = function if len(groups) == 1 else f"{function}_{item.cluster.name}"
                twins = alike[own] - 1
                around = Surroundings(setting.points, setting.deciding, dtypes, again, twins)
                first[own] = item, choices(item, base, stage, around)
            twin, taken = first[own]
            others = counterparts(item.cluster, of=twin.cluster)
            alone.append(Launched(item, tuple(choice.on(others) for choice in taken)))
    launched = alone if stage == 1 else together(alone, stage)
    blocks: list[tuple[Lines, ...]] = []
    kernels: dict[str, Kernel] = {}
    for each in launched:
        if isinstance(each, Call):
            blocks.append(tuple(called(program, each, read)))
            continue
        kernels |= {k.name: k for c in each.taken for k in c.kernels if k.name not in kernels}
        blocks.append(tuple(launches(each.group, each.taken, stage, setting.tuned, program.kept, models)))
    limited = [any_of([c.condition for c in taken]) for _, taken in first.values() if taken[-1].condition]
    apart = [each for limit in limited for each in ([limit] if " or " in limit else limit.split(" and "))]
    limits = strictest((*program.limits, *apart))
    order = tuple(each.group if isinstance(each, Launched) else each for each in launched)
    return Part(program, order, tuple(kernels.values()), tuple(blocks), limits=limits)


def in_order(program: Program, items: Sequence[Group | Call]) -> dict[Memory, str]:
    """The inputs that are in order before a kernel reads them, by their memory. What is saved for a backward
    pass has the dtype of the function's argument."""
    inputs = runs.read_in_order(program, items)
    dtypes = {f"{name}.dtype": name for name in inputs} | {ARGUMENT.format(name): name for name in inputs}
    return {(program.tensors[name].shape, dtype): name for dtype, name in reversed(dtypes.items())}


def programmed(
    graph: Graph,
    ways: Ways,
    points: Sequence[Mapping[str, int]] = (),
    reserved: frozenset[str] = RESERVED,
) -> Program:
    """The program for use at these sizes, with these calls left to libraries."""
    graph = at_pinned_sizes(graph)
    program = with_nested_apart(with_results_stored(read_program(graph, reserved, ways, points)))
    return with_sums_by_row(with_refined_axes(program))


def snake(name: str) -> str:
    """`ConvBnReLU` as `conv_bn_relu`."""
    # The activations' names are one word each, whatever their capitals: ReLU, SiLU, GELU.
    whole = re.sub(r"(Re|Si|Ge|Se|Ce|Pre)LU", lambda found: found[0].capitalize(), name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", whole).lower()


def conditions(part: Part) -> list[str]:
    """What the trace found to hold, and the largest sizes that the kernels take, checked."""
    return [
        *(f'assert {guard}, "drafted for {guard}"' for guard in part.guards),
        *(f'assert {limit}, "drafted for {limit}; convert again with larger sizes"' for limit in part.limits),
    ]


def computed(part: Part, known: Collection[str] = ()) -> list[Lines]:
    """The statements that compute one program, but for its results; `known` tensors lie in order."""
    graph = part.program.graph
    return [
        *(wrapped(f"{choice.name} = {choice_source(choice)}") for choice in graph.choices),
        *((line,) for line in runs.contiguous(part.program, part.items, known)),
        *without_repeats([lines for block in part.blocks for lines in block]),
    ]
