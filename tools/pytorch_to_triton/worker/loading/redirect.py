"""Importing targets from their source, or staged copies in their place, and naming the originals."""

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import SOURCE_SUFFIXES, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_STAGED: dict[str, str] = {}
"""The staged copy by the real path of its original."""
_ORIGINALS: dict[str, str] = {}
"""The original, as it was named, by its staged copy."""
_TARGETS: set[str] = set()
"""The real paths of the files that are read anew each time."""


def redirect(staged: Mapping[str, str]) -> None:
    """From now on, wherever Python imports one of the originals, its staged copy runs instead.

    `staged` holds the copies' absolute paths by the originals'.
    """
    _STAGED.update({os.path.realpath(path): copy for path, copy in staged.items()})
    _ORIGINALS.update({copy: path for path, copy in staged.items()})
    find_first()


def read_anew(path: Path) -> None:
    """From now on, wherever Python imports this .py file, it is read: it may just have been rewritten.

    Bytecode counts as up to date where size and second are the same. What the file imports keeps its own.
    """
    if path.suffix in SOURCE_SUFFIXES:
        _TARGETS.add(os.path.realpath(path))
        find_first()


def find_first() -> None:
    if not any(isinstance(finder, SourceFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, SourceFinder())


def original(path: str | Path) -> Path:
    """The file that the user knows: of a staged copy its original, of any other file itself."""
    return Path(_ORIGINALS.get(str(path), path))


def in_original_terms(text: str) -> str:
    """The text with originals in the place of the staged copies that it names."""
    for staged, path in _ORIGINALS.items():
        text = text.replace(staged, path)
    return text


def loader_of(name: str, path: Path) -> "SourceLoader | None":
    """Loads the staged copy of `path`, or a target itself, as the module `name`; None for other files."""
    real = os.path.realpath(path)
    if real in _STAGED:
        return SourceLoader(name, _STAGED[real])
    return SourceLoader(name, str(path)) if real in _TARGETS else None


class SourceLoader(SourceFileLoader):
    """Loads from the source each time: no bytecode left beside it is run, and none is left."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class SourceFinder(importlib.abc.MetaPathFinder):
    """Finds what the other finders find: of a target its source, or its staged copy where there is one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(fullname, path, target)
            if spec is not None:
                return self.from_source(spec)
        return None

    def from_source(self, spec: ModuleSpec) -> ModuleSpec | None:
        loader = loader_of(spec.name, Path(spec.origin)) if spec.has_location and spec.origin else None
        if loader is None:
            return spec
        return importlib.util.spec_from_file_location(
            spec.name, loader.path, loader=loader, submodule_search_locations=spec.submodule_search_locations
        )
