"""Problems and candidates as somebody gives them: a path, or the text of a file."""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytorch_to_triton.places import write_atomically
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.sweep.items import SweepItem, digest_of
from pytorch_to_triton.targets.names_in_text import text_and_tree

INIT = "get_init_inputs"
_PATH = re.compile(r"([^\n\0]{1,4096}\.py)(?::(\w+))?")


def target_given(value: str, beside: Path, texts: Path, name: str) -> Target:
    """What a path names, `path.py` or `path.py:name`, relative to the folder `beside`.

    Anything else is a text, which is written to a file in the folder `texts` that has the name in its own.
    Raises FileNotFoundError for a path without a file.
    """
    path = _PATH.fullmatch(value)
    if path is None:
        return Target(path=file_of(value, texts, name))
    file = (beside / path[1]).expanduser().resolve()
    if not file.is_file():
        raise FileNotFoundError(file)
    return Target(path=file, name=path[2])


def file_of(text: str, folder: Path, name: str) -> Path:
    """A file in the folder with this text, whatever a model has written; another text has another file."""
    plain = text.encode("utf-8", "replace").decode()
    called = re.sub(r"[^\w.-]", "_", name)
    file = folder / f"{called}-{digest_of(plain)}.py"
    if not file.exists():
        write_atomically(file, plain)
    return file


def constructed_alike(item: SweepItem, texts: Path) -> SweepItem:
    """The item; where its ModelNew does not say how it is constructed, a copy does, as its problem says it.

    `get_init_inputs`, and what it names, stand at the copy's end.
    """
    if item.problem is None or item.candidate is None or item.candidate.name:
        return item
    answer, asked = text_and_tree(item.candidate.path), text_and_tree(item.problem.path)
    if answer is None or asked is None:
        return item
    there, given = defined_in(answer[1]), defined_in(asked[1])
    if INIT in there or INIT not in given or "ModelNew" not in there:
        return item
    wanted = needed(given, INIT) - there.keys()
    added = dict.fromkeys(node for name, node in given.items() if name in wanted)
    text = "\n\n".join([answer[0].rstrip("\n"), *map(ast.unparse, added)]) + "\n"
    return replace(item, candidate=Target(path=file_of(text, texts, item.candidate.path.stem)))


def needed(given: Mapping[str, ast.stmt], name: str) -> set[str]:
    """The name, and all that its definition names of what is given, directly or not."""
    wanted, waiting = set[str](), [name]
    while waiting:
        wanted.add(defined := waiting.pop())
        named = {part.id for part in ast.walk(given[defined]) if isinstance(part, ast.Name)}
        waiting += (named & given.keys()) - wanted
    return wanted


def defined_in(tree: ast.Module) -> dict[str, ast.stmt]:
    """What the file defines, assigns and imports from others at its top level, by name."""
    names: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Assign):
            names |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: node for alias in node.names}
    return names
