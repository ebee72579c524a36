"""A target run by torch.export; its operators come back as schema/graph.py has them."""

import contextlib
import math
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.fx import Node

from .. import wire
from ..calls.call_inputs import parameter_names
from ..calls.exchange import state_like_input
from ..interpreter import cuda_autocast
from ..loading.target import Loaded, load
from ..wire import tracing
from ..wire.packing import Packing, packing_of
from .complex_pairs import with_pairs
from .decomposition import Table, decompositions, only_kept_overridden
from .exported_call import (
    ExportedCall,
    Returned,
    copies_of,
    kept_by_squeezing,
    least_for_slices,
    part_of,
    updatable,
    written_copies,
)
from .fake import REAL_BYTES, fake_mode, load_fake, values_matter
from .graph_writer import (
    Extent,
    KeepsState,
    MutatesArguments,
    NodeWriter,
    NotRepresentable,
    SizeOfValues,
    Sizes,
    behind_outputs,
    lifted_scalars,
    named_outputs,
    names_of,
    written_arguments,
)
from .joint import OwnBackward, grad_names, halves, joint, own_backwards, without_lines
from .numbers_in_graph import known_constants
from .saving import saved_by
from .scalars import DependsOnScalar, bind_scalars, exponents, paired, with_notes
from .source_names import SourceNames, name_nodes
from .symbolic import AS_TENSORS, ROOT, answers_kept, noting, pools_stay_symbolic, sizes_stay_symbolic

# A float argument is recognised in the graph by tracing again with other values: of either sign, small and
# large, so that a branch on it shows.
OTHER_VALUES = (0.8414709848078965, -2.7182818284590451, 31415.926535897932)
STEP = 0.0078125
# One of several declared values is recognised by values near it: each side of a branch is a trace of its own.
NEAR = (1.08414709848078965, 1.027182818284590451, 1.0031415926535897932)


OF_VALUES = ("GuardOnDataDependentSymNode", "DataDependentOutputException")
"""torch's exceptions where the computation depends on a value."""


class TraceFailed(Exception):
    """torch.export cannot trace the target; the message is its own first line."""


class DependsOnValues(TraceFailed):
    """What is computed depends on the values of tensors."""


def trace(target: wire.Target, request: tracing.TraceRequest) -> tracing.TracedItem:
    """Trace `target` with tensors of the traced sizes, as often as each input has `dtypes`.

    They, and a module's state, are fake tensors; where that fails, real ones, unless they are large.
    """
    mode = fake_mode()
    loaded = asked_for(load_fake(target, mode), request)
    fits = bytes_of(loaded, request.inputs) <= REAL_BYTES
    if fits and loaded.module is not None and values_matter(loaded.module):
        return traced(loaded, contextlib.nullcontext(), request)
    try:
        return traced(loaded, mode, request)
    except (MutatesArguments, DependsOnValues, KeepsState, SizeOfValues):
        raise
    except Exception:
        if not fits:
            raise
        return traced(asked_for(load(target, "reference"), request), contextlib.nullcontext(), request)


def asked_for(loaded: Loaded, request: tracing.TraceRequest) -> Loaded:
    """The target, or the part of it that is to be traced."""
    return part_of(loaded, request.part) if request.part else loaded


def traced(
    loaded: Loaded, mode: AbstractContextManager[object], request: tracing.TraceRequest
) -> tracing.TracedItem:
    """The answer for a loaded target; the tensors to trace with are made in `mode`."""
    inputs, constants, setting = request.inputs, request.constants, request.setting
    packings = {name: packing_of(packing) for name, packing in request.packings.items()}
    count = max((len(spec.dtypes) for spec in inputs), default=1)
    with mode:
        tracers = [
            ExportTracer(loaded, in_dtypes(inputs, i), packings, setting, request.sizes) for i in range(count)
        ]
    first, *others = tracers
    graph = first.trace(constants)
    return tracing.TracedItem(
        graph=bound(first, graph, constants, request.listed),
        traces=(succeeded(graph), *(tried(tracer, constants) for tracer in others)),
    )


def bytes_of(loaded: Loaded, inputs: Sequence[tracing.TracedInput]) -> int:
    """What real tensors of the traced sizes, and the module's state, hold."""
    sizes = (max(getattr(torch, name).itemsize for name in spec.dtypes) for spec in inputs)
    given = sum(size * math.prod(spec.traced) for size, spec in zip(sizes, inputs, strict=True))
    return int(given + sum(tensor.nbytes for tensor in loaded.state.values()))


def in_dtypes(inputs: Sequence[tracing.TracedInput], trace: int) -> list[dict[str, Any]]:
    return [{**vars(spec), "dtype": spec.dtypes[trace]} for spec in inputs]


def tried(
    tracer: "ExportTracer", constants: Mapping[str, Any]
) -> tracing.TraceSucceeded | tracing.TraceRefused:
    """One trace, or why there is none."""
    try:
        return succeeded(tracer.trace(constants))
    except (TraceFailed, MutatesArguments, NotRepresentable) as problem:
        return tracing.TraceRefused(why=str(problem))


def succeeded(graph: dict[str, Any]) -> tracing.TraceSucceeded:
    return tracing.TraceSucceeded(graph={**graph, "fixed": []})


def bound(
    tracer: "ExportTracer", graph: dict[str, Any], constants: Mapping[str, Any], listed: Collection[str]
) -> dict[str, Any]:
    """The trace with its float arguments told apart from literals, where that can be done."""
    # No value is near zero: all others may take another branch.
    powers = exponents(graph["nodes"])
    floats = [n for n, v in constants.items() if isinstance(v, float) and (v or n not in listed)]
    floats = [n for n in floats if constants[n] not in powers]
    try:
        nodes = with_scalars(tracer, graph, constants, {n: n in listed for n in floats})
    except (DependsOnScalar, TraceFailed, MutatesArguments, NotRepresentable):
        # The value steers the computation, so the draft is for this value alone.
        return {**graph, "fixed": list(constants)}
    return {**graph, "nodes": nodes, "fixed": [name for name in constants if name not in floats]}


def with_scalars(
    tracer: "ExportTracer", graph: Mapping[str, Any], constants: Mapping[str, Any], floats: Mapping[str, bool]
) -> list[Any]:
    """The nodes with a reference to a float argument wherever one follows it; by each, whether other values
    are to be near its own.

    Raises DependsOnScalar where another value gives other operators, or meets no tensor as it is.
    """
    bound: list[Any] = graph["nodes"]
    nodes, notes = bound, tracer.notes
    for value, factor in zip(OTHER_VALUES, NEAR, strict=True) if floats else ():
        replaced = {
            name: (factor * constants[name] if is_near else value) + i * STEP
            for i, (name, is_near) in enumerate(floats.items())
        }
        other = tracer.trace({**constants, **replaced})
        if other["result"] != graph["result"]:
            raise DependsOnScalar("a result is computed from a float argument alone")
        bound = [bind_scalars(a, b, notes, tracer.notes) for a, b in paired(nodes, other["nodes"])]
    return bound


@dataclass(frozen=True)
class Exported:
    """A program in core operators."""

    program: ExportedProgram
    returned: Returned
    updated: list[str]
    """The buffers that it writes to."""
    squeezed: tuple[int | torch.SymInt, ...] = ()
    """Sizes that would be dropped, and were kept, as they were not 1 in the trace."""
    sliced: tuple[tuple[torch.SymInt, int], ...] = ()
    """Sizes of which slices take something else where they are below a least."""
    answers: tuple[Any, ...] = ()
    """What the caller's own branches were told of sizes."""
    saved: list[str] = field(default_factory=list)
    """The nodes whose values its backward half needs."""


class ExportTracer:
    """Traces one target, as often as needed, with the same example tensors."""

    def __init__(
        self,
        loaded: Loaded,
        inputs: list[dict[str, Any]],
        packings: Mapping[str, Packing],
        setting: tracing.TraceSetting,
        sizes: Sequence[tracing.TracedSize],
    ) -> None:
        self.loaded = loaded
        self.packings = packings
        given = {spec["name"]: example(spec) for spec in inputs}
        # A module in half precision has its parameters in it too.
        state = state_like_input(own_memory(loaded), given)
        self.sizes = {spec.name: spec.size for spec in sizes}
        as_long = [as_long_as(spec) for spec in sizes]
        self.inputs = [*inputs, *(described(name, tensor) for name, tensor in state.items()), *as_long]
        self.examples = [*given.values(), *state.values(), *map(example, as_long)]
        self.setting = setting
        self.buffers = updatable(loaded)
        self.notes: dict[str, float] = {}
        """The float arguments of the last trace, and what Python computed of them, by their source."""
        self.as_tensors: list[str] = []
        """The functions that made a size a tensor."""
        self.math = {**ROOT, **{name: noting(name, self.as_tensors) for name in AS_TENSORS}}

    def trace(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """One trace, as the JSON of schema/graph.py's Graph but for `fixed`."""
        exported = self._export(constants)
        program = exported.program
        signature = program.graph_signature
        tensors = self._tensors(program)
        known = {node.name: spec["name"] for node, spec in zip(tensors, self.inputs, strict=True)}
        if signature.buffers_to_mutate:
            raise MutatesArguments(f"it writes to {', '.join(signature.buffers_to_mutate.values())}")
        read = {known[node.name] for node in tensors if node.users}
        keys = self.loaded.state_keys
        if kept := [key for n, key in keys.items() if n in read and key in exported.returned.assigned]:
            raise KeepsState(f"its forward sets `{kept[0]}`, which the next call reads")
        sizes = self._sizes(program)
        names = SourceNames(self.loaded.file)
        writer = NodeWriter(known, names, sizes, lifted_scalars(program))
        copies = copies_of(program, known) if self.buffers else {}
        writer.known.update(copies)
        writer.known.update(grad_names(program, known.values()))
        wanted = behind_outputs(program) - {n for n in program.graph.nodes if n.name in copies}
        nodes = known_constants(program, set(self.loaded.state_keys.values()), wanted)
        writer.known.update({node["name"]: node["name"] for node in nodes})
        operators = [n for n in program.graph.nodes if n in wanted and writer.is_operator(n)]
        writer.known.update(names_of(operators, set(writer.known.values())))
        nodes += [writer.write(n) for n in operators]
        name_nodes(nodes, names)
        result, outputs = named_outputs(program, writer, exported.returned)
        written = written_arguments(program, writer)
        graph = {
            "function": self.loaded.name,
            "parameters": list(
                dict.fromkeys([*self.loaded.parameters, *constants, *self.sizes, *self.loaded.state])
            ),
            "inputs": [sizes.input(spec) for spec in self.inputs if spec["name"] not in self.sizes],
            "sizes": self.sizes,
            "state": self.loaded.state_keys,
            "constants": dict(constants),
            "packings": {name: packing.as_json() for name, packing in self.packings.items()},
            "nodes": nodes,
            "outputs": [*outputs, *written.values()],
            "written": {argument: output["path"] for argument, output in written.items()},
            "result": result,
            "dims": self.setting.dims,
            "guards": list(dict.fromkeys(guards_of(sizes, exported))),
            "updated": exported.updated,
            "autocast": cuda_autocast.has_begun(),
        }
        return {**graph, **halves(program, exported.saved, writer, graph)} if self.setting.backward else graph

    def _tensors(self, program: ExportedProgram) -> list[Node]:
        """The program's inputs in the order of its own."""
        given = set(program.graph_signature.user_inputs)
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in given]
        tensors = [n for n in placeholders if isinstance(n.meta["val"], torch.Tensor)]
        return tensors[: len(self.inputs)]

    def _sizes(self, program: ExportedProgram) -> Sizes:
        return Sizes(self._tensors(program), self.inputs, self.setting.dims, program.range_constraints)

    def _export(self, constants: Mapping[str, Any]) -> "Exported":
        """The program in core operators; of the traced sizes alone where a logarithm of one, or the like, is
        to be a plain number."""
        try:
            return self._followed(constants)
        except TraceFailed:
            if not self.as_tensors:
                raise
            self.math = ROOT
            return self._followed(constants)

    def _followed(self, constants: Mapping[str, Any]) -> "Exported":
        """The program in core operators, with its gradients where they are wanted."""
        try:
            with pools_stay_symbolic(), only_kept_overridden():
                return self._exported(constants)
        except (OwnBackward, MutatesArguments):
            raise
        except Exception as problem:
            if type(problem).__name__ in OF_VALUES and (line := line_in(self.loaded.file, problem)):
                raise DependsOnValues(f"line {line} needs the values of a tensor") from problem
            text = str(problem).strip().splitlines() or [type(problem).__name__]
            kind = DependsOnValues if type(problem).__name__ in OF_VALUES else TraceFailed
            raise kind(text[0]) from problem

    def _exported(self, constants: Mapping[str, Any]) -> "Exported":
        names = [spec["name"] for spec in self.inputs]
        self.notes = {}
        given = {**with_notes(constants, self.notes), **self.packings}
        module = ExportedCall(self.loaded, names, given, self.buffers, self.sizes)
        shapes = tuple(
            {i: Dim.STATIC if size.isdigit() else Dim.AUTO for i, size in enumerate(spec["shape"])}
            for spec in self.inputs
        )
        symbolic = sizes_stay_symbolic(self.loaded.contents, self.loaded.file, self.math)
        answers: list[Any] = []
        with symbolic, answers_kept(answers), own_backwards(self.loaded.file) as applied:
            program = torch.export.export(
                module, tuple(self.examples), dynamic_shapes=(shapes,), strict=False
            )
        program = with_pairs(program, differentiated=self.setting.backward)
        table = decompositions(self.setting.keep)
        updated = [names[place] for place in written_copies(program)]
        squeezed, sliced = tuple(kept_by_squeezing(program)), tuple(least_for_slices(program))
        if not self.setting.backward:
            program = program.run_decompositions(table)
            return Exported(program, module.returned, updated, squeezed, sliced, tuple(answers))
        extent = self._sizes(program).extent(self.setting.largest)
        with_gradients = self._joint(program, table, extent, module, applied)
        without_lines(with_gradients)
        saved = saved_by(with_gradients, extent)
        return Exported(with_gradients, module.returned, updated, squeezed, sliced, tuple(answers), saved)

    def _joint(
        self, program: ExportedProgram, table: Table, extent: Extent, module: ExportedCall, applied: list[str]
    ) -> ExportedProgram:
        """The program with gradients; those of `applied` Functions are what their own backward computes.

        Raises OwnBackward where that cannot be traced.
        """
        if not applied:
            return joint(program, table, extent)
        try:
            with sizes_stay_symbolic(self.loaded.contents, self.loaded.file, self.math):
                return joint(program, table, extent, module)
        except MutatesArguments:
            raise
        except Exception as problem:
            why = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            raise OwnBackward(f"the backward of {applied[0]} cannot be traced: {why}") from problem


def guards_of(sizes: Sizes, exported: Exported) -> Iterator[str]:
    """The conditions on sizes under which the program is that of a call."""
    yield from sizes.guards()
    yield from sizes.not_below(exported.sliced)
    yield from sizes.told_from_one(exported.answers)
    yield from sizes.not_one(exported.squeezed)


def own_memory(loaded: Loaded) -> dict[str, torch.Tensor]:
    """The state with buffers apart from the module's own: torch.export cannot decompose what writes to an
    argument whose memory another one has."""
    trained = parameter_names(loaded)
    return {n: value if n in trained else value.clone() for n, value in loaded.state.items()}


def line_in(file: Path, problem: Exception) -> int | None:
    """The last line of the file on the way to where it was raised."""
    frames = traceback.walk_tb(problem.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == str(file)]
    return lines[-1] if lines else None


def described(name: str, tensor: torch.Tensor) -> dict[str, Any]:
    """A parameter or buffer as an input whose shape is fixed."""
    shape = list(tensor.shape)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"name": name, "dtype": dtype, "shape": [str(n) for n in shape], "traced": shape}


def as_long_as(size: tracing.TracedSize) -> dict[str, Any]:
    """A tensor that has the size as its only one."""
    return {"name": size.name, "dtype": "bool", "shape": [size.size], "traced": [size.traced]}


def example(spec: Mapping[str, Any]) -> torch.Tensor:
    """A small tensor to trace with; its values do not matter."""
    dtype = getattr(torch, spec["dtype"])
    if dtype.is_floating_point:
        return torch.randn(spec["traced"]).to(dtype)
    return torch.zeros(spec["traced"], dtype=dtype)
