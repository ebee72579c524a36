"""Whose code asked for something, read from the frames that led to it.

Code compiled from text belongs to the author, unless a module of the machinery made it (a dataclass's
methods).
"""

import functools
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, MethodType
from typing import Literal

import torch
import triton

Owner = Literal["library", "worker", "torch", "numpy", "triton", "author"]


def folder_of(package: str) -> str:
    """An installed package's folder, without importing it; a path of nothing where it is not there."""
    spec = importlib.util.find_spec(package)
    return (
        os.path.dirname(os.path.realpath(spec.origin)) if spec and spec.origin else f"{os.devnull}/{package}"
    )


TORCH = os.path.dirname(os.path.realpath(torch.__file__))
TRITON = os.path.dirname(os.path.realpath(triton.__file__))
WORKER = str(Path(__file__).resolve().parents[1])
ROOTS: tuple[tuple[str, Owner], ...] = (
    (WORKER, "worker"),
    (TORCH, "torch"),
    (os.path.join(os.path.dirname(TORCH), "functorch"), "torch"),
    (TRITON, "triton"),
    (folder_of("numpy"), "numpy"),
)
LIBRARY = tuple({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
INSTALLED = tuple(
    {  # PYTHONPATH may lead to some of them.
        *(os.path.realpath(sysconfig.get_path(name)) for name in ("purelib", "platlib")),
        *(os.path.dirname(folder) for folder in (TORCH, TRITON, folder_of("numpy"), folder_of("sympy"))),
        folder_of("typing_extensions"),
    }
)
ENTRY_POINTS = (
    os.path.join(TORCH, "utils", "cpp_extension.py"),
    os.path.join(TORCH, "hub.py"),
    os.path.join(TORCH, "multiprocessing", ""),
    os.path.join(TORCH, "_inductor", ""),
    os.path.join(TRITON, "runtime", "build.py"),
)
"""Files (and folders) through which a caller makes torch or Triton load, compile or start anything."""
ENTRY_FUNCTIONS = frozenset({"_compile_kernel", "load_library"})
"""The same in files that also hold innocent functions: CUDA source through torch.cuda, torch.ops."""


real_path = functools.lru_cache(4096)(os.path.realpath)
"""Of source files that have been loaded: they stay where they are."""


def author_of(frame: FrameType | None) -> Literal["triton", "author"] | None:
    """Who asked, walking up the callers over the standard library, numpy, torch and this worker."""
    owners = map(owner_of_frame, callers(frame))
    return next((owner for owner in owners if owner == "triton" or owner == "author"), None)


def requested_by_author(frame: FrameType | None) -> bool:
    """Whether the author's code asked on its own account.

    What torch or Triton do when called is their own doing, except behind one of `ENTRY_POINTS`. What a module
    of the library or of an installed package does while it is imported is not its importer's doing either.
    """
    entry: FrameType | None = None
    for each in callers(frame):
        owner = owner_of_frame(each)
        if is_import(each):
            return False
        if owner == "author":
            return entry is None or is_entry_point(entry)
        if owner in ("torch", "triton", "numpy"):
            entry = each
    return False


def author_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame of the author's code, for a file and a line to name."""
    return next((each for each in callers(frame) if owner_of_frame(each) == "author"), None)


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def owner_of_frame(frame: FrameType) -> Owner:
    file = frame.f_code.co_filename
    if not file.startswith("<"):
        return owner_of(file)
    module = frame.f_globals.get("__file__")
    made_by_machinery = type(module) is str and owner_of(module) != "author"
    return "library" if made_by_machinery or file.startswith("<frozen ") else "author"


@functools.lru_cache(4096)
def owner_of(file: str) -> Owner:
    """Whose a source file is. Not for the names in angle brackets that code made from text has."""
    real = real_path(file)
    for root, owner in ROOTS:
        if below(real, root):
            return owner
    installed = any(below(real, root) for root in INSTALLED) or "-packages" + os.sep in real
    return "library" if not installed and any(below(real, root) for root in LIBRARY) else "author"


def owner_of_value(value: object) -> Owner:
    """Whose code defines a function, a class or an instance's class."""
    if isinstance(value, functools.partial | MethodType):
        return owner_of_value(value.func if isinstance(value, functools.partial) else value.__func__)
    code = getattr(value, "__code__", None)
    if code is not None:
        return owner_of(code.co_filename)
    name = str(getattr(value, "__module__", None) or type(value).__module__)
    if name.startswith("triton."):
        return "triton"
    return owner_of(getattr(sys.modules.get(name), "__file__", None) or os.__file__)


def below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both are real paths."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def is_import(frame: FrameType) -> bool:
    """Whether the frame is the body of a module of the library or of an installed package."""
    if frame.f_code.co_name != "<module>" or frame.f_code.co_filename.startswith("<"):
        return False
    real = real_path(frame.f_code.co_filename)
    return any(below(real, root) for root in (*LIBRARY, *INSTALLED))


def is_entry_point(frame: FrameType) -> bool:
    file = real_path(frame.f_code.co_filename)
    return frame.f_code.co_name in ENTRY_FUNCTIONS or file.startswith(ENTRY_POINTS)
