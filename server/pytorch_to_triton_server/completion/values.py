"""Values that a shell may complete, from the folder and its files, which are parsed and never executed."""

import ast
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pytorch_to_triton import places

_DECLARATIONS = {"input": "INPUTS", "dim": "DIMS"}
_RECORD = "session.json"
_FOLDERS_SEARCHED = ("sessions", ".")


def targets(begun: str) -> Iterator[str]:
    """Folders and Python files; behind a file's colon, the functions and classes in it."""
    path, colon, _ = begun.rpartition(":")
    if colon and path.endswith(".py"):
        yield from (f"{path}:{name}" for name in defined_in(Path(path).expanduser()))
        return
    yield from paths(begun, lambda entry: entry.name.endswith(".py"))


def paths(begun: str, wanted: Callable[[os.DirEntry[str]], bool] = lambda entry: True) -> Iterator[str]:
    """Folders, with a slash at the end, and the files that are wanted, as `begun` spells their folder."""
    folder, _, name = begun.rpartition("/")
    spelled = f"{folder}/" if "/" in begun else ""
    try:
        entries = sorted(os.scandir(Path(spelled or ".").expanduser()), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") and not name.startswith("."):
            continue
        if entry.is_dir():
            yield f"{spelled}{entry.name}/"
        elif wanted(entry):
            yield f"{spelled}{entry.name}"


def folders(begun: str) -> Iterator[str]:
    yield from paths(begun, lambda entry: False)


def sessions(begun: str) -> Iterator[str]:
    """Folders of sessions where `convert start` puts them, else any folder."""
    found = [
        str(record.parent)
        for folder in _FOLDERS_SEARCHED
        for record in sorted(Path(folder).glob(f"*/{_RECORD}"))
    ]
    matching = [path for path in found if path.startswith(begun)]
    yield from matching or folders(begun)


def assignments(begun: str, option: str, target: str) -> Iterator[str]:
    """`M=` and `N=`: the names that the target's file declares."""
    if "=" in begun:
        return
    path, colon, name = target.rpartition(":")
    file = Path(path if colon and name.isidentifier() else target).expanduser()
    for statement in parsed(file).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            named = {one.id for one in statement.targets if isinstance(one, ast.Name)}
            if _DECLARATIONS[option] in named:
                keys = (key.value for key in statement.value.keys if isinstance(key, ast.Constant))
                yield from (f"{key}=" for key in keys if isinstance(key, str))


def defined_in(file: Path) -> list[str]:
    """The public functions and classes that a file defines, in its order; empty where it does not parse."""
    kinds = ast.FunctionDef, ast.ClassDef
    return [one.name for one in parsed(file).body if isinstance(one, kinds) and not one.name.startswith("_")]


def parsed(file: Path) -> ast.Module:
    """The file's syntax tree; an empty one where there is no such file, or no Python in it."""
    try:
        source = places.read_regular(file)
        # What is compiled without an encoding's line is UTF-8; a long line of digits is not our concern.
        return ast.parse(re.sub(rb"\A\xef\xbb\xbf", b"", source))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])
