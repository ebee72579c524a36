"""The finished files as text, long lines broken at their brackets as a formatter would."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton.convert.finish import drawing, kept_launches
from pytorch_to_triton.convert.finish.guards import conditions
from pytorch_to_triton.convert.finish.interpreted import behind_the_kernels, for_the_interpreter
from pytorch_to_triton.convert.finish.recipe import (
    DropIn,
    Recipe,
    names_used,
    parameters_of,
    passed,
    received,
)
from pytorch_to_triton.convert.finish.report import Report
from pytorch_to_triton.draft.file.kernel_text import import_block
from pytorch_to_triton.draft.fresh_names import fresh, in_ascii
from pytorch_to_triton.schema.dtype import Scalar, source_of

if TYPE_CHECKING:
    from jinja2 import Environment
import io
import tokenize
from itertools import accumulate, pairwise

TEMPLATES = Path(__file__).parent / "templates"
IMPORTS = ("import functools", "import logging", "import torch", "import triton")


@dataclass(frozen=True)
class Finished:
    """Every file by its name."""

    kernels: str
    """The name of the file with the kernels."""
    texts: Mapping[str, str]


def files(recipe: Recipe, measured: str) -> Finished:
    """The function, its tests and its benchmark; `measured` says what is known of its speed."""
    module = recipe.module_name
    test, bench = f"test_{module}", f"bench_{module}"
    names = chosen_names(recipe)
    common = {"recipe": recipe, "module_name": module, "test_name": test, "bench_name": bench, **names}
    texts = {
        f"{module}.py": function_file(recipe, names, measured),
        f"{test}.py": render("test", {**common, **test_content(recipe)}),
        f"{bench}.py": render("bench", {**common, **benchmark_content(recipe)}),
    }
    return Finished(f"{module}.py", texts)


def chosen_names(recipe: Recipe) -> dict[str, str]:
    """Names for what is added to the kernel file, by what they are for; none has another meaning in it."""
    name = recipe.name
    preferred = {
        "interpreted": "INTERPRETED", "logger": "LOGGER", "why_not": "why_not", "log_once": "log_once",
        "compute": "compute", "uncompiled": "uncompiled_run", "owned": "in_own_memory", "like": "empty_like",
        "operator": f"{name}_operator", "backward": f"{name}_backward_operator", "save": "save_inputs",
        "differentiate": "differentiate", "computed": "by_pytorch", "counting": "counting_tensor",
        "described": "described", "known_attributes": "KNOWN_ATTRIBUTES",
        "settings": "settings", "mode_matters": "mode_matters", "converted_settings": "CONVERTED_SETTINGS",
        "mode_decides": "MODE_MATTERS",
        "converted_module": "converted_module",
        "use_kernels": "use_kernels",
        "launches": "LAUNCHES", "recording": "RECORDING", "watch": "AllocationWatch", "recorder": "Recorder",
        "replay": "replayed", "launched": "launched", "key": "call_key", "plain_types": "PLAIN_TYPES",
        "drop_in": f"{recipe.module.name if recipe.module else recipe.function}Triton",
    }  # fmt: skip
    reserved = {
        *names_used(recipe.text),
        name,
        "functools",
        "logging",
        "OUTSIDE",
        "TensorHandle",
        "operator",
        "threading",
        "TorchDispatchMode",
    }
    names: dict[str, str] = {}
    for what, text in preferred.items():
        names[what] = fresh(text, {*reserved, *names.values()})
    return names


def function_file(recipe: Recipe, names: Mapping[str, str], measured: str) -> str:
    """`NAME_triton.py`: the kernel file with a function that may be called with anything."""
    parts = recipe.file
    keeps = kept_launches.keeps_launches(recipe)
    content = {
        **names,
        "recipe": recipe,
        "parameters": received(recipe.parameters),
        "conditions": conditions(recipe, names["interpreted"]),
        **of_operator(recipe),
        "kept_launches": render("kept_launches", kept_launches.content(recipe, names)) if keeps else "",
        "purpose": f"What {recipe.origin} computes.",
        "module": recipe.module,
        **(forward_of(recipe.module, recipe) if recipe.module else {}),
    }
    interpreted = f"{names['interpreted']} = triton.knobs.runtime.interpret"
    shim = for_the_interpreter(recipe.text, names["interpreted"], names["computed"])
    head = [
        docstring(recipe, names, measured, parts.shapes),
        import_block([*parts.imports, *IMPORTS, *(kept_launches.IMPORTS if keeps else ())]),
        interpreted + (f"\n{shim}" if shim else ""),
    ]
    body = [parts.body]
    if replaced := behind_the_kernels(recipe.text, names["interpreted"], names["counting"]):
        body.append(replaced)
    body.append(render("function", content))
    if recipe.module:
        body.append(render("module", content))
    return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(text.strip("\n") for text in body) + "\n"


def docstring(recipe: Recipe, names: Mapping[str, str], measured: str, shapes: str) -> str:
    """How it is used, what it takes, and how fast it is."""
    module, name = recipe.module_name, recipe.name
    use = [f"    from {module} import {name}"]
    if recipe.module:
        use = [f"    from {module} import {names['use_kernels']}", "", f"    {names['use_kernels']}(model)"]
    kind = (
        "with gradients" if recipe.backward else "without gradients: where they are wanted, PyTorch computes"
    )
    shapes = "\n".join(line for line in shapes.splitlines() if not line.startswith("Drafted from ")).strip(
        "\n"
    )
    lines = [
        f'"""{recipe.function} by Triton kernels, {kind}.',
        "",
        *use,
        "",
        f"Stands for {recipe.origin}. What the kernels do not take ({not_taken(recipe)}),",
        "PyTorch computes, and a warning says so once. "
        + ("torch.compile takes it whole." if recipe.structure else "torch.compile breaks its graph here."),
        *([measured] if measured else []),
        *(["", shapes] if shapes else []),
        '"""',
    ]
    return "\n".join(lines)


def not_taken(recipe: Recipe) -> str:
    """What goes to PyTorch."""
    fixed = [name for name in recipe.inputs if name in recipe.fixed]
    values = f", another value of {' or '.join(fixed)}" if fixed else ""
    return f"another dtype or shape{values}, no GPU"


def of_operator(recipe: Recipe) -> dict[str, object]:
    """What the template says of `run` as an operator of PyTorch, with shapes for tracing and with gradients.

    It is opaque to torch.compile, so any `run` may be one: with branches, a kernel of the interpreter,
    launches that nothing could trace.
    """
    operands, numbers = recipe.operands, [o.parameter for o in recipe.operands if not o.is_tensor]
    return {
        "operands": ", ".join(operand.source for operand in operands),
        "written": [f'"{in_ascii(name)}"' for name in recipe.written],
        "tensors": [tensor.parameter for tensor in recipe.tensors],
        "trained": [operand.parameter for operand in operands if operand.has_gradient],
        "numbers": numbers,
        "grads": ["grad"] if recipe.outputs == 1 else [f"grad_{i}" for i in range(recipe.outputs)],
        "gradients": [f"grad_of_{o.parameter}" if o.has_gradient else "None" for o in operands],
        "from_context": [
            operand.parameter if operand.is_tensor else f"ctx.numbers[{numbers.index(operand.parameter)}]"
            for operand in operands
        ],
    }


def forward_of(module: DropIn, recipe: Recipe) -> dict[str, str]:
    """What the module's template says of forward and of the state that it hands over."""
    names = forward_names(module)
    given = (o.source for o in recipe.operands if o.is_tensor and o.name not in module.state)
    moved = next((f".to({source}.device)" for source in given), "")
    arguments = {name: name for name in names} | {
        argument: state_source(key) + (moved if key in module.attributes else "")
        for argument, key in module.state.items()
    }
    return {
        "forward_received": received(module.parameters),
        "forward_passed": passed(module.parameters),
        "given": passed(recipe.parameters, arguments),
        "construction": module.constructed.partition("(")[2].removesuffix(")"),
    }


def forward_names(module: DropIn) -> list[str]:
    return [name for _, name in parameters_of(module.parameters)]


def state_source(key: str) -> str:
    """A parameter or buffer of `self`."""
    parents, _, last = key.rpartition(".")
    plain = all(map(is_name, parents.split("."))) if parents else True
    owner = f"self.{parents}".rstrip(".") if plain else f'self.get_submodule("{parents}")'
    return f"{owner}.{last}" if is_name(last) else f'getattr({owner}, "{last}")'


def is_name(text: str) -> bool:
    """Whether it can be written as an attribute."""
    return text.isidentifier() and not iskeyword(text)


def test_content(recipe: Recipe) -> dict[str, object]:
    """What the tests' template says of sizes, dtypes and arguments."""
    module = recipe.module
    return {
        "sizes": [as_source(point) for point in drawing.tested_sizes(recipe)],
        "dtypes": drawing.mixtures(recipe),
        "values": [as_source(values) for values, _ in recipe.declaration.each_value() if values],
        "drawn": drawing.lines(recipe),
        "other_dtype": drawing.another_dtype(recipe),
        "operands": out_of_given(operand.source for operand in recipe.operands),
        "written": out_of_given(recipe.sources[name] for name in recipe.written),
        "unordered": list(unordered_places(recipe)),
        "without_gradient": tuple(n for n in sorted(recipe.without_gradient) if n in recipe.arguments),
        "registered": bool(recipe.structure),
        "random": recipe.random,
        "keeps_launches": kept_launches.keeps_launches(recipe),
        "of_given": of_given(recipe.parameters),
        "forward_of_given": of_given(module.parameters) if module else "",
        "objects": sorted(recipe.declaration.types()),
        "module": module,
        "forward_names": tuple(forward_names(module)) if module else (),
    }


def out_of_given(sources: Iterable[str]) -> str:
    """What lies in a call, each out of the dict of its arguments; the inside of a tuple."""
    given = [re.sub(r"^(\w+)", r'given["\1"]', source) for source in sources]
    return ", ".join(given) + ("," if len(given) == 1 else "")


def unordered_places(recipe: Recipe) -> Iterator[tuple[tuple[int, ...], int]]:
    """Which of the results, counted as they come, may be in any order together, and along which dim."""
    paths = [output.path for output in recipe.graph.outputs] if recipe.graph else []
    for free in recipe.declaration.unordered:
        places = (paths.index(p) if paths else int(re.sub(r"\D", "", p) or 0) for p in free.results)
        yield tuple(places), free.dim


def of_given(parameters: str) -> str:
    """The arguments of a call, out of such a dict."""
    names = {name: f'given["{name}"]' for _, name in parameters_of(parameters)}
    collects = any(kind in ("*", "**") for kind, _ in parameters_of(parameters))
    return passed(parameters, names) if collects else "**given"


def benchmark_content(recipe: Recipe) -> dict[str, object]:
    return {
        "sizes": [as_source(p) for p in drawing.timed_sizes(recipe)],
        "dtypes": drawing.mixtures(recipe)[0],
        "of_given": of_given(recipe.parameters),
    }


def as_source(point: Mapping[str, Scalar]) -> str:
    return "{" + ", ".join(f'"{name}": {source_of(value)}' for name, value in point.items()) + "}"


def render(template: str, content: Mapping[str, object]) -> str:
    return (
        fold_long_lines(environment().get_template(f"{template}.py.jinja").render(content)).rstrip("\n")
        + "\n"
    )


def page(report: Report) -> str:
    """The report as one page of HTML, without network or scripts."""
    pictures = {
        picture: base64.b64encode(picture.read_bytes()).decode()
        for section in report.sections
        for picture in section.pictures
    }
    return environment().get_template("report.html.jinja").render(report=report, pictures=pictures)


@cache
def environment() -> Environment:
    # Importing Jinja2 takes time that only those who finish should spend.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=select_autoescape(enabled_extensions=("html.jinja",)),
    )


WIDTH = 100
OPENING, CLOSING = "([{", ")]}"


def fold_long_lines(text: str) -> str:
    """The text with every line that is too long in pieces, an item of its longest brackets a line."""
    return "\n".join(piece for line in text.splitlines() for piece in pieces(line))


def pieces(line: str) -> list[str]:
    """One line, in as many as it takes; as it is where no bracket of it can be broken."""
    if len(line) <= WIDTH or not (span := longest_brackets(line)):
        return [line]
    start, end, commas = span
    margin = line[: len(line) - len(line.lstrip())]
    items = items_in(line, start, end, commas)
    # One item may be a comprehension or a mere grouping, to which a comma would give another meaning; that of
    # a tuple has one.
    ending = "," if len(items) > 1 or line[:end].rstrip().endswith(",") else ""
    if not ending:
        items = [item if i == 0 else f"or {item}" for i, item in enumerate(items[0].split(" or "))]
    inside = [f"{margin}    {item}{ending}" for item in items]
    return [line[: start + 1], *(p for one in inside for p in pieces(one)), margin + line[end:]]


def items_in(line: str, start: int, end: int, commas: list[int]) -> list[str]:
    """What stands between brackets, at its commas; a comprehension as one."""
    edges = [start, *commas, end]
    items = [item for a, b in pairwise(edges) if (item := line[a + 1 : b].strip())]
    return [line[start + 1 : end].strip()] if any(" for " in item for item in items) else items


def longest_brackets(line: str) -> tuple[int, int, list[int]] | None:
    """Start and end of the outermost brackets that hold the most, and the commas in them."""
    depth, start = 0, 0
    commas: list[int] = []
    spans: list[tuple[int, int, list[int]]] = []
    for token in tokens(line):
        column = token.start[1]
        if token.string in OPENING and token.type == tokenize.OP:
            depth += 1
            if depth == 1:
                start, commas = column, []
        elif token.string in CLOSING and token.type == tokenize.OP:
            depth -= 1
            if depth == 0:
                spans.append((start, column, commas))
        elif token.string == "," and depth == 1:
            commas.append(column)
    broken = [span for span in spans if span[1] - span[0] > 2]
    return max(broken, key=lambda span: span[1] - span[0], default=None)


def tokens(line: str) -> list[tokenize.TokenInfo]:
    """Those of one line that stand in no f-string; none where it is a part of a longer string.

    Python 3.12 takes f-strings apart, and older ones refuse a line that is broken inside of one.
    """
    try:
        found = list(tokenize.generate_tokens(io.StringIO(line.strip() and line).readline))
    except (tokenize.TokenError, IndentationError):
        return []
    kinds = [tokenize.tok_name[token.type] for token in found]
    entered = accumulate(kind.endswith("STRING_START") for kind in kinds)
    left = accumulate(kind.endswith("STRING_END") for kind in kinds)
    return [token for token, opened, closed in zip(found, entered, left, strict=True) if opened == closed]
