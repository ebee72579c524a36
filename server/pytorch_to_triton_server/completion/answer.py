"""Which words may follow what was typed; nothing but the standard library is loaded for it."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pytorch_to_triton_server.completion import values
from pytorch_to_triton_server.completion.table import CommandRow, CommandTable, Taken, read_table

ASK = "__complete"
"""The command by which a shell's script asks; no page of help lists it."""
_OPEN = ("/", "=", ".py")
"""Endings of words that may go on: behind a file comes a colon and a name."""
_TARGETS = frozenset({"target", "kernel", "reference", "against", "example", "paths", "file"})
_FOLDERS = frozenset({"into", "below", "allow_dir"})
_PATHS = frozenset({"python", "baseline"})
Candidate = tuple[str, str]
"""A word, and what it means."""


def answer(given: Sequence[str], every_command: Callable[[], Any]) -> int:
    """Print what may follow, a line each, as the shell's script reads it; `given` is what the script sends.

    Of bash, the line up to the cursor and the characters at which it splits words; of others, the words, the
    last of which is begun. `every_command` makes the commands, where they are not known from another time.
    """
    shell, *rest = given
    words = split(rest[0])[1:] if shell == "bash" else rest
    found = dict(candidates(read_table(every_command), words))  # each word once
    for word, text in found.items():
        if shell == "bash":
            print(for_bash(word, words[-1], rest[1]))
        else:
            print(f"{word}\t{text}")
    return 0


def split(line: str) -> list[str]:
    """The words of a command line whose last word is begun, perhaps not even that."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return [*words, ""] if not closing and line[-1:].isspace() and line[-2:-1] != "\\" else words
    return line.split(" ")


def for_bash(word: str, begun: str, breaks: str) -> str:
    """A word with the space behind it where it is whole, without what bash takes for an earlier word."""
    earlier = max((begun.rfind(mark) + 1 for mark in ":=" if mark in breaks), default=0)
    return shlex.quote(word[earlier:]) + ("" if word.endswith(_OPEN) else " ")


def candidates(table: CommandTable, words: Sequence[str]) -> Iterator[Candidate]:
    """What may take the place of the last word."""
    *before, begun = words or [""]
    path, row, given = walked(table, before)
    behind = option_of(row, given[-1]) if given else None
    name, equals, value = begun.partition("=")
    if behind:
        yield from starting(begun, meant(table, behind, begun, row, given))
    elif equals and (assigned := option_of(row, name)):
        found = starting(value, meant(table, assigned, value, row, given))
        yield from ((f"{name}={word}", text) for word, text in found)
    elif begun.startswith("-"):
        open_options = (one for one in row["options"] if one["repeated"] or one["name"] not in given)
        yield from starting(begun, ((one["name"], one["help"]) for one in open_options))
    else:
        yield from starting(begun, positional(table, path, row, given, begun))


def walked(table: CommandTable, before: Sequence[str]) -> tuple[str, CommandRow, list[str]]:
    """The command that the words name, its row, and the words behind it."""
    path, rest = "", list(before)
    commands = table["commands"]
    while rest and commands[path]["group"]:
        inner = f"{path} {rest[0]}".strip()
        if inner in commands:
            path, rest = inner, rest[1:]
        elif not rest[0].startswith("-") and commands[path]["alone"]:
            path = commands[path]["alone"]
        elif rest[0].startswith("-"):
            rest = rest[1:]
        else:
            break
    return path, commands[path], rest


def option_of(row: CommandRow, word: str) -> Taken | None:
    """The option that the word is, if a value follows it."""
    return next((one for one in row["options"] if one["name"] == word and not one["switch"]), None)


def positional(
    table: CommandTable, path: str, row: CommandRow, given: Sequence[str], begun: str
) -> Iterator[Candidate]:
    """The commands of a group; else the argument that is next."""
    if row["group"] and given:
        return  # no such command
    if row["group"]:
        depth = len(path.split())
        for name, inner in table["commands"].items():
            if name.startswith(path) and len(name.split()) == depth + 1:
                yield name.split()[-1], inner["help"]
        if alone := row["alone"]:
            yield from positional(table, alone, table["commands"][alone], given, begun)
        return
    taken = row["arguments"]
    index = len(arguments_in(row, given))
    if taken and (index < len(taken) or taken[-1]["repeated"]):
        yield from meant(table, taken[min(index, len(taken) - 1)], begun, row, given)


def arguments_in(row: CommandRow, given: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    return [
        word
        for before, word in zip(["", *given], given, strict=False)
        if not word.startswith("-") and option_of(row, before) is None
    ]


def meant(
    table: CommandTable, one: Taken, begun: str, row: CommandRow, given: Sequence[str]
) -> Iterable[Candidate]:
    """The values that an option or argument takes."""
    name = one["name"].lstrip("-").replace("-", "_")
    words: Iterable[str]
    if one["choices"]:
        words = one["choices"]
    elif name in _TARGETS:
        words = values.targets(begun)
    elif name in _FOLDERS:
        words = values.folders(begun)
    elif name in _PATHS:
        words = values.paths(begun)
    elif name == "session":
        words = values.sessions(begun)
    elif name in ("input", "dim"):
        named = arguments_in(row, given)
        words = values.assignments(begun, name, named[0]) if named else ()
    else:
        words = table["values"].get(name, ())
    return ((word, "") for word in words)


def starting(begun: str, words: Iterable[Candidate]) -> Iterator[Candidate]:
    return ((word, text) for word, text in words if word.startswith(begun))
