"""Questions about the functions that launch kernels, and about the files around them."""

import ast
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile

_TRIAL = re.compile(
    r"(?:^|_)(?:test|tests|conftest|bench|benchmark|profile|time|warmup|main|demo|check|verify|example)(?:_|$)"
)
_LEVELS = 4
"""How many folders up tests and benchmarks are looked for."""
_HOMES = ("tests", "test", "benchmarks", "benchmark")
_MOST_FILES = 400
TESTS = ("test_*.py", "*_test.py")
BENCHMARKS = ("*bench*.py",)
"""How files of tests and of benchmarks are called."""


def launchers(file: SourceFile) -> Mapping[Function, list[LaunchSite]]:
    """The functions that launch kernels of the file, with what they launch."""
    launches: defaultdict[Function, list[LaunchSite]] = defaultdict(list)
    for launch in file.launches:
        if launch.function:
            launches[launch.function].append(launch)
    return launches


def public_names(file: SourceFile) -> frozenset[str]:
    """The public functions and classes of a file, kernels left out."""
    kernels = {kernel.node for kernel in file.kernels}
    return frozenset(
        node.name
        for node in file.tree.body
        if isinstance(node, Function | ast.ClassDef) and node not in kernels and not node.name.startswith("_")
    )


def is_named_near(names: frozenset[str], path: Path, *patterns: str) -> bool:
    """Whether a file near by whose own name matches uses one of the names."""
    return not all(names.isdisjoint(_words(*file)) for file in files_near(path, *patterns))


def is_trial(file: SourceFile, function: Function | None = None) -> bool:
    """Whether names say that it is a test, a benchmark, a demonstration or the like."""
    folders = {"tests", "test", "benchmarks", "benchmark", "examples"}
    if _TRIAL.search(file.path.stem) or folders & {*file.path.parts[:-1]}:
        return True
    return function is not None and bool(_TRIAL.search(function.name))


def has_comment(function: Function, file: SourceFile) -> bool:
    """Whether a docstring, or a comment above or at its first statement, says what it is for."""
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    around = file.lines[max(first - 2, 0) : function.body[0].lineno]
    return ast.get_docstring(function) is not None or any("#" in line for line in around)


def files_near(path: Path, *patterns: str) -> tuple[tuple[Path, int], ...]:
    """Files near by whose names match, each with the time of its last change in nanoseconds.

    Near by is beside it, and in folders of tests and benchmarks up to the project's own.
    """
    folder = path.absolute().parent
    changes: dict[Path, int] = {}
    for near in (folder, *folder.parents[:_LEVELS]):
        homes = [home for name in _HOMES if (home := near / name).is_dir()]
        files = [Path(root, name) for home in homes for root, _, names in os.walk(home) for name in names]
        files += folder.iterdir() if near == folder and folder.is_dir() else ()
        files = [file for file in files if any(fnmatchcase(file.name, pattern) for pattern in patterns)]
        changes |= {file: changed for file in files if (changed := _time_of_change(file))}
        if (near / ".git").exists() or (near / "pyproject.toml").exists():
            break
    return tuple(itertools.islice(changes.items(), _MOST_FILES))


@lru_cache(maxsize=_MOST_FILES)
def _words(file: Path, changed_ns: int) -> frozenset[str]:
    """The words of a file as it was when it was last changed; none where it cannot be read."""
    try:
        return frozenset(re.findall(r"\w+", places.read_regular(file).decode(errors="replace")))
    except OSError:
        return frozenset()


def _time_of_change(file: Path) -> int:
    """When a file was last changed, in nanoseconds; 0 of one that is not there, such as an editor's lock."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
