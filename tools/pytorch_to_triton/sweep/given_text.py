"""Problems and candidates as somebody gives them: a path, or the text of a file."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.places import write_atomically
from pytorch_to_triton.sweep.items import digest_of, text_of

INIT = "get_init_inputs"
_PATH = re.compile(r"[^\n\0]{1,4096}\.py(:\w+)?")


def is_path(value: str) -> bool:
    """Whether it is the path of a Python file, `path.py` or `path.py:name`; anything else is a text."""
    return _PATH.fullmatch(value) is not None


def file_of(text: str, folder: Path) -> Path:
    """A file in the folder with this text, whatever a model has written; one of the same text is the same."""
    plain = text.encode("utf-8", "replace").decode()
    file = folder / f"{digest_of(plain)}.py"
    if not file.exists():
        write_atomically(file, plain)
    return file


def with_init_inputs(candidate: Path, problem: Path, folder: Path) -> Path:
    """The candidate; where it is constructed as the problem is and does not say how, a copy that says it.

    `get_init_inputs`, and the numbers that it names, stand at the copy's end.
    """
    answer, asked = text_of(candidate), text_of(problem)
    if INIT in answer or INIT not in asked or "ModelNew" not in answer:
        return candidate
    try:
        taken = list(needed(ast.parse(asked), {INIT}))
        defined = names_in(ast.parse(answer))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return candidate
    added = [ast.unparse(node) for node in taken if not names_in(ast.Module([node], [])) & defined]
    return file_of("\n\n".join([answer.rstrip("\n"), *added]) + "\n", folder)


def needed(tree: ast.Module, names: set[str]) -> Iterator[ast.stmt]:
    """The functions and assignments that define the names, and those that these name, in the file's order."""
    statements = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.Assign)]
    wanted, before = set(names), set[str]()
    while wanted != before:
        before = set(wanted)
        for node in statements:
            if names_in(ast.Module([node], [])) & wanted:
                wanted |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return (node for node in statements if names_in(ast.Module([node], [])) & wanted)


def names_in(tree: ast.Module) -> set[str]:
    """What the file's functions, classes and assignments are called."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
