"""A group as kernels, and how `run` launches them: in one configuration, tuned as it runs, or as measured."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from pytorch_to_triton.draft.emit.kernel import Grid, PrintedKernel, printed, signature
from pytorch_to_triton.draft.file.lines import INDENT, WIDTH, Lines, as_written, in_names, listed, tuple_text
from pytorch_to_triton.draft.groups import Group
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Buffer, Cluster
from pytorch_to_triton.draft.schedule.blocks import at_hand
from pytorch_to_triton.draft.schedule.conditions import (
    any_of,
    are_complements,
    on_longer_axes,
    with_tiles_that_fit,
)
from pytorch_to_triton.draft.schedule.schedule import Alternative, Config, Schedule
from pytorch_to_triton.inputs.expression import holds

Stage = Literal[1, 2, 3]
Memory = tuple[tuple[sizes.Size, ...], str]
"""Shape, and dtype as source."""


@dataclass(frozen=True)
class Variant:
    """A kernel with its configurations worth measuring, and the sizes at which `run` takes it."""

    kernel: str
    candidates: tuple[Config, ...]
    condition: str
    """Over the dims, e.g. `N <= 32768`."""


@dataclass(frozen=True)
class Kernel:
    """A kernel as the file has it."""

    name: str
    doc: str
    """What it computes, in a line."""
    lines: tuple[str, ...]
    printed: PrintedKernel
    passes: int
    """How often it walks over what it reduces."""
    variants: tuple[Variant, ...]

    def on(self, others: Mapping[Buffer, Buffer]) -> Kernel:
        """The same kernel on other tensors; what is not among `others` stays."""
        return replace(self, printed=self.printed.on(others))


@dataclass(frozen=True)
class Choice:
    """The kernels of one alternative, and when `run` takes it."""

    condition: str
    kernels: tuple[Kernel, ...]

    def on(self, others: Mapping[Buffer, Buffer]) -> Choice:
        """The same kernels on other tensors."""
        return replace(self, kernels=tuple(k.on(others) for k in self.kernels))


@dataclass(frozen=True)
class Surroundings:
    """What a program says of a group in it."""

    points: Sequence[Mapping[str, int]]
    """The declared sizes and the timed ones: every one has a kernel ..."""
    deciding: Sequence[Mapping[str, int]]
    """... and what is better at none of these is left out, as far as the others do without it."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    """Tensor -> its dtype in memory; empty where that is not one in all calls."""
    read_again: Set[str] = frozenset()
    """Tensors that several groups or calls read."""
    twins: int = 0
    """How many other groups take the same kernels."""


def choices(group: Group, base: str, stage: Stage, around: Surroundings) -> tuple[Choice, ...]:
    """The group's kernels, what no other choice is for last: its condition, if any, is the group's limit."""
    found = chosen(group, stage, around)
    found = tuple(in_cache(alternative, around.read_again) for alternative in found)
    names = [base, *(f"{base}_{alternative.name}" for alternative in found[1:])]
    conditions = [a.condition for a in found]
    return tuple(
        Choice(a.condition, tuple(_kernels(a, name, stage, taken_where(conditions, number), around)))
        for number, (a, name) in enumerate(zip(found, names, strict=True))
    )


def in_cache(alternative: Alternative, kept: Set[str]) -> Alternative:
    """The alternative with the tensors that others read as well left in the cache."""

    def streams(cluster: Cluster, schedule: Schedule) -> bool:
        return schedule.streams and not any(v.buffer.name in kept for v in cluster.largest_loads())

    kernels = ((c, replace(s, streams=streams(c, s))) for c, s in alternative.kernels)
    return replace(alternative, kernels=tuple(kernels))


def taken_where(conditions: Sequence[str], number: int) -> str:
    """When the choice of that number is taken, the first that holds being so."""
    return " and ".join([*(f"not ({c})" for c in conditions[:number]), conditions[number] or "1 == 1"])


def launches(
    group: Group,
    taken: Sequence[Choice],
    stage: Stage,
    tuned: Mapping[str, Config],
    allocated: Mapping[str, str],
    models: Mapping[Memory, str],
) -> list[Lines]:
    """The statements of `run` that compute what a group stores; `allocated`: in which dtype,
    where that is not the step's; `models`: tensors that lie in order, by their memory."""
    branches: list[tuple[str, list[Lines]]] = []
    own = {s.name for s in group.steps}
    for choice in taken:
        lines: list[Lines] = []
        known: dict[str, str] = {}
        for kernel in choice.kernels:
            fresh = {n: t for n, t in kernel.printed.size_sources.items() if known.get(n) != t}
            known |= fresh
            named_first = sorted(fresh.items(), key=lambda item: len(item[1]))
            lines += [(f"{n} = {as_written(text, known)}",) for n, text in named_first]
            for buffer in dict.fromkeys(kernel.printed.stores):
                if buffer.name not in own:
                    dtype = f"{buffer.like}.dtype" if buffer.like else f"torch.{buffer.dtype}"
                    made = allocation(buffer, dtype, kernel.printed.size_sources)
                    lines.append((made,))
            lines += launch(kernel, stage, tuned, precision_setting(group))
        branches.append((choice.condition, lines))
    stored = [(s.buffer, allocated.get(s.name, f"torch.{s.buffer.dtype}")) for s in group.steps]
    before = [(like(buffer, dtype, models) or allocation(buffer, dtype),) for buffer, dtype in stored]
    conditions = [choice.condition for choice in taken]
    return [*before, *decided(branches, any_of(conditions) if conditions[-1] else "")]


def chosen(group: Group, stage: Stage, around: Surroundings) -> tuple[Alternative, ...]:
    """The plain alternative; else the best ones, down to the first that leaves no size to others: small sizes
    take part where those for the others leave them something.

    Their blocks are no longer than these sizes: longer ones are lanes without an element, and a loop of which
    no case sees a second turn.
    """
    points = around.points
    found: tuple[Alternative, ...] = group.pattern.alternatives(group.cluster)
    if stage == 1:
        kernels = tuple((c, replace(at_hand(c, s, points), aligned="")) for c, s in found[0].kernels)
        return (replace(found[0], kernels=kernels),)
    left, chain = list(around.deciding), list[Alternative]()
    for alternative in reversed(found):
        taken = [p for p in left if takes(alternative, p)]
        if points and alternative.condition and not taken:
            continue
        kernels = tuple((c, at_hand(c, schedule, taken)) for c, schedule in alternative.kernels)
        alternative = replace(alternative, kernels=kernels)
        alternative = with_tiles_that_fit(alternative) if stage == 2 else alternative
        left = [p for p in left if p not in taken]
        is_rest = any(are_complements(alternative.condition, other.condition) for other in chain)
        if is_rest:
            alternative = replace(alternative, condition="")
        elif points and not left and alternative.limit is not None:
            alternative = replace(alternative, condition=alternative.limit)
        chain.append(alternative)
        if not left:
            left = [p for p in points if not any(takes(a, p) for a in chain)]
        if not alternative.condition or (points and alternative.limit is not None and not left):
            break
    return tuple(chain)


def takes(alternative: Alternative, point: Mapping[str, int]) -> bool:
    """Whether it may be taken at these sizes."""
    return not alternative.condition or holds(alternative.condition, point)


def decided(branches: Sequence[tuple[str, list[Lines]]], limit: str) -> list[Lines]:
    """The first branch whose condition holds, else the last; `run` has checked the limit."""
    if len(branches) == 1:
        return branches[0][1]
    lines: list[str] = []
    for number, (condition, inside) in enumerate(branches):
        asked = without_implied(condition, [before for before, _ in branches[:number]], limit)
        head = f"{'elif' if number else 'if'} {asked}:" if number < len(branches) - 1 else "else:"
        lines += [head, *(f"{INDENT}{line}" for statement in inside for line in statement)]
    return [tuple(lines)]


def without_implied(condition: str, failed: Sequence[str], limit: str) -> str:
    """The condition without what holds where those before it do not, and a limit does."""
    parts = [condition] if " or " in condition else condition.split(" and ")
    known = [] if " or " in limit else limit.split(" and ")
    asked = [
        part
        for part in parts
        if part not in known and not any(are_complements(part, other) for other in failed)
    ]
    return " and ".join(asked) or condition


def _kernels(
    alternative: Alternative, name: str, stage: Stage, taken: str, around: Surroundings
) -> list[Kernel]:
    made = []
    for number, (cluster, schedule) in enumerate(alternative.kernels):
        own = name if len(alternative.kernels) == 1 else f"{name}_{_part(alternative, number)}"
        result = printed(replace(cluster, name=own), schedule, around.dtypes)
        passes = max(1, result.loops)
        doc = documented(result, cluster.name, around.twins)
        is_tuned = len(schedule.configs) > 1
        variants = (Variant(result.name, schedule.configs, taken),) if is_tuned else ()
        above = (*autotuned(result), "@triton.jit") if is_tuned and stage == 2 else ("@triton.jit",)
        lines = (*above, *signature(result.name, result.parameters), f'    """{doc}"""', *result.body)
        made.append(Kernel(result.name, doc, lines, result, passes, variants))
    return made


def _part(alternative: Alternative, number: int) -> str:
    cluster, _ = alternative.kernels[number]
    for ending in ("partial", "final"):
        if cluster.name.endswith(f"_{ending}"):
            return ending if number < 2 else f"{ending}_{number // 2 + 1}"
    is_last = number == len(alternative.kernels) - 1
    return "apply" if is_last and not cluster.reduces() else f"part_{number + 1}"


def documented(kernel: PrintedKernel, part: str, twins: int) -> str:
    """What the kernel computes, in one line; `part` is what it is called among several."""
    written = ", ".join(dict.fromkeys(b.name for b in kernel.stores))
    written += f" (and {twins} more alike)" if twins else ""
    walks = kernel.schedule.walks.values()
    how = {w.how for w in walks}
    if part.endswith("_partial"):
        return f"Compute {written}; a program takes one chunk."
    if part.endswith("_final"):
        return f"Compute {written} from the chunks' partial results."
    if kernel.multiplies:
        return f"Compute {written}; a program computes one tile."
    if kernel.loops:
        return f"Compute {written} in {'one pass' if kernel.loops == 1 else f'{kernel.loops} passes'}."
    if "whole" in how:
        return f"Compute {written}; a program holds whole rows in registers."
    if "unroll" in how:
        return f"Compute {written}, each element from its window."
    tiles = sum(w.block is not None for w in walks) > 1
    return f"Compute {written} {'tile by tile' if tiles else 'element by element'}."


def autotuned(kernel: PrintedKernel) -> tuple[str, ...]:
    """The decorator that measures the configurations once for each set of sizes."""
    lines = ["@triton.autotune(", "    configs=["]
    for config in kernel.schedule.configs:
        blocks = ", ".join(f'"{k}": {v}' for k, v in config.items() if not k.startswith("num_"))
        rest = ", ".join(f"{k}={v}" for k, v in config.items() if k.startswith("num_"))
        lines.append(f"        triton.Config({{{blocks}}}, {rest}),")
    keys = ", ".join(f'"{k}"' for k in kernel.sizes)
    return (*lines, "    ],", f"    key=[{keys}],", ")")


def allocation(buffer: Buffer, dtype: str, names: Mapping[str, str] | None = None) -> str:
    """A new tensor. A size such as `M - 1` is empty, not negative, where M is 0."""
    known = {text: name for name, text in (names or {}).items()}
    texts = [known.get(sizes.text(s), sizes.text(s)) for s in buffer.shape]
    shape = tuple_text([f"max({t}, 0)" if "-" in t else t for t in texts])
    return f"{buffer.name} = torch.empty({shape}, device=device, dtype={dtype})"


def precision_setting(group: Group) -> str:
    """PyTorch's setting for the operator whose products these are, as source."""
    convolves = any("conv" in operator for operator in group.operators)
    return f"torch.backends.{'cudnn.conv' if convolves else 'cuda.matmul'}"


def launch(kernel: Kernel, stage: Stage, tuned: Mapping[str, Config], setting: str) -> list[Lines]:
    """The statements that start a kernel; `setting` is PyTorch's for float32 products."""
    made, schedule = kernel.printed, kernel.printed.schedule
    at_run_time = stage == 2 and len(schedule.configs) > 1
    config: dict[str, object] = {}
    if not at_run_time and (measured := tuned.get(kernel.name)):
        config = {**measured, **on_longer_axes(schedule, measured)}
    elif not at_run_time:
        config = {**schedule.configs[0], **schedule.untuned}
    lines: list[Lines] = [(f"{a.name} = {a.source}",) for a in made.arguments if a.name != a.source]
    values: dict[str, str] = {}
    for block, text in schedule.values(config).items():
        text = in_names(text, made.size_sources)
        values[block] = text if text.isdigit() else block.lower()
        if not text.isdigit():
            lines.append((f"{block.lower()} = {text}",))
    keywords = {b: values[b] for b in made.blocks if b in values}
    if "PRECISION" in made.blocks:
        keywords["PRECISION"] = f"float32_precision({setting}, device)"
    if "ALIGNMENT" in made.blocks:
        keywords["ALIGNMENT"] = f"math.gcd({made.aligned}, 16)"
    if "INDEX" in made.blocks:
        keywords["INDEX"] = f"dtype_of_offsets({', '.join(b.name for b in largest(made.buffers))})"
    keywords |= {k: values[k] for k in ("num_warps", "num_stages") if k in values}
    above: Lines = ()
    if made.compares:
        keywords["enable_fp_fusion"] = "False"
        above = ("# Fused multiply-adds would round one side of a difference and not the other.",)
    grid = grid_at_run_time(made) if at_run_time else grid_of(made, values)
    given = [*(b.name for b in made.buffers), *made.sizes, *(a.name for a in made.arguments)]
    return [*lines, above + call(made.name, grid, given, keywords)]


def like(buffer: Buffer, dtype: str, models: Mapping[Memory, str]) -> str:
    """The statement that makes it like a tensor of the same memory; empty where there is none."""
    model = models.get((buffer.shape, dtype))
    return f"{buffer.name} = torch.empty_like({model})" if model else ""


def grid_at_run_time(made: PrintedKernel) -> str:
    """The grid of an autotuned kernel, whose blocks are known at each launch."""
    programs = [
        [f'triton.cdiv({size}, meta["{block}"])' if block else size for size, block in grid]
        for grid in made.grids
    ]
    depends = any(block for grid in made.grids for _, block in grid)
    return f"{'lambda meta: ' if depends else ''}({' + '.join(map(_product, programs))},)"


def grid_of(made: PrintedKernel, values: Mapping[str, str]) -> str:
    """The grid of blocks that are known."""

    def programs(grid: Grid) -> str:
        return _product([blocks_in(size, values[block]) if block else size for size, block in grid])

    return f"({' + '.join(map(programs, made.grids))},)"


def blocks_in(size: str, block: str) -> str:
    """How many blocks hold the size, as Python."""
    if size.isdigit() and block.isdigit():
        return str((int(size) + int(block) - 1) // int(block))
    return size if block == "1" else f"cdiv({size}, {block})"


def _product(factors: Sequence[str]) -> str:
    text = " * ".join(f"({factor})" for factor in factors if factor != "1") or "1"
    return ast.unparse(ast.parse(text, mode="eval"))


def largest(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Those without which no other would be known to have as many elements."""
    found: list[Buffer] = []
    for buffer in buffers:
        if not any(_is_as_large(other, buffer) for other in found):
            found = [other for other in found if not _is_as_large(buffer, other)] + [buffer]
    return found


def _is_as_large(buffer: Buffer, other: Buffer) -> bool:
    """Whether a buffer is known to have at least the other's elements: theirs, times a size."""
    return sizes.divides(sizes.product(other.shape), sizes.product(buffer.shape))


def call(name: str, grid: str, given: Sequence[str], keywords: Mapping[str, str]) -> tuple[str, ...]:
    """A launch on one line, else with its arguments on lines of their own."""
    everything = [*given, *(f"{k}={v}" for k, v in keywords.items())]
    line = f"{name}[{grid}]({', '.join(everything)})"
    return (line,) if len(line) <= WIDTH else (f"{name}[{grid}](", *listed(everything), ")")
