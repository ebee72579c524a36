"""A target made ready for conversion, in one go or in steps: described, declared and traced, once."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytorch_to_triton.convert.cuts.cutting import CutTarget, cut, without_gradients
from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import Drafted, Source, draft
from pytorch_to_triton.draft.file.reference import MadeModule, Reference, function_reference, module_reference
from pytorch_to_triton.draft.library import Ways, ways_of
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.errors import BadInput, NotConvertible
from pytorch_to_triton.graph.cost import held_bytes
from pytorch_to_triton.graph.shown_inputs import with_shown_inputs
from pytorch_to_triton.graph.size_programs import evaluable, sizes_that_shape
from pytorch_to_triton.graph.tracing import NEED_VALUES, Traced, trace, tracer_of
from pytorch_to_triton.graph.value_programs import programs_for_all_calls
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.comparison import refuse_unknown
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import TensorSpec, fixed_spec
from pytorch_to_triton.inputs.packed_input import written
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.inputs.timing_dims import named_points, timing_dims
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import (
    EXPORT,
    GRADIENTS,
    open_target,
    refuse_other_names,
    reopen_target,
)
from pytorch_to_triton.targets.first_call import refuse_unrunnable
from pytorch_to_triton.targets.listed_inputs import with_lists_kept
from pytorch_to_triton.targets.memory_limit import refuse_too_large
from pytorch_to_triton.targets.problem import Problem, problem_of

TIMED_BYTES = 2**27
"""Inputs of a timing, or its largest value, hold at least this many bytes, twice the largest L2 cache."""


@dataclass(frozen=True)
class DraftOrigin:
    """What a target's drafts are made from."""

    traced: Traced
    source: Source
    state: Mapping[str, TensorSpec]
    """A module's parameters and buffers."""

    @property
    def reference(self) -> Reference:
        return self.source.reference

    @property
    def state_keys(self) -> Mapping[str, str]:
        """The state_dict's key of each of them."""
        return self.traced.graph.state

    @property
    def holds_where(self) -> tuple[str, ...]:
        """The conditions on sizes under which there is a program."""
        return self.traced.holds_where

    def ways(self) -> tuple[Ways, ...]:
        """Who may compute convolutions and products; the first where nothing is measured."""
        return ways_of(self.traced.graph)

    def drafted(
        self,
        stage: Stage,
        ways: Ways | None = None,
        tuned: Mapping[str, Config] | None = None,
        note: str = "",
    ) -> Drafted:
        """One stage; `note` is a comment above `run`. Raises NotConvertible."""
        return draft(self.traced.graph, replace(self.source, note=note), stage, tuned, ways)


@dataclass(frozen=True)
class ResolvedTarget:
    """A target with all that its stages, their verdicts and its finished files are made from."""

    request: ConversionRequest
    problem: Problem
    """The target on both sides."""
    origin: DraftOrigin | CutOrigin | None
    refusal: NotConvertible | None = None
    """Why it was not traced."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Dims that shape the program, which are numbers in the declaration."""

    @property
    def target(self) -> Target:
        return self.request.target

    @property
    def description(self) -> Description:
        return self.problem.reference

    @property
    def declaration(self) -> Declaration:
        return self.problem.declaration

    @property
    def whole(self) -> DraftOrigin | None:
        """What drafts of a target that was traced as a whole are made from."""
        return self.origin if isinstance(self.origin, DraftOrigin) else None

    @property
    def graph(self) -> Graph | None:
        """What was traced; None where that was in parts."""
        return self.whole.traced.graph if self.whole else None

    @property
    def is_module(self) -> bool:
        return self.description.is_module

    @property
    def undeclared_defaults(self) -> Mapping[str, str]:
        """The arguments that were not declared, for whose defaults alone a trace as a whole holds."""
        parameters = self.description.parameters if self.whole else ()
        undeclared = (p for p in parameters if p.name not in self.declaration.inputs)
        empty = {name for name, packing in self.declaration.packings().items() if not packing.items}
        collecting = (p.name for p in parameters if p.variadic and p.name in empty)
        return {p.name: p.default for p in undeclared if p.default} | dict.fromkeys(collecting, "empty")

    def convertible(self) -> DraftOrigin | CutOrigin:
        """What its drafts are made from. Raises NotConvertible where it was not traced."""
        if self.origin is None:
            assert self.refusal is not None
            raise self.refusal
        return self.origin

    def timing_cases(self) -> tuple[Case, ...]:
        """The calls at the sizes that are timed, the smallest first."""
        return timing_cases(self.declaration, self.request.points, self.traced)

    @property
    def traced(self) -> tuple[Traced, ...]:
        """What was traced, as a whole or in those parts whose sizes do not depend on values."""
        if isinstance(self.origin, CutOrigin):
            return self.origin.traced_at(self.declaration.dims)
        return (self.origin.traced,) if self.origin else ()

    @property
    def timed_points(self) -> tuple[Point, ...]:
        """The sizes that matter; of a function in parts, else those that are timed: what reads its inputs
        alone would take far larger ones."""
        if not isinstance(self.origin, CutOrigin):
            return self.request.points
        return tuple(case.dims for case in self.timing_cases() if case.dims)

    def declared(self) -> dict[str, Any]:
        """INPUTS, DIMS and REQUIRES, a module's state among the inputs where it was traced."""
        state = {} if self.origin is None else self.origin.state
        return declared(self.problem, state)

    def reference(self) -> Reference | None:
        """The target's source as the reference of a file of its own; None where it cannot be copied."""
        if self.origin is not None:
            return self.origin.reference
        with suppress(NotConvertible):
            return None if self.is_module else copied_reference(self.problem, {})
        return None


async def resolve(worker: WorkerClient, request: ConversionRequest, runtime: Runtime) -> ResolvedTarget:
    """Describe and trace the target, in one process. What cannot be traced is no refusal here.

    Raises BadInput where the target does not run or its inputs cannot be used.
    """
    target, seconds = request.target, request.seconds
    needs = GRADIENTS if request.backward else EXPORT
    async with open_target(worker, target, "reference", runtime, seconds=seconds, needs=needs) as process:
        refuse_unused_init(target, process.description)
        problem = problem_of(process.description, process.description, request.options)
        points = named_points(problem.declaration, request.points)
        request = request.model_copy(update={"points": points})
        if process.description.generates_inputs and not problem.declaration.inputs:
            try:
                problem = await with_shown_inputs(process, problem, request.options)
            except NotConvertible as refusal:
                return ResolvedTarget(request, problem, None, refusal)
        refuse_other_names(process.description, problem.declaration)
        refuse_dims_of_state(process.description, problem.declaration)
        if unusable := drawn(process.description):
            return ResolvedTarget(request, problem, None, unusable)
        await refuse_too_large(worker, problem.declaration, runtime, request.points)
        fixed: dict[str, int] = {}
        try:
            traced = await trace(process, problem.declaration, backward=request.backward)
            while sizes := sizes_that_shape(traced.graph, problem.declaration):
                refuse_other_sizes(request.points, sizes)
                request, problem = request.without_dims(sizes), problem.fixed_at(sizes)
                fixed |= sizes
                traced = await trace(process, problem.declaration, backward=request.backward)
            tracer = tracer_of(process, problem.declaration, backward=request.backward)
            traced = await programs_for_all_calls(tracer, traced, request.points)
        except NotConvertible as refusal:
            await refuse_unrunnable(worker, target, problem.declaration, runtime, seconds=seconds)
            untraced = ResolvedTarget(request, problem, None, refusal)
            return await resolved_in_parts(worker, untraced, runtime)
    refuse_unknown(problem.declaration.unordered, [output.path for output in traced.graph.outputs])
    try:
        origin = DraftOrigin(
            traced, source_of(problem, traced, request.points), state_of(traced.graph, problem.reference)
        )
        return ResolvedTarget(request, problem, origin, fixed=fixed)
    except NotConvertible as refusal:
        return ResolvedTarget(request, problem, None, refusal)


async def resolved_in_parts(worker: WorkerClient, target: ResolvedTarget, runtime: Runtime) -> ResolvedTarget:
    """A target that cannot be traced as a whole, in parts where it needs values; of a constant one."""
    if several := ", ".join(target.declaration.listed()):
        if target.refusal is None or target.refusal.hint not in NEED_VALUES:
            return target
        hint = f"{target.refusal.hint} With one value of {several} at a time it may be converted in parts."
        return replace(target, refusal=NotConvertible(target.refusal.message, hint))
    seconds = target.request.seconds
    opened = partial(reopen_target, worker, target.description, runtime, seconds=seconds)
    try:
        parts = await cut(CutTarget(opened, target.description, target.declaration, target.request.points))
        if parts is None:
            return target
        if target.request.backward:
            raise without_gradients(parts)
        reference = copied_reference(target.problem, parts.state_keys)
        made = construction(target.problem, parts.class_name) if parts.function.receiver else ""
        inputs = declared(target.problem, parts.state)
        attributes = attributes_of(target.description, parts.state_keys)
        origin = CutOrigin(
            parts, reference, target.declaration, inputs, made, target.description.needs_memory, attributes
        )
        return replace(target, origin=origin, refusal=None)
    except NotConvertible as refusal:
        return replace(target, refusal=refusal)


def refuse_other_sizes(points: Sequence[Point], fixed: Mapping[str, int]) -> None:
    """Raises BadInput for a point at another size of a dim that is a number in the program."""
    for name, size in fixed.items():
        for point in points:
            if point[name] != size:
                raise BadInput(
                    f"--at: {name} shapes the program, and {size} is declared, not {point[name]}.",
                    f"Declare that size too: --dim {name}={size},{point[name]}.",
                )


def refuse_unused_init(target: Target, description: Description) -> None:
    """Raises BadInput where a function is given arguments of a class."""
    if target.init and not description.is_module:
        raise BadInput(
            f"{target} is a function, and --init ({target.construction}) is for an nn.Module class.",
            "Leave out --init; a constant argument of the function is declared as --input eps=1e-5.",
        )


def refuse_dims_of_state(description: Description, declaration: Declaration) -> None:
    """Raises BadInput for a dim and a parameter or buffer of one name: a draft has both."""
    if shared := [tensor.name for tensor in description.state if tensor.name in declaration.dims]:
        raise BadInput(
            f"The dim {shared[0]} is called like a parameter or buffer of {description.target}.",
            "Give the dim another name where it is declared.",
        )


def drawn(description: Description) -> NotConvertible | None:
    """What refuses a module with numbers that each construction draws, of which a kernel would hold one."""
    if not description.drawn:
        return None
    drawn_first, name = description.drawn[0], description.drawn[0].rpartition(".")[2]
    return NotConvertible(
        f"{description.name} draws `{drawn_first}` at random as it is constructed, and a kernel would hold "
        "the number of one construction.",
        f"Keep it as a tensor, which a kernel is given: `self.{name} = torch.as_tensor({name})`.",
    )


def source_of(problem: Problem, traced: Traced, points: Sequence[Point] = ()) -> Source:
    """What the drafted files say of the target. Raises NotConvertible where its code cannot be copied."""
    description = problem.reference
    return Source(
        target=str(description.target),
        reference=copied_reference(problem, traced.graph.state),
        declared=declared(problem, state_of(traced.graph, description)),
        timed=tuple(case.dims for case in timing_cases(problem.declaration, points, [traced])),
        output_dtypes=traced.output_dtypes,
        tensor_dtypes=traced.tensor_dtypes,
        branches=traced.branches,
        backward=traced.backward,
        implied=traced.implied,
    )


def copied_reference(problem: Problem, state: Mapping[str, str]) -> Reference:
    """The target's source as the drafted file's `reference`; `state` are its arguments of a module's own."""
    description, types = problem.reference, problem.declaration.types()
    target = description.target
    text, modules = importlib.util.decode_source(target.path.read_bytes()), own_modules(target.path)
    if not description.is_module:
        return function_reference(text, description.name, modules, types, description.parameters)
    tensors = [name for name, spec in problem.declaration.inputs.items() if isinstance(spec, TensorSpec)]
    made = MadeModule(
        state,
        construction(problem, description.name),
        description.parameters,
        needs_memory=description.needs_memory,
        unsaved=description.unsaved,
        attributes=attributes_of(description, state),
        beside=next(iter((*state, *tensors)), ""),
    )
    return module_reference(text, description.name, made, modules, types)


def attributes_of(description: Description, state: Mapping[str, str]) -> tuple[str, ...]:
    """The plain attributes of a module that its reference takes, or moves to the device of a call."""
    taken = {*state.values(), *description.unsaved}
    return tuple(name for name in description.attributes if name in taken)


def construction(problem: Problem, name: str) -> str:
    """The expression that makes a module of class `name` as the target is made, in the mode of its calls."""
    description = problem.reference
    target = description.target
    text = importlib.util.decode_source(target.path.read_bytes())
    given = "*get_init_inputs()" if "def get_init_inputs" in text else ""
    # A file with get_inputs() says in which mode its module is called, too.
    mode = ".eval()" if description.examples is None else ""
    return f"{name}({target.construction or given}){mode}"


def own_modules(path: Path) -> frozenset[str]:
    """Top-level modules and packages next to the target, or next to the package that holds it."""
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    folders = {root, path.parent}
    return frozenset(
        entry.stem
        for folder in folders
        for entry in folder.iterdir()
        if entry.suffix == ".py" or any(entry.glob("*.py"))
    )


VARIANCE = "running_var"
"""What PyTorch's norms call a buffer whose root they take: it is never negative."""


def state_of(graph: Graph, description: Description) -> dict[str, TensorSpec]:
    """A module's parameters and buffers; integers within the range of those that it is made with."""
    ranges = {t.name: (str(t.low), str(t.high)) for t in description.state if t.high is not None}
    ranges |= {n: ("0.25", "4.0") for n, key in graph.state.items() if key.rpartition(".")[2] == VARIANCE}
    found: dict[str, TensorSpec] = {}
    for tensor in graph.inputs:
        if tensor.name in graph.state:
            spec = fixed_spec(tensor.dtypes or (tensor.dtype,), tensor.shape.expressions)
            low, high = ranges.get(tensor.name, (spec.low, spec.high))
            found[tensor.name] = spec.model_copy(update={"low": low, "high": high})
    return found


def declared(problem: Problem, state: Mapping[str, TensorSpec]) -> dict[str, Any]:
    """INPUTS, DIMS, REQUIRES and COMPARE as a file holds them, a module's `state` among the inputs."""
    declaration = problem.declaration
    return {
        "INPUTS": with_lists_kept(problem.reference, written({**declaration.inputs, **state})),
        "DIMS": {name: list(sizes) for name, sizes in declaration.dims.items()},
        "REQUIRES": list(declaration.requires),
        "COMPARE": list(map(str, declaration.unordered)),
    }


def timing_cases(
    declaration: Declaration, points: Sequence[Point], traced: Sequence[Traced]
) -> tuple[Case, ...]:
    """One at each of the points. Without any, one at the largest declared sizes, enlarged until the inputs,
    or the largest value, fill a GPU, as far as the first program is that of the sizes."""
    if not points:
        kept = tuple(guard for each in traced for guard in evaluable(each.guards))
        narrowed = declaration.model_copy(update={"requires": (*declaration.requires, *kept)})
        held = held_bytes(*(each.graph for each in traced))
        points = [timing_dims(narrowed, at_least_bytes=TIMED_BYTES, held=held)]
    return tuple(map(declaration.case, points))
