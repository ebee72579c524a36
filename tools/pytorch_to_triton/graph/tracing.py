"""From a target to its graph: at which sizes and dtypes it is traced, and what the traces mean."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import JsonValue

from pytorch_to_triton.errors import NotConvertible, Refusal
from pytorch_to_triton.graph.dtype_choices import choices_of, with_choices
from pytorch_to_triton.graph.dtype_rules import (
    DtypeRule,
    Dtypes,
    all_dtypes,
    deciding_dtype,
    dtype_combinations,
    dtype_source,
    input_dtypes,
    phrase,
    tensors_of_one_dtype,
)
from pytorch_to_triton.graph.joint import Backward, backward_half, forward_half, with_shared_gradients
from pytorch_to_triton.graph.operators import KEPT
from pytorch_to_triton.graph.skeleton import (
    TensorDtypes,
    first_difference,
    skeleton,
    tensor_dtypes,
    without_exact_casts,
    without_followed_roundings,
)
from pytorch_to_triton.graph.trace_sizes import SizeKind, joined, kind_of_declared_sizes, trace_dims
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import ConstantSpec
from pytorch_to_triton.jobs.job_channel import Ended
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import TargetProcess, refusal_of, refusal_of_failure, sentence
from pytorch_to_triton.worker.wire import Failure, tracing

ARGUMENT = "{}_dtype"
"""How the backward pass, which need not have the input itself, has its dtype."""

HINTS = {
    "DependsOnValues": "torch.export has to see the whole computation: no data-dependent control flow, no "
    "conversion to Python numbers.",
    "TraceFailed": "The function runs, but torch.export cannot follow it. Convert a part that it can follow.",
    "MutatesArguments": "Write to a copy, `x = x.clone()` in its first line, and return that; without "
    "backward what is written to an argument is drafted.",
    "KeepsState": "Take it as an argument of forward, and return its new value.",
    "OwnBackward": "Convert it without backward, or write what it does with detach(): x.round() whose "
    "gradient is that of x is x + (x.round() - x).detach().",
    "NotRepresentable": "Pass the tensor as an argument.",
    "SizeOfValues": "Keep the shape: torch.where(x > 0, x, 0) in place of x[x > 0].",
    "ReturnsNoTensor": "Return tensors that the function computes, and nothing else.",
}
NEED_VALUES = (HINTS["DependsOnValues"], HINTS["SizeOfValues"])
"""Those where a part of the function may convert."""
FIXED_SIZE = re.compile(r"size of tensor a \(\w+\) must match the size of tensor b \(\w+\)")
FIXED_SIZE_HINT = (
    "A size that a parameter or a constant fixes is a number, not a dim: --input x=float32[M,33] in place of "
    "x=float32[M,N] with N=33."
)


@dataclass(frozen=True)
class Branch:
    """What the target computes in some of the declared dtypes or at some sizes, where that is a program of
    its own."""

    rule: DtypeRule | None
    """The dtype that `run` looks at; None: at none."""
    dtypes: tuple[DType, ...]
    """Those in which it takes this branch."""
    graph: Graph
    output_dtypes: dict[str, str]
    tensor_dtypes: TensorDtypes
    backward: Backward | None = None
    """Its gradients, where they were traced too."""
    sizes: tuple[str, ...] = ()
    """Conditions on sizes under which `run` takes it, where it has taken no branch before."""
    values: tuple[str, ...] = ()
    """The same on constants of which several values are declared."""
    implied: frozenset[str] = frozenset()
    """Guards of its graph that hold where it is taken."""

    @property
    def checked(self) -> tuple[str, ...]:
        """The guards that `run` checks once it has taken it."""
        return tuple(guard for guard in self.graph.guards if guard not in self.implied)


@dataclass(frozen=True)
class Traced:
    """A graph with what only several traces show."""

    graph: Graph
    """As traced in the widest of the declared dtypes."""
    output_dtypes: dict[str, str]
    """Output path -> dtype as source: `x.dtype` where it follows an input, else `torch.float32`."""
    tensor_dtypes: TensorDtypes
    branches: tuple[Branch, ...] = ()
    """Other programs, in dtypes and at sizes that the first is not for; `run` takes the first that fits."""
    backward: Backward | None = None
    """Its gradients, where they were traced too ..."""
    joint: Graph | None = None
    """... and the function with them, as traced in the widest dtypes."""
    implied: frozenset[str] = frozenset()
    """Guards of the graph that hold where no branch is taken."""
    for_other_values: tuple[str, ...] = ()
    """Conditions on sizes under which there is a program for the other values of constants."""

    @property
    def rest(self) -> Branch:
        """The program that `run` takes where it takes no branch."""
        dtypes = self.output_dtypes, self.tensor_dtypes
        return Branch(None, (), self.graph, *dtypes, self.backward, implied=self.implied)

    @property
    def guards(self) -> tuple[str, ...]:
        """All conditions under which the first program, in some dtype, is that of the sizes."""
        own = (branch for branch in self.branches if not branch.sizes and not branch.values)
        graphs = (self.graph, *(branch.graph for branch in own))
        return tuple(dict.fromkeys(guard for graph in graphs for guard in graph.guards))

    @property
    def holds_where(self) -> tuple[str, ...]:
        """The conditions on sizes under which there is a program; empty where there is one for all sizes."""
        left = tuple(guard for guard in self.guards if guard not in self.implied)
        kinds = dict.fromkeys(b.sizes for b in self.branches if b.sizes and not b.values)
        if not all(guard in sizes for guard in left for sizes in kinds):
            left = (" or ".join(joined(sizes) for sizes in (*kinds, self.guards)),)
        return tuple(dict.fromkeys((*left, *self.for_other_values)))


@dataclass(frozen=True)
class TargetTracer:
    """One target at the sizes of its trace."""

    process: TargetProcess
    declaration: Declaration
    backward: bool = False
    """Whether gradients are traced too."""
    kind: SizeKind | None = None
    """At which sizes."""
    part: tracing.PartSource | None = None
    """What of the target's function is traced; None: all of it."""
    listed: frozenset[str] = frozenset()
    """The constants of which other values are traced by themselves."""

    async def traces(self, tried: Sequence[Dtypes]) -> tuple[Graph, list[Graph | str]]:
        """The graph in the first dtypes, and the traces in all of them, where a float argument is a literal.

        In place of a trace that fails the reason. Where the first one fails, sizes are tried that have in
        common what all declared ones have. Raises NotConvertible where it fails there too.
        """
        tensors, dims = self.declaration.tensors(), trace_dims(self.declaration, self.kind)
        inputs = tuple(
            tracing.TracedInput(
                name=name,
                dtypes=tuple(dtypes[name] for dtypes in tried),
                shape=spec.shape,
                traced=spec.shape_at(dims),
            )
            for name, spec in tensors.items()
        )
        request = tracing.TraceRequest(
            inputs=inputs,
            sizes=tuple(
                tracing.TracedSize(name=name, size=spec.size, traced=spec.at(dims))
                for name, spec in self.declaration.sizes().items()
            ),
            constants=_constants(self.declaration),
            listed=self.listed,
            packings={name: p.as_json() for name, p in self.declaration.packings().items()},
            setting=tracing.TraceSetting(
                dims=dict(dims),
                largest={name: max(sizes) for name, sizes in self.declaration.dims.items()},
                keep=frozenset(KEPT),
                backward=self.backward,
            ),
            part=self.part,
        )
        try:
            answer = await self.process.answer(request)
        except Ended as end:
            failure = end.outcome.failure
            if failure is None:
                raise refusal_of(end.outcome, self.process.target) from None
            raise _refusal(failure, self.process.target) from None
        if isinstance(answer, tracing.UntracedItem):
            if self.kind is None and (kind := kind_of_declared_sizes(self.declaration)):
                with suppress(NotConvertible):
                    return await replace(self, kind=kind).traces(tried)
            raise _refusal(answer.failure, self.process.target)
        assert isinstance(answer, tracing.TracedItem)
        traces = [
            Graph.model_validate(trace.graph) if isinstance(trace, tracing.TraceSucceeded) else trace.why
            for trace in answer.traces
        ]
        return Graph.model_validate(answer.graph), traces

    async def bound(self, graph: Graph) -> Graph:
        """The graph of a further trace, with its float arguments distinguished from literals."""
        if any(isinstance(value, float) for value in graph.constants.values()):
            declared = self.declaration.tensors()
            return (await self.traces([{i.name: i.dtype for i in graph.inputs if i.name in declared}]))[0]
        return graph.model_copy(update={"fixed": tuple(graph.constants)})


async def trace(process: TargetProcess, declaration: Declaration, *, backward: bool = False) -> Traced:
    """Trace the target in its declared dtypes, the widest first, to see what follows them.

    With `backward` its gradients too, by all floating-point inputs. Raises NotConvertible where torch cannot
    follow it, or no single dtype decides which program it computes; TargetBroken where it does not run.
    """
    return await traced_by(tracer_of(process, declaration, backward=backward))


def tracer_of(process: TargetProcess, declaration: Declaration, *, backward: bool = False) -> TargetTracer:
    """The tracer of all that is declared."""
    return TargetTracer(process, declaration, backward, listed=frozenset(declaration.listed()))


async def traced_by(tracer: TargetTracer) -> Traced:
    """The same at the sizes of a tracer's kind."""
    target, declaration, backward = tracer.process.target, tracer.declaration, tracer.backward
    declared = {name: spec.dtypes for name, spec in declaration.tensors().items()}
    tried = dtype_combinations(declared)
    graph, answers = await tracer.traces(tried)
    _refuse_failed(target, declared, tried, answers)
    traces = [t for t in answers if isinstance(t, Graph)]
    if not graph.inputs:
        raise NotConvertible(f"{target} takes no tensor.", "Pass the tensors that it computes with.")
    parts = programs(traces)
    chosen = deciding_dtype([[input_dtypes(t) for t in part] for part in parts])
    if chosen is None:
        raise _no_deciding_dtype(parts, declared)
    rule, dtypes = chosen
    graph = graph.model_copy(update={"alike": tensors_of_one_dtype([input_dtypes(t) for t in traces])})
    graphs = [graph, *[await tracer.bound(part[0]) for part in parts[1:]]]
    fixed = dict.fromkeys(name for g in graphs for name in g.fixed)
    of_state = {name: tuple(dict.fromkeys(input_dtypes(t)[name] for t in traces)) for name in graph.state}
    main, *others = (
        _program(rule, d, _merge(g, part, {**declared, **of_state}, tuple(fixed)), part, traces)
        for d, g, part in zip(dtypes, graphs, parts, strict=True)
    )
    joint = graph if backward else None
    return Traced(main.graph, main.output_dtypes, main.tensor_dtypes, tuple(others), main.backward, joint)


def _program(
    rule: DtypeRule, dtypes: tuple[DType, ...], graph: Graph, part: Sequence[Graph], traces: Sequence[Graph]
) -> Branch:
    """One of the programs that the target is, its gradients apart where they were traced too."""
    branch = Branch(rule, dtypes, graph, output_dtypes(part, traces), tensor_dtypes(part))
    return _in_halves(branch, part) if graph.joint else branch


def _in_halves(joint: Branch, traces: Sequence[Graph]) -> Branch:
    """The function and its gradients apart."""
    assert joint.graph.joint is not None
    if not joint.graph.joint.gradients:
        raise NotConvertible(
            f"No result of `{joint.graph.function}` has a gradient by an input.",
            "Convert it without backward.",
        )
    dtypes = output_dtypes(traces, traces, ARGUMENT)
    forward = forward_half(joint.graph)
    backward = with_shared_gradients(backward_half(joint.graph), dtypes)
    cotangents = joint.graph.joint.cotangents
    gradients = Backward(
        backward,
        tuple(i.name for i in backward.inputs if i.name not in cotangents),
        cotangents,
        joint.graph.joint.gradients,
        dtypes,
        tensor_dtypes(traces, ARGUMENT),
    )
    return replace(joint, graph=forward, backward=gradients)


async def graph_of(process: TargetProcess, declaration: Declaration, *, backward: bool = False) -> Graph:
    """The target's graph in the widest declared dtypes, with `backward` the joint one. Raises as `trace`."""
    declared = {name: spec.dtypes for name, spec in declaration.tensors().items()}
    first = dtype_combinations(declared)[:1]
    return (await TargetTracer(process, declaration, backward).traces(first))[0]


def programs(traces: Sequence[Graph]) -> list[list[Graph]]:
    """The traces that compute the same together, up to numbers that `run` can choose; the first's first."""
    skeletons = [skeleton(t) for t in traces]
    outlined = _groups_of(traces, [s.outline for s in skeletons])
    exact = _groups_of(traces, [s.calls for s in skeletons])
    return [
        part
        for whole in outlined
        for part in ([whole] if choices_of(whole) is not None else [e for e in exact if e[0] in whole])
    ]


def _groups_of(traces: Sequence[Graph], keys: Sequence[Hashable]) -> list[list[Graph]]:
    groups: dict[Hashable, list[Graph]] = {}
    for graph, key in zip(traces, keys, strict=True):
        groups.setdefault(key, []).append(graph)
    return list(groups.values())


def _merge(
    graph: Graph, traces: Sequence[Graph], declared: Mapping[str, tuple[DType, ...]], fixed: tuple[str, ...]
) -> Graph:
    """The graph of one program, for all dtypes in which it was traced."""
    exact = without_followed_roundings(graph, [skeleton(t) for t in traces])
    merged = without_exact_casts(with_choices(exact, traces))
    inputs = tuple(i.model_copy(update={"dtypes": declared.get(i.name, (i.dtype,))}) for i in merged.inputs)
    return merged.model_copy(update={"inputs": inputs, "fixed": fixed})


def _refuse_failed(
    target: Target,
    declared: Mapping[str, tuple[DType, ...]],
    tried: Sequence[Dtypes],
    answers: Sequence[Graph | str],
) -> None:
    """Raises NotConvertible for a declared dtype that cannot be traced; a mixture may fail."""
    for dtypes, answer in zip(tried, answers, strict=True):
        sets = {name: frozenset(dtypes) for name, dtypes in declared.items()}
        mixed = len({(sets[name], dtype) for name, dtype in dtypes.items()}) > len(set(sets.values()))
        if isinstance(answer, str) and not mixed:
            raise NotConvertible(
                f"{target} cannot be traced in {phrase(dtypes, declared)}: {answer}",
                "Declare only dtypes that the function takes.",
            )


def _no_deciding_dtype(
    parts: Sequence[Sequence[Graph]], declared: Mapping[str, tuple[DType, ...]]
) -> NotConvertible:
    main, other = parts[0][0], parts[1][0]
    call = first_difference(skeleton(main), skeleton(other))
    here, there = (phrase(input_dtypes(g), declared) for g in (other, main))
    return NotConvertible(
        f"`{main.function}` computes something else in {here} than in {there} ({call}), and no single dtype "
        "decides which.",
        "Declare one dtype for each input and convert once for each.",
    )


def output_dtypes(
    part: Sequence[Graph], traces: Sequence[Graph], written: str = "{}.dtype"
) -> dict[str, str]:
    """Each output's dtype as source for one program, by a rule for all `traces` where there is one.

    `written` is how the source has the dtype of an input.
    """
    result = {}
    for output in part[0].outputs:
        alike = [t for t in traces if output.path in {o.path for o in t.outputs}]
        source = _dtype_of(output.path, alike, written) or _dtype_of(output.path, part, written)
        if source is None:
            dtypes = dict.fromkeys(_output_dtype(t, output.path) for t in part)
            raise NotConvertible(
                f"{output.path} is {' or '.join(dtypes)}, which no promotion of input dtypes explains.",
                "Declare one dtype for each input and convert once for each.",
            )
        result[output.path] = source
    return result


def _dtype_of(path: str, traces: Sequence[Graph], written: str) -> str | None:
    return dtype_source([_output_dtype(t, path) for t in traces], [input_dtypes(t) for t in traces], written)


def _output_dtype(graph: Graph, path: str) -> DType:
    return all_dtypes(graph)[next(o.name for o in graph.outputs if o.path == path)]


def _constants(declaration: Declaration) -> dict[str, JsonValue]:
    constants = {n: s.value for n, s in declaration.inputs.items() if isinstance(s, ConstantSpec)}
    return {n: list(v) if isinstance(v, tuple) else v for n, v in constants.items()}


def _refusal(failure: Failure, target: Target) -> Refusal:
    if failure.type == "TraceFailed" and FIXED_SIZE.search(failure.message):
        return NotConvertible(sentence(f"{target} cannot be traced: {failure.message}"), FIXED_SIZE_HINT)
    if failure.type in HINTS:
        return NotConvertible(sentence(f"{target} cannot be traced: {failure.message}"), HINTS[failure.type])
    return refusal_of_failure(failure)
