"""A command's page of help, laid out as a manual's: as narrow as the terminal, never wider than one reads."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from pytorch_to_triton_server.command_parameters import CommandParameter, parameters_of
from pytorch_to_triton_server.examples import EXAMPLES, PANELS

_WIDEST, _NARROWEST = 100, 40
_SIDE_BY_SIDE = 72
"""From this width on, names and their explanations are two columns."""
_NAMES = 30
"""The most columns of names."""
EXIT_STATUS = (
    "0 yes; 1 no (a wrong or slower kernel, findings, a stage that did not pass); "
    "2 a mistake in the call, the file or its declaration; 3 the machine does not have what is needed; "
    "4 the function cannot be converted; 5 a defect in this program; 130 interrupted."
)
_VALUES: dict[type, str] = {bool: "", int: "N", float: "NUMBER"}
Entry = tuple[str, str]
"""A name, and what it is."""


def page(context: Any) -> str:
    """The page of the command of a click context; headings and names are bold on a terminal."""
    command, width = context.command, page_width()
    path = command_path(context)
    blocks = [[heading("Usage"), f"  {usage(context)}"], *prose(command.help or "", width)]
    for title, entries in sections(context):
        blocks.append([heading(title), *laid_out(entries, width)])
    blocks.append([heading("Exit status"), *wrapped(EXIT_STATUS, width, "  ")])
    if examples := EXAMPLES.get(path):
        lines = [line for one in examples for line in (f"  {one.typed}", f"      {one.does}")]
        blocks.append([heading("Examples"), *lines])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def page_width() -> int:
    """Of the terminal, within what one likes to read."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))


def command_path(context: Any) -> str:
    """`docs search`; empty for the program itself."""
    _, _, path = context.command_path.partition(" ")
    return str(path)


def usage(context: Any) -> str:
    """`pytorch-to-triton validate KERNEL [OPTIONS]`."""
    if getattr(context.command, "commands", None):
        return f"{context.command_path} COMMAND ..."
    arguments = [argument(one) for one in parameters_of(context.command) if one.positional]
    return " ".join([context.command_path, *arguments, "[OPTIONS]"])


def prose(help_text: str, width: int) -> Iterator[list[str]]:
    """Its paragraphs."""
    for paragraph in help_text.split("\n\n"):
        yield wrapped(" ".join(paragraph.split()), width, "")


def sections(context: Any) -> Iterator[tuple[str, list[Entry]]]:
    """What the command takes: commands by what they are for, arguments, options."""
    commands = getattr(context.command, "commands", {})
    if commands and not command_path(context):
        for title, names in PANELS.items():
            yield title, [(name, in_brief(commands[name])) for name in names if name in commands]
    elif commands:
        yield "Commands", [(name, in_brief(command)) for name, command in commands.items()]
    takes = parameters_of(context.command)
    if arguments := [(argument(one), one.explanation) for one in takes if one.positional]:
        yield "Arguments", arguments
    yield "Options", [*(option(one) for one in takes if not one.positional), ("--help", "Show this page.")]


def argument(parameter: CommandParameter) -> str:
    """`KERNEL`; `PATHS...` where there may be several."""
    return parameter.names[0] + ("..." if parameter.repeated else "")


def option(parameter: CommandParameter) -> Entry:
    """`--seed N` and what it is for, with its default where the explanation does not say it."""
    said, takes = [parameter.explanation], value_of(parameter)
    if parameter.choices and takes == "WORD":
        said.append(f"(one of: {', '.join(parameter.choices)})")
    if parameter.repeated and "repeated" not in parameter.explanation:
        said.append("(may be repeated)")
    if parameter.default and parameter.kind is not bool and "default:" not in parameter.explanation.lower():
        said.append(f"[default: {parameter.default}]")
    return f"{', '.join(parameter.names)} {takes}".rstrip(), " ".join(said)


def value_of(parameter: CommandParameter) -> str:
    """What follows an option: a number, one of several words, a text; nothing after a switch."""
    if not parameter.choices:
        return _VALUES.get(parameter.kind, "TEXT")
    choices = "|".join(parameter.choices)
    return choices if len(choices) <= _NAMES and " " not in choices else "WORD"


def in_brief(command: Any) -> str:
    """The first sentence of its help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]


def laid_out(entries: Sequence[Entry], width: int) -> Iterator[str]:
    """Names beside their explanations, or above them where there is no room."""
    widest = max((len(name) for name, _ in entries if len(name) <= _NAMES), default=0)
    indent = " " * (widest + 4 if width >= _SIDE_BY_SIDE else 6)
    for name, text in entries:
        lines = wrapped(text, width, indent)
        shown = f"  {bold(name)}"
        if width >= _SIDE_BY_SIDE and len(name) <= widest and lines:
            yield shown + " " * (widest - len(name) + 2) + lines.pop(0).lstrip()
        else:
            yield shown
        yield from lines


def wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def heading(text: str) -> str:
    return f"{bold(text)}:"


def bold(text: str) -> str:
    """On a terminal that has it, unless NO_COLOR asks for none."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\033[1m{text}\033[0m"
