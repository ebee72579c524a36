"""A function or a module's `forward` that cannot be traced as a whole, traced in parts: between the
statements that need values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace

from pytorch_to_triton.convert.cuts.function_text import (
    FunctionText,
    Lines,
    forward_text,
    function_text,
    statements,
    with_values_apart,
)
from pytorch_to_triton.convert.cuts.outline import Outline, SizesSeen, outline
from pytorch_to_triton.convert.cuts.ranges import Ranges, StatementRange
from pytorch_to_triton.draft.file.module import Source, draft
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import NotConvertible, Refusal
from pytorch_to_triton.graph.dtype_rules import Dtypes, dtype_combinations
from pytorch_to_triton.graph.size_programs import programs_for_all_sizes
from pytorch_to_triton.graph.skeleton import operands
from pytorch_to_triton.graph.trace_sizes import distinct_sizes
from pytorch_to_triton.graph.tracing import TargetTracer, Traced, traced_by
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import ConstantSpec, TensorSpec, fixed_spec
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.jobs.job_channel import Ended
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import TargetProcess, source_of
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire import tracing

READ = "aten._local_scalar_dense.default"
"""Gives Python the value of an element: what a cut is for."""
WHOLE = 3
"""A whole number to trace with."""
RUNS = 3
"""At as many distinct sizes it is seen what variables hold."""


@dataclass(frozen=True)
class Part:
    """A range of a function's statements, traced."""

    range: StatementRange
    outline: Outline
    traced: Traced
    source: Source

    @property
    def name(self) -> str:
        """Of its function in the drafted file."""
        return self.traced.graph.function


@dataclass(frozen=True)
class Cut:
    """A function in parts, and what of it stays Python."""

    target: Target
    name: str
    """The function's."""
    ranges: Ranges
    parts: tuple[Part, ...]
    left: tuple[str, ...]
    """Ranges that stay PyTorch's although they need no values, each with the reason: ends of a sentence."""

    @property
    def state(self) -> dict[str, TensorSpec]:
        """A module's parameters and buffers."""
        return {name: fixed_spec(seen.dtypes, seen.shape) for name, seen in self.ranges.seen.state.items()}

    @property
    def state_keys(self) -> dict[str, str]:
        """The state_dict's key of each of them."""
        return {name: seen.key for name, seen in self.ranges.seen.state.items()}

    @property
    def class_name(self) -> str:
        """Of the module in the drafted file."""
        return f"{self.name}InParts"

    def without(self, reasons: Mapping[str, str]) -> Cut:
        """The same with these parts left to PyTorch, by name, each with the reason."""
        kept = tuple(part for part in self.parts if part.name not in reasons)
        left = (
            f"{lines_text([lines_of(self.function, part.range)])}: {reasons[part.name]}"
            for part in self.parts
            if part.name in reasons
        )
        return replace(self, parts=kept, left=(*self.left, *left))

    @property
    def function(self) -> FunctionText:
        return self.ranges.function

    @property
    def operators(self) -> dict[str, int]:
        """What PyTorch computes of it, where a run has come to it, each with its first line."""
        ranges = [part.range.statements for part in self.parts]
        inside = {s.lineno for tops in ranges for top in tops for s in (top, *statements(top))}
        lines = sorted(
            (int(line) for line in self.ranges.seen.operators if int(line) not in inside), reverse=True
        )
        return {
            name: self.function.lines[line][0]
            for line in lines
            for name in self.ranges.seen.operators[str(line)]
        }

    @property
    def left_to_pytorch(self) -> tuple[str, ...]:
        """What kernels could compute or not, and why they do not: ends of a sentence."""
        calls = (
            f"`{name.removesuffix('.default')}` (line {line}): it stands between the parts"
            for name, line in sorted(self.operators.items(), key=lambda call: call[1])
            if name != READ
        )
        return (*calls, *self.left)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result should know."""
        needing = needing_lines(self.ranges)
        what = "needs values, and stays" if len(needing) == 1 else "need values, and stay"
        return (f"Kernels compute {self.extent}; {lines_text(needing)} of the function {what} Python.",)

    @property
    def extent(self) -> str:
        """`3 parts: lines 4 to 11, 14, 17 to 20`."""
        count = len(self.parts)
        lines = [lines_of(self.function, part.range) for part in self.parts]
        return f"{count} part{'s' if count > 1 else ''}: {lines_text(lines)}"


@dataclass(frozen=True)
class CutTarget:
    """A target whose function is to be cut."""

    opened: Callable[[], AbstractAsyncContextManager[TargetProcess]]
    """A new process that has loaded it."""
    description: Description
    declaration: Declaration
    points: tuple[Point, ...] = ()
    """The sizes that matter, beside the declared ones."""

    @property
    def target(self) -> Target:
        return self.description.target


async def cut(target: CutTarget) -> Cut | None:
    """The target's function, or its `forward`, in parts; None where it needs no values, or cannot be run or
    read.

    Raises NotConvertible where no part can be drafted.
    """
    text_of = forward_text if target.description.is_module else function_text
    function = text_of(source_of(target.target), target.description.name)
    points = distinct_points(target.declaration)
    packed = any(packing.items for packing in target.declaration.packings().values())
    if function is None or not points or packed:
        return None
    calls = calls_of(target.declaration, points)
    cases = tuple(cases_of(target.declaration, calls))
    try:
        async with target.opened() as process:
            ranges = await seen_runs(process, function, cases)
            if not ranges.seen.needs:
                return None
            apart = with_values_apart(function, ranges.seen.needs, ranges.changing)
            ranges = await seen_runs(process, apart, cases)
    except Ended:
        return None
    return await traced_parts(target, ranges, [point for point, _ in calls])


async def seen_runs(process: TargetProcess, function: FunctionText, cases: tuple[wire.Case, ...]) -> Ranges:
    """What is seen of the function as it runs, first as values decide, then in each branch. Raises Ended."""
    plain = await runs(process, tracing.RunsRequest(text=function.text, cases=cases, branches=()))
    branches = Ranges(function, plain).branches()
    if not branches:
        return Ranges(function, plain)
    request = tracing.RunsRequest(text=function.text, cases=cases, branches=branches)
    return Ranges(function, await runs(process, request))


async def runs(process: TargetProcess, request: tracing.RunsRequest) -> tracing.RunsItem:
    answer = await process.answer(request)
    assert isinstance(answer, tracing.RunsItem)
    return answer


def distinct_points(declaration: Declaration) -> list[Point]:
    """Sizes that differ from dim to dim and from run to run; empty where there are too few."""
    names, found = tuple(declaration.dims), list[Point]()
    excluded = {int(s) for spec in declaration.tensors().values() for s in spec.shape if s.isdigit()}
    for _ in range(RUNS):
        point = distinct_sizes(names, declaration.requires, excluded) if names else {}
        if point is None:
            return []
        found.append(point)
        excluded |= set(point.values())
    return found


def calls_of(declaration: Declaration, points: Sequence[Point]) -> list[tuple[Point, Dtypes]]:
    """Sizes and dtypes of the runs: each of the points, then each further combination of declared dtypes."""
    dtypes = dtype_combinations({name: spec.dtypes for name, spec in declaration.tensors().items()})
    return [*((point, dtypes[0]) for point in points), *((points[0], each) for each in dtypes[1:])]


def cases_of(declaration: Declaration, calls: Sequence[tuple[Point, Dtypes]]) -> Iterator[wire.Case]:
    """A call each."""
    for number, (point, chosen) in enumerate(calls):
        arguments = declaration.arguments(point, chosen)
        case = Case(name=f"run {number}", group="declared", dims=dict(point), arguments=arguments)
        yield {**case.model_dump(mode="json"), "seed": 0}


async def traced_parts(target: CutTarget, ranges: Ranges, points: Sequence[Point]) -> Cut:
    """Every range that can be drafted, seen in runs at these sizes. Raises NotConvertible where none can."""
    parts: list[Part] = []
    left: list[str] = []
    sizes = SizesSeen(points, frozenset(ranges.seen.sizes_of_values), set(ranges.function.names()))
    sizes.taken |= target.declaration.dims.keys()
    waiting = [*ranges.all]
    while waiting:
        each = waiting.pop(0)
        try:
            outlined = outline(ranges, each, sizes, target.declaration)
            parts.append(await traced_part(target, ranges, each, outlined))
        except Refusal as refusal:
            if shorter := [*ranges.shorter(each)]:
                waiting[:0] = shorter
            else:
                left.append(f"{lines_text([lines_of(ranges.function, each)])}: {refusal.message.rstrip('.')}")
    if not parts:
        raise nothing_left(target.target, needing_lines(ranges), left)
    name = target.description.name
    return Cut(target.target, name, ranges, named(parts, name), tuple(left))


async def traced_part(target: CutTarget, ranges: Ranges, each: StatementRange, outlined: Outline) -> Part:
    """One range. Raises a Refusal where it cannot be traced or drafted."""
    if outlined.source.of_module and (both := outlined.arguments.keys() & ranges.seen.state.keys()):
        raise NotConvertible(f"its variable {min(both)} is called as a parameter of the module is", "")
    async with target.opened() as process:
        tracer = TargetTracer(process, outlined.declaration, part=outlined.source)
        dims = outlined.declaration.dims
        # Of a part with dims that follow from values, no size is known.
        points = tuple({n: p[n] for n in dims} for p in target.points if dims.keys() <= p.keys())
        traced = with_read_state(await programs_for_all_sizes(tracer, await traced_by(tracer), points))
        await refuse_integers(tracer, outlined.whole)
    state = {name: attribute(ranges.function.receiver, key) for name, key in traced.graph.state.items()}
    outlined = replace(outlined, arguments={**outlined.arguments, **state})
    if varying := [name for name in traced.graph.fixed if name in outlined.numbers]:
        raise NotConvertible(f"the number {varying[0]} decides what is computed", "")
    graphs = [traced.graph, *(branch.graph for branch in traced.branches)]
    if outlined.shares_memory and any(graph.written for graph in graphs):
        raise NotConvertible("it writes to a tensor that shares its memory with another", "")
    known = target.declaration.dims.keys()
    if narrow := [text for text in traced.holds_where if not names_in(text) <= known]:
        raise NotConvertible(f"it is traced only where {narrow[0]}, and values decide on that", "")
    first, last = lines_of(ranges.function, each)
    source = Source(
        target=str(target.target),
        reference=Reference((), (), ", ".join(outlined.arguments)),
        declared={
            "INPUTS": {},
            "DIMS": {name: list(sizes) for name, sizes in dims.items()},
            "REQUIRES": list(outlined.declaration.requires),
        },
        timed=points,
        output_dtypes=traced.output_dtypes,
        tensor_dtypes=traced.tensor_dtypes,
        branches=traced.branches,
        implied=traced.implied,
        part=f"{lines_text([(first, last)]).capitalize()} of {target.target.path.name}.",
    )
    draft(traced.graph, source, 1, ways=PURE)
    return Part(each, outlined, traced, source)


def with_read_state(traced: Traced) -> Traced:
    """A module's part without the parameters and buffers that it does not read."""
    graphs = [traced.graph, *(branch.graph for branch in traced.branches)]
    read = {name for graph in graphs for node in graph.nodes for name in operands(node)}
    read |= {output.name for graph in graphs for output in graph.outputs}
    unread = traced.graph.state.keys() - read

    def without(graph: Graph) -> Graph:
        state = {name: key for name, key in graph.state.items() if name not in unread}
        inputs = tuple(tensor for tensor in graph.inputs if tensor.name not in unread)
        parameters = tuple(name for name in graph.parameters if name not in unread)
        return graph.model_copy(update={"state": state, "inputs": inputs, "parameters": parameters})

    return with_graphs(traced, without)


def attribute(module: str, key: str) -> str:
    """A parameter or buffer of a module as source: `self.layers[0].weight`."""
    for name in key.split("."):
        if name.isdigit():
            module = f"{module}[{name}]"
        else:
            module = f"{module}.{name}" if name.isidentifier() else f"getattr({module}, '{name}')"
    return module


async def refuse_integers(tracer: TargetTracer, whole: frozenset[str]) -> None:
    """Raises NotConvertible where these whole numbers, passed as floats, give other dtypes."""
    declaration = tracer.declaration
    integers = dict.fromkeys(whole, ConstantSpec(value=WHOLE))
    as_integers = declaration.model_copy(update={"inputs": {**declaration.inputs, **integers}})
    first = dtype_combinations({name: spec.dtypes for name, spec in declaration.tensors().items()})[:1]
    tracers = (tracer, replace(tracer, declaration=as_integers)) if whole else ()
    graphs = [(await each.traces(first))[0] for each in tracers]
    if len({tuple(node.dtype for node in graph.nodes) for graph in graphs}) > 1:
        raise NotConvertible("it computes in integers with a number that changes from call to call", "")


def named(parts: Sequence[Part], function: str) -> tuple[Part, ...]:
    """The parts with the function's name and their number."""
    number = len(parts) > 1
    names = [f"{snake(function)}_part{f'_{n}' if number else ''}" for n in range(1, len(parts) + 1)]
    return tuple(renamed(part, name) for part, name in zip(parts, names, strict=True))


def renamed(part: Part, name: str) -> Part:
    traced = with_graphs(part.traced, lambda graph: graph.model_copy(update={"function": name}))
    return replace(part, traced=traced, source=replace(part.source, branches=traced.branches))


def with_graphs(traced: Traced, change: Callable[[Graph], Graph]) -> Traced:
    """The same with other graphs in the place of its own."""
    branches = tuple(replace(branch, graph=change(branch.graph)) for branch in traced.branches)
    return replace(traced, graph=change(traced.graph), branches=branches)


def needing_lines(ranges: Ranges) -> list[Lines]:
    """The lines in the user's file that need values themselves, not in a block inside."""
    function, lines = ranges.function, {need.line for need in ranges.seen.needs}
    found = {function.lines[s.lineno][0] for s in statements(function.tree) if s.lineno in lines}
    return [(line, line) for line in sorted(found)]


def lines_of(function: FunctionText, each: StatementRange) -> Lines:
    """The first and the last line of a range in the user's file."""
    lines = [function.lines[s.lineno] for top in each.statements for s in (top, *statements(top))]
    return min(first for first, _ in lines), max(last for _, last in lines)


def lines_text(ranges: Sequence[Lines]) -> str:
    """`lines 4 to 11, 14, 17 to 20`."""
    texts = [f"{first} to {last}" if last > first else str(first) for first, last in ranges]
    several = len(ranges) > 1 or ranges[0][0] != ranges[0][1]
    return f"line{'s' if several else ''} {', '.join(texts)}"


def nothing_left(target: Target, needing: Sequence[Lines], left: Sequence[str]) -> NotConvertible:
    """The refusal where every statement stays Python."""
    why = f": {'; '.join(left)}" if left else ""
    return NotConvertible(
        f"{target} needs the values of tensors in {lines_text(needing)}, and between them nothing is left "
        f"that a kernel can compute{why}.",
        "Keep shapes and branches free of values: torch.where(x > 0, x, 0) in place of x[x > 0]. "
        "`convert start` writes a file for its kernel, with signature, inputs and reference filled in.",
    )


def without_gradients(cut: Cut) -> NotConvertible:
    """The refusal of gradients."""
    lines = lines_text(needing_lines(cut.ranges))
    return NotConvertible(
        f"{cut.target} needs the values of tensors in {lines}, and gradients are drafted for functions that "
        "are traced as a whole.",
        f"Convert it without backward ({cut.extent}), or keep it free of values: torch.where(x > 0, x, 0) in "
        "place of x[x > 0].",
    )
