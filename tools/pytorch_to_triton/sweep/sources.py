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
from pytorch_to_triton.sweep.given_text import file_of, is_path, with_init_inputs
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.targets.names_in_text import is_kernel

FIELDS = ("problem", "candidate", "key", "input", "dim", "require", "backward")
"""What a line of JSON may say."""
SKIPPED = ("__pycache__", "node_modules", "build", "dist", "tests")
"""Folders without items."""


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
        items = [answered(item, source.resolve(), candidates.resolve()) for item in items]
    items = [constructed_alike(item, out) for item in items]
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
    tree = ast.parse(target.path.read_text(encoding="utf-8", errors="replace"))
    node = defined_in(tree).get(str(target.name))
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
    try:
        tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        yield SweepItem(key, problem=Target(path=file))  # its draft says why it cannot be read
        return
    names = defined_in(tree)
    if {"run", "reference"} <= names.keys() or {"Model", "ModelNew"} <= names.keys():
        yield SweepItem(key, candidate=Target(path=file))
    elif "Model" in names and {"get_inputs", "INPUTS"} & names.keys():
        yield SweepItem(key, problem=Target(path=file))
    else:
        for name, node in names.items():
            if is_target(node) and not name.startswith("_"):
                yield SweepItem(f"{key}:{name}", problem=Target(path=file, name=name))


def defined_in(tree: ast.Module) -> dict[str, ast.stmt]:
    """What the file defines, assigns and imports at its top level, by name."""
    names: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign):
            names |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: node for alias in node.names}
    return names


def is_target(node: ast.stmt) -> bool:
    """Whether it is a function that is no kernel, or a class with a forward of its own."""
    if isinstance(node, ast.FunctionDef):
        return not is_kernel(node)
    return isinstance(node, ast.ClassDef) and any(
        isinstance(part, ast.FunctionDef) and part.name == "forward" for part in node.body
    )


def answered(item: SweepItem, source: Path, candidates: Path) -> SweepItem:
    """The item with the candidate of the same name. Raises BadInput where there is none."""
    path = candidates / f"{item.key.replace(':', '_')}.py"
    if not path.is_file():
        raise BadInput(
            f"{item.key} of {source} has no candidate: there is no {path}.",
            "Write it, or sweep a folder that holds only what has one.",
        )
    return replace(item, candidate=Target(path=path))


def constructed_alike(item: SweepItem, out: Path) -> SweepItem:
    """The item; its ModelNew is constructed as the problem's Model where it does not say how."""
    if item.problem is None or item.candidate is None or item.candidate.name:
        return item
    path = with_init_inputs(item.candidate.path, item.problem.path, out / "items")
    return replace(item, candidate=Target(path=path))


def pairs_in(source: Path, out: Path) -> Iterator[SweepItem]:
    """One item a line: `{"problem": PATH or TEXT, "candidate": PATH or TEXT}`, and the other FIELDS.

    What is no path of a Python file is a text; paths are relative to the file.
    """
    for number, line in enumerate(source.read_text(encoding="utf-8-sig", errors="replace").splitlines(), 1):
        if line.strip():
            item = pair_of(line, f"{source}, line {number}", source.parent, out)
            yield item if item.key else replace(item, key=str(number))


def pair_of(line: str, place: str, folder: Path, out: Path) -> SweepItem:
    """The item; its key is empty where the line names none."""
    try:
        values = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{place} is no JSON: {error}.", "Write one object a line.") from None
    if not isinstance(values, dict) or not {"problem", "candidate"} & values.keys():
        raise BadInput(f"{place} names neither a problem nor a candidate.", "Name at least one of them.")
    if unknown := sorted(values.keys() - {*FIELDS}):
        raise BadInput(f"{place}: {unknown[0]} is no field.", f"The fields are {', '.join(FIELDS)}.")
    sides = {side: written(values[side], place, folder, out) for side in FIELDS[:2] if side in values}
    listed = (tuple(values.get(name, ())) for name in ("input", "dim", "require"))
    targets = {side: target_in(path) for side, path in sides.items()}
    key, backward = str(values.get("key") or ""), bool(values.get("backward"))
    return SweepItem(key, **targets, options=parse_options(*listed), backward=backward)


def written(value: Any, place: str, folder: Path, out: Path) -> str:
    """The target that a line names; a text is written to a file first. Raises BadInput for anything else."""
    if not isinstance(value, str):
        raise BadInput(f"{place}: {value!r} is neither a path nor a text.", "Write it as a string.")
    if not is_path(value):
        return str(file_of(value, out / "items"))
    path, colon, name = value.partition(".py:")
    file = folder / (path + ".py" if colon else value)
    if not file.is_file():
        raise BadInput(f"{place}: there is no {file}.", "Name a file relative to this one.")
    return f"{file.resolve()}:{name}" if colon else str(file.resolve())


def target_in(text: str) -> Target:
    path, colon, name = text.partition(".py:")
    return Target(path=Path(path + ".py"), name=name) if colon else Target(path=Path(text))


def refuse_equal_keys(items: Sequence[SweepItem]) -> None:
    """Raises BadInput where two items have one key."""
    seen: set[str] = set()
    for item in items:
        if item.key in seen:
            raise BadInput(f"Two items are called {item.key}.", 'Give each line a "key" of its own.')
        seen.add(item.key)
