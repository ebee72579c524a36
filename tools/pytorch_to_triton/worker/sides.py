"""Which copies of the files each side of a validation loads."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from .staging import only, stage, without

ROLES = {"reference": ("reference", "Model"), "candidate": ("run", "ModelNew")}
"""What a target without a name may stand for."""
DRAWS_INPUTS = ("inputs", "get_inputs")
CONSTRUCTS = ("get_init_inputs",)

Target = Mapping[str, Any]


def stage_sides(reference: Target, candidate: Target, folder: Path) -> dict[str, dict[str, str]]:
    """Write the staged copies: by side, the copy of each file by its absolute path.

    The candidate's process sees the files of both sides without a reference, whether the one it is compared
    with or another. The reference's process sees, of a file that holds both, what the reference needs; a
    file of its own it loads as it is.
    """
    asked, offered = names_of(reference, "reference"), names_of(candidate, "candidate")
    ours, theirs = path_of(candidate), path_of(reference)
    staged: dict[str, dict[str, str]] = {"reference": {}, "candidate": {}}
    for path in {ours, theirs}:
        if (source := text_of(path)) is None:
            continue
        hidden = {*asked, *DRAWS_INPUTS} if path == theirs else {*ROLES["reference"], *DRAWS_INPUTS}
        shown = offered if path == ours else ()
        copy = without(source, hidden, {*shown, *CONSTRUCTS})
        staged["candidate"][str(path)] = str(stage(path, copy, folder / "candidate"))
        if path == ours == theirs:
            copy = only(source, {*asked, *DRAWS_INPUTS, *CONSTRUCTS})
            staged["reference"][str(path)] = str(stage(path, copy, folder / "reference"))
    return staged


def names_of(target: Target, role: str) -> Collection[str]:
    return (target["name"],) if target["name"] else ROLES[role]


def path_of(target: Target) -> Path:
    return Path(target["path"]).resolve()


def text_of(path: Path) -> str | None:
    """The file's text, None where there is none to read: loading tells the user why."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
