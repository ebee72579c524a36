"""Importing the file of a target, in a package or alone, and why a target cannot be used: messages for the
user, by errors that the tools know by name.
"""

import importlib
import importlib.util
import sys
import traceback
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from .redirect import in_original_terms, loader_of, original, read_anew


class TargetError(Exception):
    """The user's target cannot be used; the message is for the user."""


class TargetMissing(TargetError):
    """There is no such file."""


class NameMissing(TargetError):
    """The file has no such name; the nearest ones are listed."""


class ReferenceMissing(NameMissing):
    """Nothing in the file is to be compared with."""


class TargetSyntax(TargetError):
    """The file is not valid Python: file, line and caret."""


class TargetLoadFailed(TargetError):
    """Importing the file, or constructing the module in it, raised."""


class TargetExits(TargetError):
    """The file ends the program while it is imported."""


class ModuleUnconstructed(TargetError):
    """The module cannot be constructed with the arguments that it gets."""


class NotCallable(TargetError):
    """The name is neither a function nor an nn.Module."""


class ArityMismatch(TargetError):
    """The arguments do not fit the signature."""


class StateMismatch(TargetError):
    """A candidate module whose state_dict does not take the reference's parameters and buffers."""


def load_file(path: Path) -> ModuleType:
    """Import the file: in a package under its dotted name, else alone, its folder appended to sys.path."""
    if not path.is_file():
        raise TargetMissing(f"there is no file {path}")
    try:
        importlib.util.decode_source(path.read_bytes())
    except (SyntaxError, UnicodeDecodeError) as error:
        raise TargetSyntax(
            f"{path} is not UTF-8, and its first line names no encoding that it is in: # -*- coding: gbk -*-"
        ) from error
    read_anew(path)
    root, dotted = package_of(path)
    try:
        return import_from_package(path, root, dotted) if root else import_alone(path)
    except SyntaxError as error:
        raise TargetSyntax(syntax_message(error)) from error
    except TargetError:
        raise
    except SystemExit as error:
        code = "" if error.code is None else repr(error.code)
        raise TargetExits(
            f"importing {path} ends the program by SystemExit: sys.exit({code}){at_line(error, path)}"
        ) from error
    except Exception as error:
        raise TargetLoadFailed(f"importing {path} raised {described(error, path)}") from error


def package_of(path: Path) -> tuple[Path | None, str]:
    """The folder above the outermost package that holds the file, and the file's dotted name in it."""
    folder = path.parent
    parts = [] if path.stem == "__init__" else [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return (folder, ".".join(parts)) if folder != path.parent else (None, path.stem)


def import_from_package(path: Path, root: Path, dotted: str) -> ModuleType:
    sys.path.insert(0, str(root))
    module = importlib.import_module(dotted)
    if module.__file__ is None or not original(module.__file__).samefile(path):
        raise TargetLoadFailed(
            f"`{dotted}` is already the name of {module.__file__}, so {path} cannot be imported under it"
        )
    return module


def import_alone(path: Path) -> ModuleType:
    # Appended, so that nothing in the user's folder shadows an installed package.
    sys.path.append(str(path.parent))
    name = f"target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=loader_of(name, path))
    if spec is None or spec.loader is None:
        raise TargetLoadFailed(f"{path} is not a Python file")
    known = sys.modules.get(name)
    if known is not None and source_of(known.__spec__) == source_of(spec):
        # As any import: a file that registers operators of PyTorch can run only once.
        return known
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def source_of(spec: ModuleSpec | None) -> str | None:
    """The file that a module's code comes from, a staged copy as such."""
    return getattr(spec.loader, "path", None) if spec is not None else None


def syntax_message(error: SyntaxError) -> str:
    """File, line, what is wrong, and the line with a caret."""
    line = (error.text or "").rstrip()
    indent = len(line) - len(line.lstrip())
    caret = " " * max((error.offset or 1) - 1 - indent, 0) + "^"
    file = original(error.filename) if error.filename else None
    return f"{file}, line {error.lineno}: {error.msg}\n  {line.lstrip()}\n  {caret}"


def described(error: BaseException, path: Path) -> str:
    """`Type: message (line N)`, the line being the innermost in the user's file."""
    return f"{type(error).__name__}: {in_original_terms(str(error))}{at_line(error, path)}"


def at_line(error: BaseException, path: Path) -> str:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if original(f.filename) == path]
    return f" (line {lines[-1]})" if lines else ""
