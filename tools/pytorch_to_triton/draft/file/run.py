"""The drafted `run`: what it checks, where its sizes come from, and what it returns."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from pytorch_to_triton.draft.file.calls import in_dtype
from pytorch_to_triton.draft.file.lines import WIDTH, tuple_text
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.groups import Group
from pytorch_to_triton.draft.ir.values import Load
from pytorch_to_triton.draft.program import Call, Program, Result
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.expression import other_factor, quotient
from pytorch_to_triton.inputs.listed_values import is_none_of, phrase
from pytorch_to_triton.schema.dtype import source_of
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.worker.wire.packing import Packing


def guards(graph: Graph) -> list[str]:
    """Constants that shaped the trace have the values they had."""
    lines = []
    for name in graph.fixed:
        value = graph.constants[name]
        given = f"tuple({name})" if isinstance(value, tuple) else name  # The caller's may be a list.
        values = graph.listed.get(name, ())
        differs = is_none_of(name, values) if values else _differs(given, source_of(value))
        says = f"drafted for {name}={phrase(values or (value,))}, not ".replace("{", "{{").replace("}", "}}")
        quoted = json.dumps(says, ensure_ascii=False).removesuffix('"')
        lines += [f"if {differs}:", f'    raise ValueError(f{quoted}{{{name}!r}}")']
    return lines


def _differs(name: str, value: str) -> str:
    if isinstance(ast.parse(value, mode="eval").body, ast.Call):
        return f"repr({name}) != repr({value})"  # A tensor, or NaN, is not equal to itself.
    return f"{name} {'is not' if value in ('None', 'True', 'False') else '!='} {value}"


def defaults(graph: Graph, reference: Reference) -> list[str]:
    """Arguments that were not declared keep their defaults."""
    arguments = ast.parse(f"def run({reference.parameters}): ...").body[0]
    assert isinstance(arguments, ast.FunctionDef)
    spec = arguments.args
    given = {i.name for i in graph.inputs} | {*graph.constants, *graph.sizes, *graph.packings}
    positional = [*spec.posonlyargs, *spec.args]
    pairs = [
        *zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True),
        *((a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None),
    ]
    lines = []
    for argument, default in pairs:
        if argument.arg not in given:
            name, value = argument.arg, ast.unparse(default)
            lines += [
                f"if {_differs(name, value)}:",
                f'    raise ValueError(f"drafted for the default {name}, not {{{name}!r}}")',
            ]
    return lines


def dims(graph: Graph, used: Collection[str]) -> list[str]:
    """Every dim out of a tensor's shape, or a number that is passed.

    Raises NotConvertible where a used one is neither.
    """
    lines: list[str] = []
    known: set[str] = set()
    for tensor in graph.inputs:
        sizes = tensor.shape.expressions
        fresh = [s for s in sizes if s in graph.dims and s not in known]
        if fresh and len(set(fresh)) == len(sizes) == len(fresh):
            lines.append(f"{', '.join(sizes)}{',' if len(sizes) == 1 else ''} = {tensor.name}.shape")
        else:
            lines += [f"{s} = {tensor.name}.shape[{sizes.index(s)}]" for s in dict.fromkeys(fresh)]
        known |= set(fresh)
    for name, size in graph.sizes.items():
        if size in graph.dims and size not in known:
            lines += [f"{size} = {name}"] if size != name else []
            known.add(size)
    given = [
        (f"{t.name}.shape[{at}]", size) for t in graph.inputs for at, size in enumerate(t.shape.expressions)
    ]
    for source, size in (*given, *graph.sizes.items()):
        if (product := other_factor(size, known)) and product[0] in graph.dims:
            dim, factor = product
            lines.append(f"{dim} = {quotient(source, factor)}")
            known.add(dim)
    missing = (set(used) & set(graph.dims)) - known
    if missing:
        raise NotConvertible(
            f"The dim {min(missing)} is no tensor's size and no argument, so `run` cannot find it.",
            "Declare the shapes so that each dim is the size of some tensor, or a multiple of it.",
        )
    return lines


def shape_checks(graph: Graph) -> list[str]:
    """Shapes that the kernels rely on, checked for every tensor that does not itself define its dims."""
    lines = []
    defined: set[str] = set()
    for tensor in graph.inputs:
        sizes = tensor.shape.expressions
        if len({*sizes}) < len(sizes) or any(s not in graph.dims or s in defined for s in sizes):
            name, shape = tensor.name, tuple_text(sizes)
            lines.append(f'assert {name}.shape == {shape}, f"{name}: {{tuple({name}.shape)}}"')
        defined |= set(sizes)
    for name, size in graph.sizes.items():
        if size not in graph.dims or size in defined:
            lines.append(f'assert {name} == {size}, f"{name}: {{{name}}}"')
        defined.add(size)
    return lines


def on_its_device(graph: Graph, lines: Sequence[str]) -> list[str]:
    """Triton launches on the current device, which need not be that of the tensors."""
    return [f"with torch.cuda.device_of({graph.inputs[0].name}):", *(f"    {line}" for line in lines)]


def contiguous(program: Program, items: Sequence[Group | Call], known: Collection[str] = ()) -> list[str]:
    """Tensors that kernels read as if they lay in order; those that are `known` do."""
    tensors = [name for name in read_in_order(program, items) if name not in known]
    if not tensors:
        return []
    line = f"{', '.join(tensors)} = {', '.join(f'{t}.contiguous()' for t in tensors)}"
    return [line] if len(line) <= WIDTH else [f"{t} = {t}.contiguous()" for t in tensors]


def read_in_order(program: Program, items: Sequence[Group | Call]) -> list[str]:
    """The inputs that kernels read, and those returned: a function's own contiguous() is not in its trace."""
    read = {v.buffer.name for g in items if isinstance(g, Group) for v in g.cluster.loads()}
    values = (program.tensors[result.node].value for result in program.results)
    read |= {value.buffer.name for value in values if isinstance(value, Load)}
    return [i.name for i in program.graph.inputs if i.name in read and len(i.shape)]


def returned(program: Program, written: Mapping[str, str]) -> str:
    """The statement that gives the results as the function does; empty where it gives none.

    `written` are names of arguments by the nodes that are their value: those are returned themselves.
    """
    values = {
        r.path: written.get(r.node) or cast_text(program, r)
        for r in program.results
        if r.path not in program.graph.written.values()
    }
    return f"return {packed(program.graph, values)}" if values else ""


def packed(graph: Graph, values: Mapping[str, str]) -> str:
    """The source of the function's result; `values` are those of its outputs, by path."""
    if isinstance(graph.result, str):
        return values[graph.result]
    text = graph.result.made_of(values)
    is_plain = graph.result.kind == "tuple" and not graph.result.type
    return text[1:-1] if is_plain and len(graph.result.items) else text


def unpacked(graph: Graph) -> list[str]:
    """What parameters hold, by names of its own, once they hold what they held in the trace."""
    checks = [
        line
        for test, takes in mismatches(graph.packings)
        for line in (f"if {test}:", f'    raise ValueError("drafted for a call where {takes}")')
    ]
    return [*checks, *taken_out(graph.packings)]


def cast_text(program: Program, result: Result) -> str:
    """One result in its dtype, where its tensor is kept in a wider one for another result."""
    text = result_text(program, result)
    kept = program.kept.get(text, result.dtype)
    return text if kept == result.dtype else f"{text}.to({result.dtype})"


def result_text(program: Program, result: Result) -> str:
    """One result: a step's tensor where it is stored as it is, else a view of it."""
    tensor = program.tensors[result.node]
    if isinstance(tensor.value, Load) and tensor.value.buffer.name in program.steps:
        step = program.steps[tensor.value.buffer.name]
        if tensor.dims == step.tensor.dims and tensor.value.index == tensor.indices:
            return step.name
    return in_dtype(program, result.node, result.dtype)


def mismatches(packings: Mapping[str, Packing]) -> Iterator[tuple[str, str]]:
    """When a container holds something else than it held, as source, and what it should."""
    for name, packing in packings.items():
        for place, container in packing.containers(name):
            label, count = place.replace('"', ""), len(container.items)
            if container.kind in ("dict", "kwargs"):
                keys = ", ".join(container.quoted())
                test = f"set({place}) != {{{keys}}}" if keys else place
                yield test, f"{label} takes {', '.join(container.words()) or 'nothing'}"
            elif container.kind != "fields":
                yield f"len({place}) != {count}", f"{label} takes {count} item{'s' if count != 1 else ''}"


def taken_out(packings: Mapping[str, Packing]) -> Iterator[str]:
    """Lines that give what containers hold its own names."""
    for name, packing in packings.items():
        sources = packing.sources(name)
        if packing.kind in ("list", "tuple", "args") and len(sources) == len(packing.items) > 1:
            yield f"{', '.join(sources)} = {name}"
            continue
        line = f"{', '.join(sources)} = {', '.join(sources.values())}"
        yield from [line] if sources and len(line) < WIDTH else [f"{n} = {s}" for n, s in sources.items()]
