"""Which copies of the files each side of a validation loads."""

import importlib.util
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from .staging import only, stage, without
from .target import NAMES_BY_ROLE

INPUT_FUNCTIONS = ("inputs", "get_inputs")
CONSTRUCTOR_FUNCTIONS = ("get_init_inputs",)
DECLARATIONS = ("INPUTS", "DIMS", "REQUIRES", "COMPARE", "BYTES", "FLOPS")

ENCODING = re.compile(r"\A((?:.*\n)?[ \t\f]*#.*?coding[:=][ \t]*)[-\w.]+")
"""A comment in the first two lines that names another encoding (PEP 263)."""

Target = Mapping[str, Any]


def stage_candidate(reference: Target, candidate: Target, folder: Path) -> dict[str, str]:
    """Write the copies that the candidate's process loads, by the absolute paths of their originals.

    It sees the files of both sides without a reference, whether the one it is compared with or another.
    """
    referenced, offered = names_of(reference, "reference"), names_of(candidate, "candidate")
    ours, theirs = path_of(candidate), path_of(reference)
    staged = {}
    for path in {ours, theirs}:
        if (source := text_of(path)) is not None:
            hidden = {*(referenced if path == theirs else NAMES_BY_ROLE["reference"]), *INPUT_FUNCTIONS}
            shown = offered if path == ours else ()
            copy = without(source, hidden, {*shown, *CONSTRUCTOR_FUNCTIONS})
            staged[str(path)] = str(stage(path, copy, folder))
    return staged


def stage_reference(reference: Target, candidate: Target, folder: Path) -> dict[str, str]:
    """Write the copy that the reference's process loads: of a file that holds both, what the reference needs.

    A reference in a file of its own is loaded as it is.
    """
    path = path_of(reference)
    if path != path_of(candidate) or (source := text_of(path)) is None:
        return {}
    needed = {*names_of(reference, "reference"), *INPUT_FUNCTIONS, *CONSTRUCTOR_FUNCTIONS, *DECLARATIONS}
    copy = only(source, needed)
    return {str(path): str(stage(path, copy, folder))}


def names_of(target: Target, role: str) -> Collection[str]:
    return (target["name"],) if target["name"] else NAMES_BY_ROLE[role]


def path_of(target: Target) -> Path:
    return Path(target["path"]).resolve()


def text_of(path: Path) -> str | None:
    """The file's text, to be written in UTF-8; None where it cannot be read: loading reports why."""
    try:
        text = importlib.util.decode_source(path.read_bytes())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    return ENCODING.sub(r"\1utf-8", text, count=1)
