"""The drafted torch.autograd.Function: what is computed, what is saved, and its gradients from that."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pytorch_to_triton.draft.file import run as runs
from pytorch_to_triton.draft.file.checks import names_in
from pytorch_to_triton.draft.file.lines import wrapped
from pytorch_to_triton.draft.file.needed import Positions, where_needed
from pytorch_to_triton.draft.file.part import (
    RESERVED,
    DraftSetting,
    Part,
    computed,
    part_of,
    programmed,
    snake,
)
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.fresh_names import underscored
from pytorch_to_triton.draft.program import SAVED
from pytorch_to_triton.draft.schedule.conditions import strictest
from pytorch_to_triton.draft.storage import full, with_storage
from pytorch_to_triton.graph.joint import Backward, with_names
from pytorch_to_triton.graph.skeleton import TensorDtypes
from pytorch_to_triton.graph.tracing import ARGUMENT
from pytorch_to_triton.schema.graph import Graph, GraphOutput
from pytorch_to_triton.worker.wire.packing import Packing


@dataclass(frozen=True)
class Halves:
    """Function and gradients, drafted."""

    forward: Part
    saved: tuple[str, ...]
    """What is saved, as source of the forward half."""
    backward: Part
    names: tuple[str, ...]
    """What is saved, by its names in the backward half."""
    gradients: Backward


def with_saved(graph: Graph, backward: Backward) -> Graph:
    """The function that also returns what it computes for its gradients."""
    made = {n.name for n in graph.nodes}
    saved = tuple(GraphOutput(path=f"{SAVED}{n}", name=n) for n in backward.saved if n in made)
    return graph.model_copy(update={"outputs": (*graph.outputs, *saved)})


def dtypes_with_saved(
    graph: Graph, backward: Backward, dtypes: TensorDtypes, outputs: Mapping[str, str]
) -> dict[str, str]:
    """The dtypes of all that it returns, as source; what is saved has PyTorch's own."""
    plain = {n.name: full(n.dtype) for n in graph.nodes if n.dtype}
    saved = {f"{SAVED}{n}": dtypes.own.get(n, plain.get(n, "")) for n in backward.saved}
    return {**outputs, **saved}


def halves(forward: Part, backward: Backward, setting: DraftSetting) -> Halves:
    """The gradients beside the drafted function, which returns what they need."""
    program = forward.program
    found = {r.node: runs.result_text(program, r) for r in program.results if r.path.startswith(SAVED)}
    saved = {name: found.get(name, name) for name in backward.saved}
    backward = with_names(backward, {name: text for name, text in saved.items() if text.isidentifier()})
    dtypes = {ARGUMENT.format(i.name) for i in program.graph.inputs}
    gradient = programmed(backward.graph, setting.ways, setting.points, RESERVED | dtypes)
    stored = with_storage(gradient, backward.tensor_dtypes, backward.output_dtypes)
    part = part_of(stored, setting)
    part = where_needed(part, asked(part, program.graph, backward))
    # An operator may take a tensor only to know whether its gradient is wanted.
    used = loads([*body(part), *returned(part)])
    read = {name: text for name, text in zip(backward.saved, saved.values(), strict=True) if name in used}
    results = tuple(r for r in program.results if not r.path.startswith(SAVED))
    limits = strictest((*forward.limits, *part.limits))
    forward = replace(forward, program=replace(program, results=results), limits=limits)
    return Halves(forward, tuple(read.values()), replace(part, limits=()), tuple(read), backward)


def asked(part: Part, graph: Graph, backward: Backward) -> dict[str, Positions]:
    """The gradients as source, with the tensors that they are for by their places among the arguments."""
    texts = {r.path: runs.cast_text(part.program, r) for r in part.program.results}
    found: dict[str, Positions] = {}
    for n, tensor in enumerate(graph.inputs):
        if (text := texts.get(backward.gradients.get(tensor.name, ""))) is not None:
            found[text] = found.get(text, frozenset()) | {n}
    return found


def class_name(graph: Graph, reference: Reference, suffix: str = "") -> str:
    """`RmsNormFunction` for rms_norm, `RmsNormBfloat16Function` of one dtype."""
    words = re.sub(r"\W", "_", snake(graph.function) + suffix).split("_")
    return underscored("".join(w.title() for w in words) + "Function", names_in(reference))


def applied(halves: Halves, name: str) -> list[str]:
    """The last line of `run`."""
    call = f"{name}.apply({', '.join(arguments(halves))})"
    graph, results = halves.forward.program.graph, halves.forward.program.results
    paths = tuple(r.path for r in results)
    if graph.result in ("out", Packing(kind="tuple", items=paths)):
        return [f"return {call}"]
    names = [f"out_{i}" for i in range(len(paths))] if isinstance(graph.result, Packing) else ["out"]
    packed = runs.packed(graph, dict(zip(paths, names, strict=True)))
    return [f"{_tuple(names)} = {call}", f"return {packed}"]


def arguments(halves: Halves) -> list[str]:
    """What the function takes: all tensors, then the numbers that either half computes with."""
    graph = halves.forward.program.graph
    used = loads([*body(halves.forward), *body(halves.backward), *returned(halves.backward)])
    chosen = {c.name for c in graph.choices}
    numbers = [n for n in graph.constants if n in used and n not in chosen]
    return [*(i.name for i in graph.inputs), *graph.sizes, *numbers]


def function_class(halves: Halves, name: str) -> list[str]:
    """The source of the class."""
    return [
        f"class {name}(torch.autograd.Function):",
        f'    """Saves {", ".join(halves.saved) or "nothing"} for the backward pass."""',
        "",
        "    @staticmethod",
        f"    def forward(ctx, {', '.join(arguments(halves))}):",
        *(f"        {line}" for line in _forward(halves)),
        "",
        "    @staticmethod",
        "    @torch.autograd.function.once_differentiable",
        f"    def backward(ctx, {', '.join(_given(halves))}):",
        *(f"        {line}" for line in _backward(halves)),
    ]


def _forward(halves: Halves) -> list[str]:
    program = halves.forward.program
    graph = program.graph
    inside = body(halves.forward)
    kept = carried(halves)
    texts = {r.path: runs.cast_text(program, r) for r in program.results}
    used = loads([*inside, *texts.values()]) | set(kept["sizes"])
    without = [t for path, t in texts.items() if path not in halves.gradients.cotangents.values()]
    return [
        *runs.dims(graph, used),
        *runs.shape_checks(graph),
        *_device(inside, graph.inputs[0].name),
        *runs.on_its_device(graph, inside),
        *([f"ctx.save_for_backward({', '.join(halves.saved)})"] if halves.saved else []),
        *(f"ctx.{kind} = {_tuple(source(names))}" for kind, names in kept.items() if names),
        *([f"ctx.mark_non_differentiable({', '.join(without)})"] if without else []),
        f"return {', '.join(texts.values())}{',' if graph.result != 'out' and len(texts) == 1 else ''}",
    ]


def _backward(halves: Halves) -> list[str]:
    program = halves.backward.program
    inside = body(halves.backward, known=_in_order(halves))
    texts = {r.path: runs.cast_text(program, r) for r in program.results}
    paths = halves.gradients.gradients
    given = [texts.get(paths.get(name, ""), "None") for name in arguments(halves)]
    return [
        *([f"{_tuple(halves.names)} = ctx.saved_tensors"] if halves.names else []),
        *(f"{_tuple(names)} = ctx.{kind}" for kind, names in carried(halves).items() if names),
        *_device(inside, _given(halves)[0]),
        *inside,
        *wrapped(f"grads = {_tuple(given)}"),
        "return tuple(g if needed else None for g, needed in zip(grads, ctx.needs_input_grad))",
    ]


def carried(halves: Halves) -> dict[str, list[str]]:
    """What the gradients need beside tensors, by kind."""
    graph = halves.forward.program.graph
    used = loads([*body(halves.backward), *returned(halves.backward)])
    return {
        "sizes": [n for n in graph.dims if n in used],
        "constants": [n for n in graph.constants if n in used],
        "dtypes": [n for i in graph.inputs if (n := ARGUMENT.format(i.name)) in used],
    }


def source(names: Sequence[str]) -> list[str]:
    """The same in the forward half, which has the inputs: `x.dtype` for `x_dtype`."""
    ending = ARGUMENT.format("")
    return [f"{n.removesuffix(ending)}.dtype" if n.endswith(ending) else n for n in names]


def _in_order(halves: Halves) -> set[str]:
    """What is saved and lies in order: what the forward half's kernels store, or read."""
    program = halves.forward.program
    made = {n for n, text in zip(halves.names, halves.saved, strict=True) if text in program.steps}
    return made | set(runs.read_in_order(program, halves.forward.items))


def body(part: Part, known: Collection[str] = ()) -> list[str]:
    return [line for lines in computed(part, known) for line in lines]


def returned(part: Part) -> list[str]:
    """The results as source."""
    return [runs.cast_text(part.program, r) for r in part.program.results]


def loads(lines: Sequence[str]) -> set[str]:
    """The names in statements."""
    return {n.id for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, ast.Name)}


def _given(halves: Halves) -> list[str]:
    """The gradients that backward is given, one for each result."""
    by_path = {path: name for name, path in halves.gradients.cotangents.items()}
    return [by_path.get(r.path, f"_{i}") for i, r in enumerate(halves.forward.program.results)]


def _device(lines: Sequence[str], tensor: str) -> list[str]:
    return [f"device = {tensor}.device"] if "device" in loads(lines) else []


def _tuple(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else ", ".join(items)
