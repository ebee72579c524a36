"""What Triton's compiler reported where it refused a kernel, and of which line."""

import inspect
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

from ..failure import describe_failure
from ..loading.redirect import in_original_terms, original
from ..wire import Failure

PASS_ERROR = re.compile(r"^(?:loc\()?\"?([^\s\":]+)\"?:(\d+):\d+\)?: error: (.+)$", re.MULTILINE)
"""How MLIR reports an error, on the process's own streams."""
EXCERPT_BYTES = 65536


class LogExcerpt:
    """What this process's streams, which go to the run folder's log, add to it from here on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0

    def text(self) -> str:
        """Nothing where the job runs in the foreground and has no log."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            file.seek(self._start)
            return file.read(EXCERPT_BYTES).decode(errors="replace")


def described_refusal(error: Exception, kernel: JITFunction[Any], log: str) -> Failure:
    """A Failure whose file and line are the kernel's, where the compiler names one."""
    failure = describe_failure(error, f"compile {kernel.fn.__name__}")
    file, line = place_of(kernel.fn)
    changes: dict[str, Any] = {"file": file, "line": line, "traceback": ""}
    innermost = innermost_error(error)
    if innermost is not None:
        place = place_in_source(innermost, kernel)
        message = innermost.error_message or cause_of(innermost) or str(innermost)
        changes |= {"message": in_original_terms(message), **place}
        excerpt = str(innermost).removesuffix(innermost.error_message or "").rstrip()
        changes["traceback"] = in_original_terms(excerpt)
    elif passed := PASS_ERROR.search(log):
        changes |= {"file": passed[1], "line": int(passed[2]), "message": f"{failure.message}: {passed[3]}"}
    return replace(failure, **changes)


def innermost_error(error: BaseException) -> CompilationError | None:
    """The compilation error that others lead to, where one kernel calls another; None where there is none."""
    innermost = None
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CompilationError):
            innermost = cause
        cause = cause.__cause__
    return innermost


def cause_of(error: CompilationError) -> str:
    cause = error.__cause__
    return "" if cause is None else f"{type(cause).__name__}: {cause}"


def place_in_source(error: CompilationError, kernel: JITFunction[Any]) -> dict[str, Any]:
    """File and line of the node that the error is about."""
    for function in reachable(kernel):
        source, first = dedent(function)
        if error.src and source.startswith(error.src.rstrip()):
            line = first + getattr(error.node, "lineno", 1) - 1
            return {"file": place_of(function)[0], "line": line}
    return {}


def reachable(kernel: JITFunction[Any]) -> Iterator[Callable[..., Any]]:
    """The kernel's function, then the functions of kernels that it can name."""
    yield kernel.fn
    for value in vars(inspect.getmodule(kernel.fn) or kernel).values():
        if isinstance(value, JITFunction):
            yield value.fn


def dedent(function: Callable[..., Any]) -> tuple[str, int]:
    """The function's source from its `def` on, as the compiler sees it, and that line's number."""
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError:
        return "", 1
    source = textwrap.dedent("".join(lines))
    start = re.search(r"^def\s", source, re.MULTILINE)
    skipped = source[: start.start()] if start else ""
    return source[len(skipped) :], first + skipped.count("\n")


def place_of(function: Callable[..., Any]) -> tuple[str, int]:
    """File and line of the function's `def`."""
    file = os.path.abspath(function.__code__.co_filename)
    return str(original(file)), dedent(function)[1]
