"""Which names and parameters each release of Triton has: `history.json`, which make_history.py writes."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pytorch_to_triton.triton_api.surface import (
    Kind,
    ParameterKind,
    PublicName,
    PublicParameter,
    Standing,
    Surface,
)

FILE = Path(__file__).with_name("history.json")

_LINE = re.compile(
    rf"(?:(?P<standing>{'|'.join(get_args(Standing))}) )?(?P<kind>{'|'.join(get_args(Kind))})"
    r"(?P<called>\((?P<parameters>.*)\))?"
)
_ALIAS = "= "


@dataclass(frozen=True, eq=False)
class History:
    """What is known of some releases.

    A name's line, such as `builtin(pointer, mask=, *, volatile=)` or `= triton.language.exp` for an alias,
    holds from the release it stands beside until the next one; None: the name is not there.
    """

    releases: tuple[str, ...]
    """The oldest first, one for each minor version."""
    names: Mapping[str, Mapping[str, str | None]]
    """Dotted path, then release, then line."""

    def surface(self, version: str | None) -> Surface:
        """What a Triton has, by the newest release here that is not newer; None: by the newest of all."""
        at = max((r for r in self.releases if _minor(r) <= _minor(version or r)), key=_minor, default=None)
        release = at or self.releases[0]
        complete = version is None or _minor(version) <= _minor(self.releases[-1])
        surface = _surface(self, release)
        return surface if complete else surface.model_copy(update={"complete": False})

    def having(self, path: str, keyword: str | None = None) -> tuple[str, ...]:
        """The releases in which a name can be used, or in which it takes a keyword."""
        return tuple(release for release in self.releases if _has(_surface(self, release), path, keyword))

    def adding(self, read: Surface) -> "History":
        """The same with one more release; one of the same minor version is replaced."""
        lines = {r: self.lines(r) for r in self.releases if _minor(r) != _minor(read.version)}
        lines[read.version] = dict(_entries_as_text(read))
        releases = tuple(sorted(lines, key=_minor))
        paths = sorted({path for known in lines.values() for path in known})
        return History(releases, {path: _changes(path, [(r, lines[r]) for r in releases]) for path in paths})

    def text(self) -> str:
        """The JSON of `history.json`, one name a line."""
        names = ",\n".join(f"{json.dumps(path)}: {json.dumps(line)}" for path, line in self.names.items())
        return f'{{"releases": {json.dumps(self.releases)}, "names": {{\n{names}\n}}}}\n'

    def lines(self, release: str) -> dict[str, str]:
        """The line of every name that a release has."""
        upto = [r for r in self.releases if _minor(r) <= _minor(release)]
        newest = {path: [changes[r] for r in upto if r in changes] for path, changes in self.names.items()}
        return {path: line for path, lines in newest.items() if lines and (line := lines[-1])}


@cache
def history() -> History:
    """The history that ships with the package."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return History(tuple(content["releases"]), content["names"])


@cache
def _surface(known: History, release: str) -> Surface:
    lines = known.lines(release)
    entries = {path: _entry(line) for path, line in lines.items() if not line.startswith(_ALIAS)}
    members: dict[str, list[str]] = {path: [] for path in entries}
    aliases: dict[str, list[str]] = {path: [] for path in entries}
    for path, line in lines.items():
        owner, _, name = path.rpartition(".")
        if owner in members:
            members[owner].append(name)
        if line.startswith(_ALIAS):
            aliases[line.removeprefix(_ALIAS)].append(path)
    return Surface(
        version=release,
        entries={
            path: entry.model_copy(
                update={
                    "members": None if entry.members is None else tuple(members[path]),
                    "aliases": tuple(aliases[path]),
                }
            )
            for path, entry in entries.items()
        },
    )


def _changes(path: str, lines_of: list[tuple[str, dict[str, str]]]) -> dict[str, str | None]:
    """A name's line at each release where it differs from the release before."""
    changes: dict[str, str | None] = {}
    before = None
    for release, lines in lines_of:
        if (line := lines.get(path)) != before:
            changes[release] = before = line
    return changes


def _entries_as_text(read: Surface) -> Iterator[tuple[str, str]]:
    for path, entry in read.entries.items():
        yield path, _line(entry)
        yield from ((alias, f"{_ALIAS}{path}") for alias in entry.aliases)


def _line(entry: PublicName) -> str:
    standing = "" if entry.standing == "current" else f"{entry.standing} "
    if entry.kind == "module":
        return entry.kind if entry.members is None else f"{entry.kind}()"
    called = "" if entry.parameters is None else f"({', '.join(_marks(entry.parameters))})"
    return f"{standing}{entry.kind}{called}"


def _marks(parameters: tuple[PublicParameter, ...]) -> Iterator[str]:
    """As Python writes parameters, but for the defaults, of which only the sign stays."""
    starred = False
    for parameter in parameters:
        if parameter.kind == "keyword_only" and not starred:
            yield "*"
        starred |= parameter.kind in ("keyword_only", "var_positional")
        stars = {"var_positional": "*", "var_keyword": "**"}.get(parameter.kind, "")
        yield f"{stars}{parameter.name}{'' if parameter.default is None else '='}"


def _entry(line: str) -> PublicName:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{FILE.name} has the line {line!r}")
    parameters = None if match["called"] is None else tuple(_parameters(match["parameters"]))
    kind: Kind = match["kind"]  # type: ignore[assignment]
    standing: Standing = match["standing"] or "current"  # type: ignore[assignment]
    if kind == "module":
        return PublicName(kind=kind, parameters=None, members=None if parameters is None else ())
    return PublicName(
        kind=kind, parameters=parameters, standing=standing, members=() if kind == "class" else None
    )


def _parameters(text: str) -> Iterator[PublicParameter]:
    kind: ParameterKind = "positional_or_keyword"
    for mark in text.split(", ") if text else ():
        if mark == "*":
            kind = "keyword_only"
            continue
        stars: Literal[0, 1, 2] = 2 if mark.startswith("**") else 1 if mark.startswith("*") else 0
        own: tuple[ParameterKind, ...] = (kind, "var_positional", "var_keyword")
        default = "..." if mark.endswith("=") else None
        yield PublicParameter(name=mark.strip("*="), kind=own[stars], default=default)
        if stars == 1:
            kind = "keyword_only"


def _has(surface: Surface, path: str, keyword: str | None) -> bool:
    entry = surface.find(path)
    if entry is None or entry.standing == "removed":
        return False
    return keyword is None or keyword in entry.keywords


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
