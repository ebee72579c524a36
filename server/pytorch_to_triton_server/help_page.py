"""A command's page of help, as narrow as the terminal and never wider than one reads."""

import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from pytorch_to_triton_server.examples import EXAMPLES, PANELS

_WIDEST, _NARROWEST = 100, 40
_NAMES = 30
"""The most columns of names."""
EXIT_STATUS = (
    "0 yes; 1 no (a wrong or slower kernel, findings, a stage that did not pass); "
    "2 a mistake in the call, the file or its declaration; 3 something needed is missing on this machine; "
    "4 the function cannot be converted; 5 a defect in this program; 130 interrupted."
)
_VALUES = {int: "N", float: "NUMBER"}
Entry = tuple[str, str]
"""A name, and what it is."""
_JSON = "--json"
_SWITCHES = (_JSON, "--timings")
"""Those of every tool's command."""
AsJson = Annotated[bool, typer.Option(_JSON, help="Print only the result, as JSON.")]
WHOLE = "all"
"""The command that stands for its group, which may be left out: `convert TARGET`."""


def write_page(command: Any, ctx: Any, formatter: Any) -> None:
    """The page of a command; headings and names are bold on a terminal."""
    formatter.width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))
    with formatter.section(bold("Usage")):
        formatter.write_text(usage(ctx))
    for paragraph in (command.help or "").split("\n\n"):
        formatter.write_paragraph()
        formatter.write_text(" ".join(paragraph.split()))
    for title, entries in sections(ctx):
        with formatter.section(bold(title)):
            formatter.write_dl([(bold(name), text) for name, text in entries], col_max=_NAMES)
    with formatter.section(bold("Exit status")):
        formatter.write_text(EXIT_STATUS)
    if examples := EXAMPLES.get(command_path(ctx)):
        with formatter.section(bold("Examples")):
            for example in examples:  # to be copied: not broken
                formatter.write(f"  {example.typed}\n      {example.does}\n")


def command_path(context: Any) -> str:
    """`docs search`; empty for the program itself."""
    return str(context.command_path.partition(" ")[2])


def usage(context: Any) -> str:
    """`pytorch-to-triton validate KERNEL [OPTIONS]`."""
    if getattr(context.command, "commands", None):
        return f"{context.command_path} COMMAND ..."
    arguments = [argument(parameter) for parameter in context.command.params if is_argument(parameter)]
    return " ".join([context.command_path, *arguments, "[OPTIONS]"])


def sections(context: Any) -> Iterator[tuple[str, list[Entry]]]:
    """What the command takes: commands by what they are for, arguments, options."""
    commands = getattr(context.command, "commands", {})
    if commands and not command_path(context):
        for title, names in PANELS.items():
            yield title, [(name, in_brief(commands[name])) for name in names if name in commands]
    elif commands:
        yield "Commands", [(name, in_brief(command)) for name, command in commands.items()]
    takes = context.command.params
    if arguments := [(argument(p), p.help or "") for p in takes if is_argument(p)]:
        yield "Arguments", arguments
    kinds = kinds_of(context.command)
    options = [option(parameter, kinds[parameter.name]) for parameter in takes if not is_argument(parameter)]
    yield "Options", [*options, ("--help", "Show this page.")]


def is_argument(parameter: Any) -> bool:
    """Whether one of click's parameters is positional."""
    return bool(parameter.param_type_name == "argument")


def argument(parameter: Any) -> str:
    """`KERNEL`; `PATHS...` where there may be several."""
    return str(parameter.name).upper() + ("..." if parameter.nargs == -1 else "")


def option(parameter: Any, kind: Any) -> Entry:
    """`--seed N` and what it is for, with its default where the explanation does not say it."""
    explanation, default = parameter.help or "", parameter.default
    said, takes = [explanation], "" if parameter.is_flag else value_of(kind)
    if takes == "WORD":
        said.append(f"(one of: {', '.join(get_args(kind))})")
    if parameter.multiple and "repeated" not in explanation:
        said.append("(may be repeated)")
    if default and takes and "default:" not in explanation.lower():
        said.append(f"[default: {default:g}]" if isinstance(default, float) else f"[default: {default}]")
    return f"{', '.join((*parameter.opts, *parameter.secondary_opts))} {takes}".rstrip(), " ".join(said)


def value_of(kind: Any) -> str:
    """What follows an option: a number, one of several words, a text."""
    if get_origin(kind) is not Literal:
        return _VALUES.get(kind, "TEXT")
    choices = "|".join(get_args(kind))
    return choices if len(choices) <= _NAMES and " " not in choices else "WORD"


def kinds_of(command: Any) -> dict[str, Any]:
    """What each parameter of a command takes, by its name: `int` of `Annotated[int | None, ...]`."""
    taken = inspect.signature(command.callback).parameters.values() if command.callback else ()
    kinds = {p.name: get_args(p.annotation)[0] for p in taken if get_args(p.annotation)}
    unions = {name: get_args(kind) for name, kind in kinds.items() if get_origin(kind) in (Union, UnionType)}
    return kinds | {name: next(k for k in members if k is not NoneType) for name, members in unions.items()}


def in_brief(command: Any) -> str:
    """The first sentence of its help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]


def bold(text: str) -> str:
    """On a terminal that has it, unless NO_COLOR asks for none."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\033[1m{text}\033[0m"


class DocumentedCommand(TyperCommand):
    """A command with a page of help that ends with examples."""

    format_help = write_page

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if all(parameter.name != "json" for parameter in self.params):
            # It has no result to print; its errors are still JSON, as `ctx.obj` says.
            args = [word for word in args if word != _JSON]
        return super().parse_args(ctx, args)


class DocumentedGroup(TyperGroup):
    """A group of commands with a page of help; `--json` and `--timings` may come before its command."""

    format_help = write_page

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        leading = next((i for i, word in enumerate(args) if not word.startswith("-")), len(args))
        options, rest = args[:leading], args[leading:]
        early = [word for word in options if word in _SWITCHES]
        options = [word for word in options if word not in _SWITCHES]
        later = [word for word in early if word not in rest] if rest else []
        args = [*options, *rest, *later]
        if WHOLE in self.commands and args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = args if self._is_misspelt(args[0]) else [WHOLE, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and what the one that may be left out takes first."""
        whole = self.commands.get(WHOLE)
        return super().shell_complete(ctx, incomplete) + (
            whole.params[0].shell_complete(ctx, incomplete) if whole else []
        )

    def _is_misspelt(self, word: str) -> bool:
        """Whether it is nearly one of the commands, and names no file."""
        return ".py" not in word and bool(get_close_matches(word, self.commands))
