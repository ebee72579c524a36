"""Importing staged copies in the place of the files that they are copies of, and naming the originals."""

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_STAGED: dict[str, str] = {}
"""The staged copy by the real path of its original."""
_ORIGINALS: dict[str, str] = {}
"""The original, as it was named, by its staged copy."""


def redirect(staged: Mapping[str, str]) -> None:
    """From now on, wherever Python imports one of the originals, its staged copy runs instead.

    `staged` holds the copies' absolute paths by the originals'.
    """
    _STAGED.update({os.path.realpath(path): copy for path, copy in staged.items()})
    _ORIGINALS.update({copy: path for path, copy in staged.items()})
    if not any(isinstance(finder, StagedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, StagedFinder())


def original(path: str | Path) -> Path:
    """The file that the user knows: of a staged copy its original, of any other file itself."""
    return Path(_ORIGINALS.get(str(path), path))


def in_original_terms(text: str) -> str:
    """The text with originals in the place of the staged copies that it names."""
    for staged, path in _ORIGINALS.items():
        text = text.replace(staged, path)
    return text


def loader_of(name: str, path: Path) -> "StagedLoader | None":
    """Loads the staged copy of `path` as the module `name`; None where it has none."""
    staged = _STAGED.get(os.path.realpath(path))
    return None if staged is None else StagedLoader(name, staged)


class StagedLoader(SourceFileLoader):
    """Loads from the source each time: bytecode left beside it by another process is never run."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class StagedFinder(importlib.abc.MetaPathFinder):
    """Finds what the other finders find, and its staged copy where there is one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if finder is self or find is None else find(fullname, path, target)
            if spec is not None:
                return self.staged(spec)
        return None

    def staged(self, spec: ModuleSpec) -> ModuleSpec | None:
        loader = loader_of(spec.name, Path(spec.origin)) if spec.has_location and spec.origin else None
        if loader is None:
            return spec
        return importlib.util.spec_from_file_location(
            spec.name, loader.path, loader=loader, submodule_search_locations=spec.submodule_search_locations
        )
