"""Results on disk: written whole, and never over a file that the tool did not write.

Beside what a tool writes lies a marker that lists each file with its digest and who wrote it. A file is ours
while the marker lists it and its content is still the one that was written.
"""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput, MissingRequirement
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value

MARKER = ".pytorch-to-triton.json"
PREVIOUS = "previous"
"""In a folder of results: those of the last call that succeeded, where a later one failed."""
_BESIDE = ".pytorch-to-triton-"
"""The names of unfinished folders begin with it."""
_CACHES = ("__pycache__", ".pytest_cache", ".ruff_cache")
"""Left behind by reading or testing the results, and safe to remove."""

USE_FORCE = (
    "Name another folder with --into, or use --force: what the tool wrote there is replaced, even if "
    "changed; other files stay unless a result has their name."
)

AnyValue = TypeVar("AnyValue", bound=Value)


class Owner(Value):
    """Who wrote a file."""

    tool: str
    target: str
    """As seen from the file's folder, so that a project may be moved with its results."""


class Written(Owner):
    """One file as it was written."""

    sha256: str
    single: bool = False
    """Asked for by its own name: it stays where the results around it are replaced."""


class Marker(Value):
    """The files of one folder that tools wrote, by their paths in it."""

    files: Mapping[str, Written] = Field(default_factory=dict)


@dataclass(frozen=True)
class Destination:
    """The folder that a call's results are to fill."""

    folder: Path
    tool: str
    target: Target
    force: bool = False
    """Whether files that this tool did not write may be replaced."""

    @property
    def owner(self) -> Owner:
        return owner_of(self.tool, self.target, self.folder)

    def check(self) -> None:
        """Raises BadInput where the folder is there, and is not this tool's for this target to replace."""
        folder = self.folder
        if folder.is_symlink():
            if not self.force:
                problem = f"{folder} is a symbolic link to {os.readlink(folder)}"
                raise BadInput(f"{problem}.", "Name the folder itself with --into, or --force a new one.")
        elif folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is a file.", "Name a folder for the results with --into.")
        elif folder.is_dir():
            self._refuse_unmovable()
            if not self.force and (problem := self._foreign()):
                raise BadInput(problem, USE_FORCE)

    def is_ours(self) -> bool:
        """Whether there are earlier results of the same tool for the same target."""
        return not self.folder.is_symlink() and any(
            Owner(tool=one.tool, target=one.target) == self.owner and not one.single
            for one in marker_in(self.folder).values()
        )

    @contextmanager
    def fresh(self) -> Iterator["Fresh"]:
        """An empty folder beside this one, which takes its place once the block has ended without an error.

        After an error, this folder is as it was before. Raises BadInput as `check` does, and where no folder
        can be made; MissingRequirement where the disk is full.
        """
        self.check()
        with _parents_of(self.folder):
            fresh = Fresh(self, self.folder.with_name(f"{_BESIDE}{secrets.token_hex(6)}"))
            try:
                fresh.folder.mkdir(parents=True)
                yield fresh
                fresh.swap()
            except OSError as problem:
                if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise MissingRequirement(
                        f"The results do not fit in {self.folder.parent}: {problem.strerror}.",
                        "Free some space there, or name another folder with --into.",
                    ) from problem
                raise
            finally:
                shutil.rmtree(fresh.beside, ignore_errors=True)

    def _refuse_unmovable(self) -> None:
        """The current folder and a mount point cannot be replaced."""
        if Path.cwd().is_relative_to(self.folder) or os.path.ismount(self.folder):
            what = "a mount point" if os.path.ismount(self.folder) else "the current folder"
            raise BadInput(f"{self.folder} is {what}.", "Name a folder inside it with --into.")

    def _foreign(self) -> str:
        """What in the folder was not written by this tool for this target; empty where nothing is."""
        known = marker_in(self.folder)
        for one in known.values():
            if one.tool == self.tool and one.target != self.owner.target and not one.single:
                whose = os.path.normpath(self.folder / one.target)
                which = "another target (or it was moved)" if whose == str(self.target) else whose
                return f"{self.folder} holds the results of {self.tool} for {which}, not for {self.target}."
        for file in files_in(self.folder):
            written = known.get(file.relative_to(self.folder).as_posix())
            if written is None or not (written.single or written.tool == self.tool):
                return f"{file} was not written by pytorch-to-triton {self.tool}."
            if not is_as_written(file, written):
                return f"{file} was changed after pytorch-to-triton {self.tool} wrote it."
        return ""


@dataclass(frozen=True)
class Fresh:
    """A folder of results while it is filled."""

    destination: Destination
    beside: Path
    """A hidden folder beside the destination, which holds the one to fill."""

    @property
    def folder(self) -> Path:
        """Where the results are written; it has the destination's name."""
        return self.beside / self.destination.folder.name

    def relocated(self, value: AnyValue) -> AnyValue:
        """The value with every path in it as it will be once the folder has taken its place."""
        return type(value).model_validate(self._relocated(value.model_dump()))

    def _relocated(self, part: Any) -> Any:
        # The name of the hidden folder is unique and means nothing to a shell: it can be cut out of any text.
        if isinstance(part, str):
            return part.replace(f"{self.beside.name}/", "")
        if isinstance(part, Path):
            return Path(self._relocated(str(part)))
        if isinstance(part, dict):
            return {self._relocated(key): self._relocated(item) for key, item in part.items()}
        if isinstance(part, list | tuple):
            return type(part)(self._relocated(item) for item in part)
        return part

    def keep_previous(self, file: str) -> Path | None:
        """Keep the earlier results in a folder of these, where they hold `file`; else what they kept.

        Returns the folder as it will be; None where there is nothing to keep.
        """
        if not self.destination.is_ours():
            return None
        old = self.destination.folder
        source = old if (old / file).is_file() else old / PREVIOUS
        if not (source / file).is_file():
            return None
        shutil.copytree(
            source, self.folder / PREVIOUS, ignore=shutil.ignore_patterns(PREVIOUS, MARKER, *_CACHES)
        )
        return old / PREVIOUS

    def swap(self) -> None:
        """Put the folder in its place; what was there goes, but for files that are not the tool's."""
        destination = self.destination
        destination.check()
        known = {} if destination.folder.is_symlink() else marker_in(destination.folder)
        new = {file.relative_to(self.folder).as_posix(): digest(file) for file in files_in(self.folder)}
        singles = {name: one for name, one in known.items() if one.single and name not in new}
        owner = dict(destination.owner)
        written = {name: Written(**owner, sha256=sha256) for name, sha256 in new.items()}
        write_marker(self.folder, {**singles, **written})
        if not os.path.lexists(destination.folder):
            self.folder.rename(destination.folder)
            return
        old = self.beside / f"{self.folder.name}.replaced"
        destination.folder.rename(old)
        try:
            self.folder.rename(destination.folder)
        except BaseException:
            old.rename(destination.folder)
            raise
        if not old.is_symlink():
            gone = {n for n, one in known.items() if one.tool == destination.tool and not one.single}
            _carry_over(old, destination.folder, gone)


def _carry_over(old: Path, new: Path, gone: set[str]) -> None:
    """Move what is not `gone` from the replaced folder to the new one, where its place is free."""
    for file in files_in(old):
        name = file.relative_to(old)
        if name.as_posix() not in gone and not os.path.lexists(new / name):
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            file.rename(new / name)


def folder_for(path: Path) -> Path:
    """An absolute path, its parents resolved; a last part that is a symbolic link stays one."""
    whole = Path(os.path.abspath(path))
    return whole.parent.resolve() / whole.name


def owner_of(tool: str, target: Target, folder: Path) -> Owner:
    path = os.path.relpath(target.path.resolve(), folder.parent.resolve() / folder.name)
    return Owner(tool=tool, target=f"{path}:{target.name}" if target.name else path)


def refuse_foreign_file(path: Path, tool: str, *, force: bool) -> None:
    """Raises BadInput where the file is there and was not written by the tool; a folder is never replaced."""
    if path.is_dir() and not path.is_symlink():
        raise BadInput(f"{path} is a folder.", "Name the file to write.")
    if force or not os.path.lexists(path):
        return
    hint = "Name another file, or replace it with --force."
    if path.is_symlink():
        raise BadInput(f"{path} is a symbolic link to {os.readlink(path)}.", hint)
    one = marker_in(path.parent).get(path.name)
    if one is None or one.tool != tool or not one.single:
        raise BadInput(f"{path} was not written by pytorch-to-triton {tool}.", hint)
    if not is_as_written(path, one):
        raise BadInput(f"{path} was changed after pytorch-to-triton {tool} wrote it.", hint)


def put_file(path: Path, text: str, owner: Owner, *, force: bool) -> None:
    """Write one file whole and mark it as ours; a symbolic link is replaced, never followed.

    Raises BadInput as `refuse_foreign_file` does, and where the file cannot be written.
    """
    refuse_foreign_file(path, owner.tool, force=force)
    try:
        places.write_atomically(path, text)
        single = Written(**dict(owner), sha256=digest(path), single=True)
        write_marker(path.parent, {**marker_in(path.parent), path.name: single})
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Name a file that can be.") from error


def marker_in(folder: Path) -> Mapping[str, Written]:
    """What the folder's marker lists; nothing where there is none, or it cannot be read."""
    try:
        return Marker.model_validate_json((folder / MARKER).read_bytes()).files
    except (OSError, ValidationError):
        return {}


def write_marker(folder: Path, files: Mapping[str, Written]) -> None:
    """Raises OSError."""
    places.write_atomically(folder / MARKER, Marker(files=files).model_dump_json(indent=1) + "\n")


def files_in(folder: Path) -> Iterator[Path]:
    """Every file and symbolic link below the folder, but for the marker and what reading leaves behind."""
    for path, folders, names in os.walk(folder):
        links = [name for name in folders if Path(path, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in _CACHES)
        for name in sorted([*names, *links]):
            if Path(path, name) != folder / MARKER:
                yield Path(path, name)


def is_as_written(file: Path, one: Written) -> bool:
    return not file.is_symlink() and digest(file) == one.sha256


def digest(file: Path) -> str:
    """Of its content; empty for what cannot be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return ""


@contextmanager
def _parents_of(folder: Path) -> Iterator[None]:
    """Make the folders above; those that were made are removed again after an error.

    Raises BadInput where they cannot be made, or nothing can be written in them.
    """
    made = [parent for parent in folder.parents if not parent.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(folder.parent, os.W_OK):
            raise PermissionError(0, "Permission denied")
    except OSError as problem:
        raise BadInput(
            f"The folder {folder} cannot be made: {problem.strerror}.", "Name another folder with --into."
        ) from problem
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):  # other files may be in it by now
                parent.rmdir()
        raise
