"""Describe an exception as its author needs it: the frames of the user's own code, and nothing else."""

import linecache
import opcode
import os
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .loading.redirect import in_original_terms, original
from .wire import Failure


def describe_failure(error: BaseException, during: str) -> Failure:
    """The exception as a value; `during` is what the job was doing."""
    file, line = _place(error)
    return Failure(
        type=type(error).__name__,
        message=in_original_terms(str(error)),
        traceback=in_original_terms(_user_traceback(error)),
        file=file,
        line=line,
        statement=_statement(error),
        during=during,
    )


def _statement(error: BaseException) -> str:
    """The line of the `raise` or `assert`, in the user's code or in Triton's, that caused it; else empty.

    A built-in operation that fails, or a function of PyTorch, is no such statement.
    """
    statements = [_raised_at(cause) for cause in causes(error)]
    of_users = [line for file, line in statements if _is_users(file)]
    file, line = statements[-1]
    return of_users[0] if of_users else line if _is_triton(file) else ""


def _raised_at(error: BaseException) -> tuple[str, str]:
    """The file and the line of the `raise` or `assert` that raised it; a nameless file where none did."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    if innermost is None:
        return "<none>", ""
    code = innermost.tb_frame.f_code
    if code.co_code[innermost.tb_lasti] != opcode.opmap["RAISE_VARARGS"]:
        return "<none>", ""
    return code.co_filename, linecache.getline(code.co_filename, innermost.tb_lineno).strip() or "raise"


def _is_triton(filename: str) -> bool:
    folder = Path(sys.modules["triton"].__path__[0]).resolve()
    return os.path.realpath(filename).startswith(f"{folder}{os.sep}")


def _place(error: BaseException) -> tuple[str | None, int | None]:
    """Where the user's code went wrong: a syntax error's own place, else the innermost user frame of the
    error that started it all."""
    place: tuple[str | None, int | None] = (None, None)
    for cause in causes(error):
        if isinstance(cause, SyntaxError) and cause.filename:
            place = (str(original(cause.filename)), cause.lineno)
        elif frames := _user_frames(traceback.extract_tb(cause.__traceback__)):
            place = (str(original(frames[-1].filename)), frames[-1].lineno)
    return place


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then its explicit causes, outermost first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _user_traceback(error: BaseException) -> str:
    described = traceback.TracebackException.from_exception(error)
    part: traceback.TracebackException | None = described
    while part is not None:
        part.stack = traceback.StackSummary.from_list(_user_frames(part.stack))
        part = part.__cause__ or part.__context__
    return "".join(described.format())


def _user_frames(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    return [frame for frame in frames if _is_users(frame.filename)]


def _is_users(filename: str) -> bool:
    path = os.path.realpath(filename)
    installed = f"{os.sep}site-packages{os.sep}" in path
    standard = path.startswith(_standard_library()) and not installed
    return not filename.startswith("<") and not standard and not path.startswith(_machinery())


@cache
def _standard_library() -> str:
    return f"{Path(os.__file__).resolve().parent}{os.sep}"


@cache
def _machinery() -> tuple[str, ...]:
    """The folders whose frames mean nothing to the author of a kernel."""
    folders = [Path(__file__).resolve().parent, Path(os.__file__).resolve().parent / "importlib"]
    folders += [Path(sys.modules[name].__path__[0]).resolve() for name in ("torch", "triton")]
    return tuple(f"{folder}{os.sep}" for folder in folders)
