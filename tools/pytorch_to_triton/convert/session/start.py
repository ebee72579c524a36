"""Opening a session: the target is traced and understood, and a stage-1 file lies ready to be edited.

Where nothing can be drafted, that file says all that is known, and has a kernel to be written.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.benchmark.roofline import limit_of, work_of
from pytorch_to_triton.convert.cuts.parts_file import CutOrigin
from pytorch_to_triton.convert.example import as_called
from pytorch_to_triton.convert.resolve import ResolvedTarget, resolve
from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, Setting, new_folder
from pytorch_to_triton.draft.file.lines import WIDTH
from pytorch_to_triton.draft.file.module import Drafted, declarations
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.hardware.datasheets import datasheet
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.inputs.listed_values import phrase
from pytorch_to_triton.inputs.option_text import option_of_value
from pytorch_to_triton.inputs.packed_input import written
from pytorch_to_triton.inputs.timing_dims import filled_in
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    NonFinite,
    ScalarRef,
    Shape,
    SizeRef,
)
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import ConversionSession, Understanding

TECHNIQUES: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("scaled_dot_product",), "flash_attention", ("attention", "pipelining", "stability")),
    (("mm", "matmul", "linear", "einsum"), "matmul_bias_activation", ("matmul", "pipelining", "fusion")),
    (("conv",), "matmul_bias_activation", ("matmul", "pipelining")),
    (("nll_loss", "cross_entropy"), "cross_entropy", ("reductions", "stability")),
    (("log_softmax", "logsumexp"), "logsumexp", ("reductions", "stability")),
    (("softmax",), "softmax", ("reductions", "stability")),
    (("layer_norm", "group_norm", "batch_norm", "var"), "layer_norm", ("reductions", "stability")),
    (("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), "cumulative_sum", ("reductions",)),
    (("topk", "sort"), "grouped_top_k", ("reductions", "masks")),
    (("argmax", "argmin"), "argmax", ("reductions",)),
    (("embedding", "index", "gather", "scatter"), "embedding", ("masks", "memory_access")),
    (("dropout", "bernoulli", "rand"), "dropout", ("fusion",)),
    (("mean", "rsqrt"), "rms_norm", ("reductions", "stability")),
    (("sum", "amax", "amin", "norm"), "column_sum", ("reductions",)),
    (("silu", "sigmoid"), "swiglu", ("fusion", "memory_access")),
    (("gelu", "tanh"), "bias_gelu", ("fusion", "memory_access")),
)
"""Parts of operators' names; the reference kernel and the guides whose techniques they want."""
PLAIN = ((), "vector_add", ("masks", "memory_access", "fusion"))
MOST_READ = 6


def understanding_of(target: ResolvedTarget, drafted: Drafted | None, why: str) -> Understanding:
    """Of a target; `why` there is no draft."""
    graph, declaration = target.graph, target.declaration
    known = Understanding(
        function=target.description.name,
        inputs=(*declared_inputs(declaration), *state_of(target)),
        guards=target.origin.holds_where if target.origin else (),
        compared=(*(f"{each}, as declared" for each in declaration.unordered), *free_choices(graph)),
        kernels=tuple(f"{kernel.name}: {kernel.doc}" for kernel in drafted.kernels) if drafted else (),
        no_draft=why,
        read=read_first([node.op for node in graph.nodes] if graph else []),
    )
    if isinstance(target.origin, CutOrigin):
        cut = target.origin.cut
        return known.model_copy(update={"steps": cut.notes, "calls": cut.left_to_pytorch})
    if graph is None:
        return known
    constants = (
        f"{name} = {phrase(graph.listed.get(name) or (graph.constants[name],))}"
        for name in graph.fixed
        if name in graph.constants
    )
    defaults = (
        f"{name} = {default}, its default; declare it as an input for another value"
        for name, default in target.undeclared_defaults.items()
    )
    added = {
        "frozen": (*constants, *defaults),
        "steps": tuple(step_of(node) for node in graph.nodes),
        "calls": tuple(dict.fromkeys(drafted.left)) if drafted else (),
        "work": "; ".join(filter(None, (work_text(graph, case.dims) for case in target.timing_cases()))),
        "gradients": gradients_of(graph, backward=target.request.backward),
    }
    return known.model_copy(update=added)


TOP_K = "aten.topk.default"
CHOOSING = (
    TOP_K,
    *(f"aten.{n}" for n in ("sort.default", "kthvalue.default", "median.dim", "nanmedian.dim")),
)
"""Operators that leave it free which of equal values they take."""


def free_choices(graph: Graph | None) -> Iterator[str]:
    """What PyTorch leaves free in the target: comparisons follow the kernel's own choice there."""
    for node in graph.nodes if graph else ():
        if node.op in CHOOSING:
            sorted_ = node.args[4:5] or (node.kwargs.get("sorted"),)
            is_free = node.op == TOP_K and isinstance(sorted_[0], Literal_) and sorted_[0].value is False
            order = ", in any order" if is_free else ""
            where = f", line {node.line}" if node.line else ""
            yield f"{node.op.split('.')[1]}: any of equal values{order}{where}"


def state_of(target: ResolvedTarget) -> Iterator[str]:
    """A module's parameters and buffers, those that its trace has where there is one."""
    if target.graph is None:
        yield from (f"{t.name}: {t.dtype}{list(t.shape)}, of the module" for t in target.description.state)
        return
    for tensor in target.graph.inputs:
        if tensor.name in target.graph.state:
            yield f"{tensor.name}: {tensor.dtype}{shape_text(tensor.shape)}, of the module"


def declared_inputs(declaration: Declaration) -> Iterator[str]:
    """Each input as one writes it."""
    for name, value in written(declaration.inputs).items():
        yield f"{name}: {option_of_value(value) if isinstance(value, str | dict | list) else repr(value)}"


def step_of(node: Node) -> str:
    """One operator call as a line."""
    arguments = [argument_text(a) for a in node.args]
    arguments += [f"{key}={argument_text(a)}" for key, a in node.kwargs.items()]
    result = f" -> {node.dtype}{shape_text(node.shape)}" if node.shape is not None else ""
    where = f", line {node.line}" if node.line else ""
    return f"{node.name} = {node.op}({', '.join(arguments)}){result}{where}"


def shape_text(shape: Shape) -> str:
    return f"[{', '.join(shape.expressions)}]"


def argument_text(argument: NodeArgument) -> str:
    match argument:
        case NodeRef() | ScalarRef():
            return argument.name
        case SizeRef():
            return argument.label or argument.expression
        case Literal_() | NonFinite():
            return str(argument.value)
        case ArgumentList():
            return f"[{', '.join(argument_text(item) for item in argument.items)}]"


def work_text(graph: Graph, dims: Mapping[str, int], gpu: str = "H100 SXM") -> str:
    """Bytes and operations at the sizes that are timed; the least time by a data sheet."""
    dtypes = {i.name: i.dtype for i in graph.inputs}
    work = work_of(graph, dims, dtypes, None)
    if work is None:
        return ""
    count = sum(work.flops.values())
    text = f"at {point_name(dims)}: {work.bytes_moved:,} bytes, {count:,} floating-point operations"
    sheet = datasheet(gpu)
    limit = limit_of(work, sheet.ceilings, tf32=False)
    if limit is None:
        return text
    return f"{text}, at least {max(limit.bytes_ms, limit.flops_ms):.4f} ms on an {gpu}, by its data sheet"


def gradients_of(graph: Graph, *, backward: bool) -> str:
    """Whether the session has a backward pass, and what a module trains."""
    if backward:
        return "the backward pass is part of the session, and validated in every stage"
    trained = f"; the module's {', '.join(graph.state)} may be trained" if graph.state else ""
    return (
        "no backward pass: the finished function leaves calls that want gradients to PyTorch"
        f"{trained}; a session that is started with backward has one"
    )


def read_first(operators: Sequence[str]) -> tuple[str, ...]:
    """Reference kernels and guides for these operators, those that the most particular ones want first."""
    rows = [row for row in TECHNIQUES if any(part in op for op in operators for part in row[0])] or [PLAIN]
    kernels = places.shipped("reference_kernels")
    pages = [
        page
        for _, kernel, guides in rows
        for page in (str(kernels / f"{kernel}.py"), *(f"guides/{guide}" for guide in guides))
    ]
    return tuple(dict.fromkeys(pages))[:MOST_READ]


STEPS = 40
"""At most this many are repeated in the file."""


def blank(
    understood: Understanding,
    reference: Reference | None,
    parameters: Sequence[str],
    tensors: Sequence[str],
    declared: Mapping[str, object],
) -> str:
    """A kernel file that says what is to be computed, and raises until somebody has written it.

    `parameters` are those of `run`, of which `tensors` go to the kernel; without a `reference` of its own the
    file is checked against the session's target all the same.
    """
    name, inputs = snake(understood.function), "\n".join(f"    {line}" for line in understood.inputs)
    imports = {"import torch", "import triton", "import triton.language as tl"}
    if reference is not None:
        imports |= set(reference.imports)
    signature = reference.parameters if reference is not None else ", ".join(parameters)
    pointers = "".join(f"    {tensor}_ptr,\n" for tensor in tensors)
    blocks = [
        f'"""{understood.function} in Triton, stage 1 of 3: to be written.\n\n{inputs}\n"""',
        "\n".join(sorted(imports)),
        declarations(declared),
        *([*reference.definitions] if reference is not None else []),
        f"@triton.jit\ndef {name}_kernel(\n"
        f"{pointers}    out_ptr,\n    n_elements,\n    BLOCK: tl.constexpr,\n):\n"
        '    """Write the kernel here: which part of the result a program computes, and from what."""\n'
        "    pass",
        f"def run({signature}):\n"
        '    """The same as `reference`: allocate the result, launch the kernel, return it."""\n'
        f"{remarks(understood)}"
        f'    raise NotImplementedError("write {name}_kernel and launch it here")',
    ]
    head, body = blocks[:3], blocks[3:]
    return "\n\n".join(block for block in head if block) + "\n\n\n" + "\n\n\n".join(body) + "\n"


def remarks(understood: Understanding) -> str:
    """Why there is no draft, and the graph in words, as comments in `run`."""
    shown = [*understood.steps[:STEPS]]
    if len(understood.steps) > STEPS:
        shown.append(f"and {len(understood.steps) - STEPS} more operators")
    texts = [understood.no_draft, *(["PyTorch computes, in order:"] if shown else []), *shown]
    lines = [line for text in texts for line in textwrap.wrap(text, WIDTH - 6) or [""]]
    return "".join(f"    # {line}\n" for line in lines)


async def start(
    worker: WorkerClient,
    setting: Setting,
    into: Path | None,
    runtime: Runtime,
) -> ConversionSession:
    """Open a session in a new folder; its inputs come from a call that an example makes, where one is named.

    Raises BadInput as `resolve` does, for a folder in use, and where the example does not call the target.
    """
    setting, notes = await as_called(worker, setting, runtime)
    target = await resolve(worker, setting, runtime)
    notes += tuple(filter(None, [filled_in(setting.points, target.request.points)]))
    setting = setting.model_copy(update={"points": target.request.points})
    try:
        drafted, why = target.convertible().drafted(1, PURE), ""
    except NotConvertible as refusal:
        # A draft that fails is told by its message alone, what was never traced with what to do about it.
        drafted, why = None, refusal.message if target.origin else f"{refusal.message} {refusal.hint}"
    understood = understanding_of(target, drafted, why)
    text = drafted.text if drafted else blank_of(target, understood)
    # A kernel file's reference is called `reference`, as in every other.
    name = understood.function if setting.target.name else setting.target.path.stem
    folder = SessionFolder(new_folder(into, snake(name)))
    places.write_atomically(folder.file(1), text)
    record = SessionRecord(
        setting=setting,
        target_digest=digest_of_file(setting.target.path),
        understood=understood,
        drafted={1: digest(text)} if drafted else {},
        put={1: digest(text)},
        allowed=tuple(dict.fromkeys(drafted.calls)) if drafted else (),
    )
    folder.write(record)
    return session_of(folder, "started", notes)


def blank_of(target: ResolvedTarget, understood: Understanding) -> str:
    """The file to be written by hand."""
    description, inputs = target.description, target.declaration.inputs
    tensors = [name for name, spec in inputs.items() if isinstance(spec, TensorSpec)]
    state = [tensor.name for tensor in description.state]
    parameters = [p.name for p in description.parameters if not p.variadic]
    return blank(understood, target.reference(), [*parameters, *state], [*tensors, *state], target.declared())


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
