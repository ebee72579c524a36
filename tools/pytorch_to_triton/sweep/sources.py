"""Reading the items of a sweep: a folder, a file of kernels or functions, or pairs in JSON Lines.

Nothing is imported: what a file holds is read from its syntax tree.
"""

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytorch_to_triton.errors import BadInput, TargetNotFound
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_options
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.sweep.given_text import constructed_alike, defined_in, target_given
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.targets.names_in_text import is_kernel, text_and_tree

FIELDS = ("problem", "candidate", "key", "input", "dim", "require", "backward")
"""What a line of JSON may say."""
SKIPPED = ("__pycache__", "node_modules", "build", "dist", "tests")
"""Folders without items."""
TEXTS = "items"
"""The folder of the results that holds texts which were given in place of files."""


def items_in(
    source: Path, out: Path, options: Options = NO_OPTIONS, *, candidates: Path | None, backward: bool
) -> list[SweepItem]:
    """The items of a source, in order.

    `candidates` is a folder of kernels that answer the problems of the same names. Texts in JSON Lines are
    written below `out`. Raises TargetNotFound where there is no such file, BadInput for a line that cannot be
    used, and where there is no item at all.
    """
    if not source.exists():
        raise TargetNotFound(f"There is no {source}.", "Name a folder, a Python file or a .jsonl file.")
    if source.resolve() == out:
        raise BadInput(f"The results would lie among the items, in {out}.", "Name a folder with --into.")
    read = pairs_in(source, out) if source.suffix == ".jsonl" else items_below(source.resolve(), out)
    items = [
        replace(item, options=given_to(item, options), backward=item.backward or backward) for item in read
    ]
    if candidates is not None:
        items = [answered(item, candidates.resolve()) for item in items]
    items = [constructed_alike(item, out / TEXTS) for item in items]
    if not items:
        raise BadInput(
            f"{source} holds nothing to sweep.",
            "It may hold kernel files, functions, nn.Modules, or files with Model and get_inputs.",
        )
    refuse_equal_keys(items)
    return items


def given_to(item: SweepItem, given: Options) -> Options:
    """What a line says of its inputs; else what is said of all items, of a function what it takes."""
    if item.options != NO_OPTIONS:
        return item.options
    if item.problem is None or item.problem.name is None or not given.inputs:
        return given
    takes = parameters_of(item.problem)
    return replace(given, inputs={name: value for name, value in given.inputs.items() if name in takes})


def parameters_of(target: Target) -> set[str]:
    """What the function, or the module's forward, takes, as far as its file's text tells."""
    parsed = text_and_tree(target.path)
    node = defined_in(parsed[1]).get(str(target.name)) if parsed else None
    if isinstance(node, ast.ClassDef):
        node = next((part for part in node.body if getattr(part, "name", "") == "forward"), None)
    if not isinstance(node, ast.FunctionDef):
        return set()
    return {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}


def items_below(source: Path, out: Path) -> Iterator[SweepItem]:
    """The items of a file, or of all files below a folder but for those of the results, by their paths."""
    if source.is_file():
        yield from items_of(source, source.stem)
        return
    results = out if out.is_relative_to(source) else None
    for file in sorted(source.rglob("*.py")):
        path = file.relative_to(source)
        hidden = any(part in SKIPPED or part.startswith((".", "_")) for part in path.parts)
        if not hidden and file.is_file() and results not in file.parents:
            yield from items_of(file, path.with_suffix("").as_posix())


def items_of(file: Path, key: str) -> Iterator[SweepItem]:
    """A kernel file is one item, and so is a file with Model; else each public function and module is."""
    parsed = text_and_tree(file)
    if parsed is None:
        yield SweepItem(key, problem=Target(path=file))  # its draft says why it cannot be read
        return
    names = defined_in(parsed[1])
    if {"run", "reference"} <= names.keys() or {"Model", "ModelNew"} <= names.keys():
        yield SweepItem(key, candidate=Target(path=file))
    elif "Model" in names and {"get_inputs", "INPUTS"} & names.keys():
        yield SweepItem(key, problem=Target(path=file))
    else:
        for name, node in names.items():
            if is_target(node) and not name.startswith("_"):
                yield SweepItem(f"{key}:{name}", problem=Target(path=file, name=name))


def is_target(node: ast.stmt) -> bool:
    """Whether it is a function that is no kernel, or a class with a forward of its own."""
    if isinstance(node, ast.FunctionDef):
        return not is_kernel(node)
    return isinstance(node, ast.ClassDef) and any(
        isinstance(part, ast.FunctionDef) and part.name == "forward" for part in node.body
    )


def answered(item: SweepItem, candidates: Path) -> SweepItem:
    """The item with the candidate of the same name, where there is one."""
    path = candidates / f"{item.key.replace(':', '_')}.py"
    return replace(item, candidate=Target(path=path)) if path.is_file() else item


def pairs_in(source: Path, out: Path) -> Iterator[SweepItem]:
    """One item a line: `{"problem": PATH or TEXT, "candidate": PATH or TEXT}`, and the other FIELDS.

    What is no path of a Python file is a text; paths are relative to the file.
    """
    for number, line in enumerate(source.read_text(encoding="utf-8-sig", errors="replace").splitlines(), 1):
        if line.strip():
            yield pair_of(line, number, source, out)


def pair_of(line: str, number: int, source: Path, out: Path) -> SweepItem:
    """The item; its key is the line's number where the line names none."""
    place = f"{source}, line {number}"
    try:
        values = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{place} is no JSON: {error}.", "Write one object a line.") from None
    if not isinstance(values, dict) or not {"problem", "candidate"} & values.keys():
        raise BadInput(f"{place} names neither a problem nor a candidate.", "Name at least one of them.")
    if unknown := sorted(values.keys() - {*FIELDS}):
        raise BadInput(f"{place}: {unknown[0]} is no field.", f"The fields are {', '.join(FIELDS)}.")
    key, backward = str(values.get("key") or number), bool(values.get("backward"))
    sides = {
        side: side_of(values[side], place, source.parent, out / TEXTS, f"{key}-{side}")
        for side in FIELDS[:2]
        if side in values
    }
    listed = (tuple(values.get(name, ())) for name in ("input", "dim", "require"))
    return SweepItem(key, **sides, options=parse_options(*listed), backward=backward)


def side_of(value: Any, place: str, folder: Path, texts: Path, name: str) -> Target:
    """The target that a line names or holds. Raises BadInput for what is neither, and without such a file."""
    if not isinstance(value, str):
        raise BadInput(f"{place}: {value!r} is neither a path nor a text.", "Write it as a string.")
    try:
        return target_given(value, folder, texts, name)
    except FileNotFoundError as missing:
        raise BadInput(f"{place}: there is no {missing}.", "Name a file relative to this one.") from None


def refuse_equal_keys(items: Sequence[SweepItem]) -> None:
    """Raises BadInput where two items have one key."""
    seen: set[str] = set()
    for item in items:
        if item.key in seen:
            raise BadInput(f"Two items are called {item.key}.", 'Give each line a "key" of its own.')
        seen.add(item.key)
