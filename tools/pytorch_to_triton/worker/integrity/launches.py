"""Which Triton kernels were launched: interpreted ones and compiled ones, autotuned ones too."""

import functools
import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from ..replacement import replaced
from .kernel_source import uses_atomics
from .operators import Operators, tensors_in
from .uncompilable import python_in


class Launches:
    """A context in which every launch is recorded and its tensors made known to `operators`.

    A warm-up, a grid without programs and a launch that raised are no launches.
    """

    def __init__(self, operators: Operators) -> None:
        self._operators = operators
        self._counts: dict[Callable[..., Any], int] = {}
        self._python: dict[Callable[..., Any], set[str]] = {}
        self._recording = ExitStack()

    @property
    def launched(self) -> list[dict[str, Any]]:
        """`{"kernel": name, "file": path, "line": of its first decorator, "count": n, "atomics": bool,
        "python": sorted names of what Triton's compiler would refuse and the interpreter runs}`."""
        return [
            {
                "kernel": function.__name__,
                "file": function.__code__.co_filename,
                "line": function.__code__.co_firstlineno,
                "count": count,
                "atomics": uses_atomics(function),
                "python": sorted(self._python[function]),
            }
            for function, count in self._counts.items()
        ]

    def __enter__(self) -> "Launches":
        for kind in (JITFunction, InterpretedFunction):
            run = recording_run(kind.run, self._launching, self._launched)
            self._recording.enter_context(replaced(kind, "run", run))
        return self

    def __exit__(self, *error: object) -> None:
        self._recording.close()

    def _launching(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before a kernel runs, which may put other things behind the names that it uses."""
        names = self._python.setdefault(kernel.fn, set())
        if isinstance(kernel, InterpretedFunction):
            names |= python_in(kernel.fn, dict(zip(kernel.arg_names, args, strict=False)) | kwargs)

    def _launched(self, function: Callable[..., Any], arguments: Any) -> None:
        self._counts[function] = self._counts.get(function, 0) + 1
        for tensor in tensors_in(arguments):
            self._operators.touched(tensor)


def recording_run(original: Any, launching: Callable[..., None], launched: Callable[..., None]) -> Any:
    """A `run` that reports each launch: `launching(self, args, kwargs)`, then `launched(fn, arguments)`."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        extents: Any = ()

        def bound_grid(bound: Any) -> Any:
            nonlocal extents
            extents = grid(bound) if callable(grid) else grid
            launching(self, args, kwargs)
            return extents

        result = original(self, *args, grid=bound_grid, warmup=warmup, **kwargs)
        if not warmup and extents and math.prod(map(int, extents)) > 0:
            launched(self.fn, (args, kwargs))
        return result

    return run
