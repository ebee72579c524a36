"""The drafted kernel file: docstring, reference, kernels and `run`, put together."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytorch_to_triton.draft.file.checks import Checks, checks
from pytorch_to_triton.draft.file.choices import Lines, choice_source, decided
from pytorch_to_triton.convert.draft.combines import COMBINES
from pytorch_to_triton.convert.draft.kernel import RESERVED, Config, Kernel, Plan, Stage, mentions
from pytorch_to_triton.draft.file.lines import WIDTH, wrapped
from pytorch_to_triton.convert.draft.partition import Group, partition
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.obstacles import refuse_unmet
from pytorch_to_triton.graph.program import Program, Result, program
from pytorch_to_triton.graph.tracing import Branch
from pytorch_to_triton.graph.views import whole
from pytorch_to_triton.schema.graph import Graph, TensorInput

STAGE_NAMES: Mapping[Stage, str] = {1: "correct", 2: "optimised", 3: "tuned"}


@dataclass(frozen=True)
class Source:
    """What a drafted file says about where it comes from."""

    target: str
    """The user's target, as given."""
    reference: Reference
    declared: Mapping[str, Any]
    """INPUTS, DIMS and REQUIRES, in the grammar."""
    output_dtypes: Mapping[str, str]
    """Result path -> dtype as source, e.g. `x.dtype` or `torch.float32`."""
    note: str = ""
    """A comment on measured launch configurations."""
    branches: tuple[Branch, ...] = ()
    """What the target computes instead in some dtypes."""


@dataclass(frozen=True)
class Drafted:
    """One stage of a conversion."""

    text: str
    kernels: tuple[Kernel, ...]
    """In order of launch."""
    tuned: Mapping[str, Config] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """One program of the target: its steps in groups, and a kernel for each."""

    program: Program
    groups: tuple[Group, ...]
    kernels: tuple[Kernel, ...]
    output_dtypes: Mapping[str, str]
    condition: str = ""
    """When `run` takes it; empty: where it takes no other."""


def draft(graph: Graph, source: Source, stage: Stage, tuned: Mapping[str, Config] | None = None) -> Drafted:
    """The kernel file of one stage. `tuned` gives measured launch configurations by kernel.

    Raises NotConvertible where no pattern fits.
    """
    refuse_unmet(graph, source.declared.get("DIMS") or {}, source.declared.get("REQUIRES") or ())
    parts = [
        _part(graph, source.output_dtypes, stage, tuned or {}),
        *(_branch(b, stage) for b in source.branches),
    ]
    kernels = _told_apart([k for part in parts for k in part.kernels])
    waiting = list(kernels)
    parts = [replace(p, kernels=tuple(waiting.pop(0) for _ in p.kernels)) for p in parts]
    return Drafted(_text(parts, source, stage), kernels, tuned or {})


def _part(
    graph: Graph,
    output_dtypes: Mapping[str, str],
    stage: Stage,
    tuned: Mapping[str, Config],
    suffix: str = "",
) -> Part:
    traced = program(graph, RESERVED)
    groups = partition(traced, stage)
    plans = [_plan(traced, group, len(groups), tuned, suffix) for group in groups]
    kernels = tuple(group.pattern.write(plan, stage) for group, plan in zip(groups, plans, strict=True))
    return Part(traced, groups, kernels, output_dtypes)


def _branch(branch: Branch, stage: Stage) -> Part:
    """The part for some dtypes; what is timed is the widest one, so its launches are never tuned."""
    part = _part(branch.graph, branch.output_dtypes, stage, {}, "_" + "_".join(branch.dtypes))
    names = [f"torch.{dtype}" for dtype in branch.dtypes]
    test = f"== {names[0]}" if len(names) == 1 else f"in ({', '.join(names)})"
    kernels = tuple(replace(kernel, variants=()) for kernel in part.kernels)
    return replace(part, kernels=kernels, condition=f"{branch.rule} {test}")


def _told_apart(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels with no name standing for two sizes in `run`."""
    meanings: dict[str, str] = {}
    told = []
    for kernel in kernels:
        for name, text in kernel.sizes:
            chosen, n = name, 1
            while meanings.setdefault(chosen, text) != text:
                n += 1
                chosen = f"{name}_{n}"
            if chosen != name:
                kernel = kernel.renamed(name, chosen)
        told.append(kernel)
    return tuple(told)


def _plan(traced: Program, group: Group, count: int, tuned: Mapping[str, Config], suffix: str) -> Plan:
    function = re.sub(r"\W", "_", snake(traced.graph.function)) + suffix
    base = function if count == 1 else f"{function}_{group.steps[-1].name}"
    name = f"{base}_kernel"
    return Plan(traced, group.steps, group.nest, name, tuned)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _text(parts: Sequence[Part], source: Source, stage: Stage) -> str:
    kernels = [kernel for part in parts for kernel in part.kernels]
    helpers = sorted({h for kernel in kernels for h in kernel.helpers})
    bodies = [*(COMBINES[h] for h in helpers), *(k.source for k in kernels)]
    locals_ = {step.name for part in parts for step in part.program.steps}
    checked = checks(parts[0].program.graph, source.reference, locals_)
    run = "\n".join(_run(parts, checked, source))
    blocks = [
        _docstring(parts[0].program, source, stage),
        _imports(source.reference, [*bodies, run]),
        "\n".join([_declarations(source.declared), *checked.accepted]),
        *source.reference.definitions,
        *bodies,
        *checked.definition,
        (f"{source.note}\n" if source.note else "") + run,
    ]
    head, body = blocks[:3], blocks[3:]
    return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(body) + "\n"


def _docstring(traced: Program, source: Source, stage: Stage) -> str:
    graph = traced.graph
    inputs = "\n".join(f"    {i.name}: [{', '.join(i.shape.expressions)}]" for i in graph.inputs)
    shapes = [(r.path, [str(d.size) for d in r.view.dims]) for r in traced.results]
    outputs = "\n".join(f"    {path}: [{', '.join(sizes)}]" for path, sizes in shapes)
    return (
        f'"""{graph.function} in Triton, stage {stage} of 3 ({STAGE_NAMES[stage]}).\n\n'
        f"Drafted from {source.target}. Shapes:\n\n{inputs}\n    ->\n{outputs}\n"
        '"""'
    )


def _imports(reference: Reference, bodies: Sequence[str]) -> str:
    lines = {"import torch", "import triton", "import triton.language as tl", *reference.imports}
    if any("libdevice." in body for body in bodies):
        lines.add("from triton.language.extra import libdevice")
    if any(mentions(body, "math") for body in bodies):
        lines.add("import math")
    standard = {line for line in lines if line.split()[1].partition(".")[0] in sys.stdlib_module_names}
    return "\n\n".join(_sorted_imports(part) for part in (standard, lines - standard) if part)


def _sorted_imports(lines: set[str]) -> str:
    plain = sorted(line for line in lines if line.startswith("import "))
    return "\n".join([*plain, *sorted(lines - set(plain))])


def _declarations(declared: Mapping[str, object]) -> str:
    return "\n".join(f"{name} = {_literal(value)}" for name, value in declared.items() if value)


def _literal(value: object) -> str:
    """A dict or list as source, an entry a line where it is long."""
    match value:
        case dict():
            entries = [f"{_literal(k)}: {_literal(v)}" for k, v in value.items()]
            brackets = "{}"
        case list():
            entries, brackets = [_literal(v) for v in value], "[]"
        case str():
            return json.dumps(value)
        case _:
            return repr(value)
    line = f"{brackets[0]}{', '.join(entries)}{brackets[1]}"
    if len(line) <= 90:
        return line
    return "\n".join([brackets[0], *(f"    {e}," for e in entries), brackets[1]])


def _run(parts: Sequence[Part], checked: Checks, source: Source) -> list[str]:
    main, *branches = parts
    graph = main.program.graph
    body = [
        *_guards(graph),
        *checked.call,
        *_defaults(graph, source.reference),
        *_dims(graph),
        *_checks(graph),
    ]
    body += decided([part.condition for part in branches], [_computed(part) for part in (*branches, main)])
    return [
        f"def run({source.reference.parameters}):",
        '    """The same as `reference`, by the kernels above."""',
        *(f"    {line}" for line in body),
    ]


def _computed(part: Part) -> list[Lines]:
    """The statements of `run` that compute one program."""
    launches = [line for k in part.kernels for line in k.launch]
    graph = part.program.graph
    return [
        *((f'assert {guard}, "drafted for {guard}"',) for guard in graph.guards),
        *(wrapped(f"{choice.name} = {choice_source(choice)}") for choice in graph.choices),
        *((f"{name} = {text}",) for name, text in _sizes(part.kernels, launches)),
        *((line,) for line in _contiguous(graph, part.groups)),
        *_outputs(part),
        *(k.launch for k in part.kernels),
        (f"return {_returned(part.program)}",),
    ]


def _guards(graph: Graph) -> list[str]:
    lines = []
    for name in graph.fixed:
        value = graph.constants[name]
        test = (
            f"{name} is not {value!r}" if value is None or isinstance(value, bool) else f"{name} != {value!r}"
        )
        lines += [f"if {test}:", f'    raise ValueError(f"drafted for {name}={value!r}, not {{{name}!r}}")']
    return lines


def _defaults(graph: Graph, reference: Reference) -> list[str]:
    """Arguments that were not declared keep their defaults."""
    arguments = ast.parse(f"def run({reference.parameters}): ...").body[0]
    assert isinstance(arguments, ast.FunctionDef)
    spec = arguments.args
    given = {i.name for i in graph.inputs} | set(graph.constants)
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
                f"if {name} is not {value}:"
                if value in ("None", "True", "False")
                else f"if {name} != {value}:",
                f'    raise ValueError(f"drafted for the default {name}, not {{{name}!r}}")',
            ]
    return lines


def _dims(graph: Graph) -> list[str]:
    """Every dim out of a tensor's shape."""
    lines: list[str] = []
    known: set[str] = set()
    used = _mentioned_dims(graph)
    for tensor in graph.inputs:
        sizes = tensor.shape.expressions
        fresh = [s for s in sizes if s in graph.dims and s not in known]
        if fresh and len(set(fresh)) == len(sizes) == len(fresh):
            lines.append(f"{', '.join(sizes)}{',' if len(sizes) == 1 else ''} = {tensor.name}.shape")
        else:
            lines += [f"{s} = {tensor.name}.shape[{sizes.index(s)}]" for s in dict.fromkeys(fresh)]
        known |= set(fresh)
    for tensor in graph.inputs:
        for at, size in enumerate(tensor.shape.expressions):
            product = re.fullmatch(r"(\d+) ?\* ?(\w+)", size)
            if product and product[2] in used - known:
                lines.append(f"{product[2]} = {tensor.name}.shape[{at}] // {product[1]}")
                known.add(product[2])
    if used - known:
        raise NotConvertible(
            f"The dim {min(used - known)} is no tensor's size, so `run` cannot find it.",
            "Declare the shapes so that each dim is the size of some tensor, or a multiple of it.",
        )
    return lines


def _mentioned_dims(graph: Graph) -> set[str]:
    texts = [e for i in graph.inputs for e in i.shape.expressions]
    texts += [e for n in graph.nodes if n.shape for e in n.shape.expressions]
    return {d for d in graph.dims if any(mentions(t, d) for t in texts)}


def _checks(graph: Graph) -> list[str]:
    """Shapes that the kernels rely on, checked for every tensor that does not itself define its dims."""
    lines = []
    defined: set[str] = set()
    for tensor in graph.inputs:
        sizes = tensor.shape.expressions
        if any(s not in graph.dims or s in defined for s in sizes):
            shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
            lines.append(
                f'assert {tensor.name}.shape == {shape}, f"{tensor.name}: {{tuple({tensor.name}.shape)}}"'
            )
        defined |= set(sizes)
    return lines


def _sizes(kernels: Sequence[Kernel], launches: Sequence[str]) -> list[tuple[str, str]]:
    text = "\n".join(launches)
    return [(n, t) for n, t in dict.fromkeys(s for k in kernels for s in k.sizes) if mentions(text, n)]


def _contiguous(graph: Graph, groups: Sequence[Group]) -> list[str]:
    read = {m.buffer for g in groups for m in g.nest.loads.values()}
    tensors = [i.name for i in graph.inputs if i.name in read and len(i.shape)]
    if not tensors:
        return []
    line = f"{', '.join(tensors)} = {', '.join(f'{t}.contiguous()' for t in tensors)}"
    return [line] if len(line) <= WIDTH else [f"{t} = {t}.contiguous()" for t in tensors]


def _outputs(part: Part) -> list[Lines]:
    traced = part.program
    device = traced.graph.inputs[0].name
    results = {r.view.source: r.path for r in reversed(traced.results)}
    statements: list[Lines] = []
    for group in part.groups:
        for name in group.nest.stores:
            shape = traced.shape(name).expressions
            # A size such as `M - 1` is empty, not negative, where M is 0.
            sizes = ", ".join(f"max({e}, 0)" if "-" in e else e for e in shape)
            sizes = f"({sizes}{',' if len(shape) == 1 else ''})"
            dtype = part.output_dtypes[results[name]] if name in results else _intermediate(traced, name)
            like = _like(traced.graph.inputs, shape, dtype)
            made = (
                f"torch.empty_like({like})"
                if like
                else f"torch.empty({sizes}, device={device}.device, dtype={dtype})"
            )
            statements.append(wrapped(f"{name} = {made}"))
    return statements


def _intermediate(traced: Program, name: str) -> str:
    """Values between kernels keep full precision, whatever the inputs' dtype."""
    dtype = traced.dtype(name)
    return "torch.float32" if dtype in ("float16", "bfloat16") else f"torch.{dtype}"


def _like(inputs: Sequence[TensorInput], shape: tuple[str, ...], dtype: str) -> str | None:
    """The tensor of that shape whose dtype is asked for, which is contiguous by then."""
    name = dtype.removesuffix(".dtype")
    return next((i.name for i in inputs if i.name == name and i.shape.expressions == shape and shape), None)


def _returned(traced: Program) -> str:
    values = {r.path: _result(traced, r) for r in traced.results}
    match traced.graph.structure:
        case "single":
            return next(iter(values.values()))
        case "tuple":
            return ", ".join(values.values()) + ("," if len(values) == 1 else "")
        case "list":
            return f"[{', '.join(values.values())}]"
        case "dict":
            return "{" + ", ".join(f"{path[4:-1]}: {value}" for path, value in values.items()) + "}"


def _result(traced: Program, result: Result) -> str:
    """The tensor, seen through the result's view."""
    view = result.view
    plain = whole(view.source, traced.shape(view.source))
    if view.dims == plain.dims and not view.offset:
        return view.source
    sizes = ", ".join(str(d.size) for d in view.dims)
    strides = ", ".join(str(d.stride) for d in view.dims)
    offset = " + ".join(str(t) for t in view.offset) or "0"
    return f"{view.source}.as_strided(({sizes},), ({strides},), {offset})"
