"""Values that a shell may complete, by the names of parameters.

Those from the folder and its files are read without executing anything.
"""

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton import places
from pytorch_to_triton.targets.names_in_text import public_definitions, text_and_tree

if TYPE_CHECKING:
    from typer import Context

_DECLARATIONS = {"input": "INPUTS", "dim": "DIMS"}
_RECORD = "session.json"
_FOLDERS_SEARCHED = ("sessions", ".")


def completer(parameter: str) -> "Callable[[Context, str], list[str]] | None":
    """What completes a parameter's values; None where anything may be meant."""
    values = COMPLETERS.get(parameter)
    if parameter in _DECLARATIONS:
        return lambda ctx, incomplete: list(assignments(incomplete, parameter, target_in(ctx)))
    if values is None:
        return None
    return lambda ctx, incomplete: list(values(incomplete))


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
    folders_of_sessions = [
        str(record.parent)
        for folder in _FOLDERS_SEARCHED
        for record in sorted(Path(folder).glob(f"*/{_RECORD}"))
    ]
    matching = [path for path in folders_of_sessions if path.startswith(begun)]
    yield from matching or folders(begun)


def target_in(context: "Context") -> str:
    """What the command line names to be converted or checked; empty where it names nothing yet."""
    named = (context.params.get("target"), context.params.get("kernel"), *context.args)
    return next((str(target) for target in named if target), "")


def assignments(begun: str, option: str, target: str) -> Iterator[str]:
    """`M=` and `N=`: the names that the target's file declares."""
    if "=" in begun:
        return
    path, colon, name = target.rpartition(":")
    file = Path(path if colon and name.isidentifier() else target).expanduser()
    for statement in parse_file(file).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            named = {target.id for target in statement.targets if isinstance(target, ast.Name)}
            if _DECLARATIONS[option] in named:
                keys = (key.value for key in statement.value.keys if isinstance(key, ast.Constant))
                yield from (f"{key}=" for key in keys if isinstance(key, str))


def defined_in(file: Path) -> list[str]:
    """The public functions and classes that a file defines, in its order; empty where it does not parse."""
    return [definition.name for definition in public_definitions(parse_file(file))]


def parse_file(file: Path) -> ast.Module:
    """The file's syntax tree; an empty one where there is no such file, or no Python in it."""
    parsed = text_and_tree(file)
    return parsed[1] if parsed else ast.Module(body=[], type_ignores=[])


def architectures(begun: str) -> Iterable[str]:
    """The GPUs that kernels can be compiled for."""
    from pytorch_to_triton.hardware.architectures import ARCHITECTURES

    return ARCHITECTURES


def data_sheets(begun: str) -> Iterable[str]:
    """The GPUs whose limits are known."""
    from pytorch_to_triton.hardware.datasheets import NAMES

    return NAMES


def rules(begun: str) -> Iterator[str]:
    """The rules of audit."""
    from pytorch_to_triton.audit.registry import all_rules

    return (rule.name for rule in all_rules())


def pages(begun: str) -> Iterator[str]:
    """Guides and rules, as `docs read` names them."""
    yield from (f"guides/{file.stem}" for file in sorted(places.shipped("docs_cache/guides").glob("*.md")))
    yield from (f"rules/{name}" for name in rules(begun))


COMPLETERS: Mapping[str, Callable[[str], Iterable[str]]] = {
    **dict.fromkeys(("target", "kernel", "reference", "against", "example", "paths", "file"), targets),
    **dict.fromkeys(("into", "below", "allow_dir"), folders),
    **dict.fromkeys(("python", "baseline"), paths),
    "session": sessions,
    "arch": architectures,
    "estimate": data_sheets,
    "rule": rules,
    "name": lambda begun: ("names", *pages(begun)),
}
