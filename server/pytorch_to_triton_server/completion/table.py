"""Commands and options as plain data, kept in the cache until the program changes: making it takes longer
than a shell may wait."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from pytorch_to_triton import places

if TYPE_CHECKING:
    from pytorch_to_triton_server.command_parameters import CommandParameter

_SERVER = Path(__file__).parents[1]
_READ = (_SERVER, places.PACKAGE / "schema", places.PACKAGE / "hardware", places.PACKAGE / "audit" / "rules")
"""What the table is made from."""


class Taken(TypedDict):
    """An option or an argument."""

    name: str
    """`--fail-on`; of an argument the parameter's name."""
    help: str
    switch: bool
    repeated: bool
    choices: list[str]


class CommandRow(TypedDict):
    """A command or a group; its commands are rows of their own."""

    help: str
    arguments: list[Taken]
    options: list[Taken]
    group: bool
    alone: str
    """The path of the command that a group stands for where none of its commands is named; else empty."""


class CommandTable(TypedDict):
    """What a shell may complete, whatever the folder."""

    commands: dict[str, CommandRow]
    """By path: `docs search`; the program itself by the empty one."""
    values: dict[str, list[str]]
    """Of parameters that take one of many words: GPUs, rules, pages."""


def read_table(every_command: Callable[[], Any]) -> CommandTable:
    """From the cache if nothing has changed since, else made again, and kept if the cache can be written."""
    fingerprint = fingerprint_of_program()
    file = places.cache() / "completion" / f"{hashlib.sha256(bytes(_SERVER)).hexdigest()[:16]}.json"
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["fingerprint"] == fingerprint:
            known: CommandTable = kept["table"]
            return known
    except (OSError, ValueError, KeyError, TypeError):
        pass
    table: CommandTable = {"commands": rows(every_command(), ""), "values": long_values()}
    with suppress(OSError):
        places.write_atomically(file, json.dumps({"fingerprint": fingerprint, "table": table}))
    return table


def fingerprint_of_program() -> str:
    """Another one whenever a file that the table is made from changes."""
    files = (file for folder in _READ for file in folder.rglob("*.py"))
    seen = sorted(f"{file}:{file.stat().st_mtime_ns}" for file in files)
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()


def rows(command: Any, path: str) -> dict[str, CommandRow]:
    """A command's own row, and those of the commands in it."""
    from pytorch_to_triton_server.command_classes import WHOLE
    from pytorch_to_triton_server.command_parameters import parameters_of
    from pytorch_to_triton_server.help_page import in_brief

    commands = getattr(command, "commands", {})
    taken = [taken_by(one, name) for one in parameters_of(command) for name in one.names]
    row: CommandRow = {
        "help": in_brief(command),
        "arguments": [one for one in taken if not one["name"].startswith("-")],
        "options": [*(one for one in taken if one["name"].startswith("-")), HELP],
        "group": bool(commands),
        "alone": f"{path} {WHOLE}" if WHOLE in commands else "",
    }
    found = {path: row}
    for name, inner in commands.items():
        found |= rows(inner, f"{path} {name}".strip())
    return found


HELP: Taken = {
    "name": "--help",
    "help": "Show the page of help.",
    "switch": True,
    "repeated": False,
    "choices": [],
}


def taken_by(parameter: "CommandParameter", name: str) -> Taken:
    """A parameter as the table has it, by one of its names."""
    return {
        "name": parameter.variable if parameter.positional else name,
        "help": parameter.explanation.split(";")[0],
        "switch": parameter.kind is bool,
        "repeated": parameter.repeated,
        "choices": list(parameter.choices),
    }


def long_values() -> dict[str, list[str]]:
    """By the parameter's name."""
    from pytorch_to_triton.audit.registry import all_rules
    from pytorch_to_triton.hardware.architectures import ARCHITECTURES
    from pytorch_to_triton.hardware.datasheets import SHEETS

    rules = [rule.name for rule in all_rules()]
    guides = sorted(file.stem for file in places.shipped("docs_cache/guides").glob("*.md"))
    pages = ["names", *(f"guides/{name}" for name in guides), *(f"rules/{name}" for name in rules)]
    sheets = [sheet.name for sheet in SHEETS]
    return {"arch": list(ARCHITECTURES), "estimate": sheets, "rule": rules, "name": pages}
