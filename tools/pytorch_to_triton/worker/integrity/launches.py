"""Which Triton kernels were launched: interpreted ones and compiled ones, autotuned ones too."""

import functools
import math
from collections.abc import Callable
from typing import Any

from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from .kernel_source import orders_by_atomics, uses_atomics
from .operators import Operators, tensors_in
from .uncompilable import python_in

__all__ = ["Launches", "orders_by_atomics", "uses_atomics"]

has_atomics = functools.cache(uses_atomics)
"""A kernel's source stays what it is; reading it takes as long as a launch."""
_python_in_compiled: dict[Callable[..., Any], frozenset[str]] = {}
"""By the function behind a compiled kernel: Triton itself refuses names that mean something else later."""


class Launches:
    """A context in which every launch is recorded and its tensors made known to `operators`.

    A warm-up, a grid without programs and a launch that raised are no launches. `at_launch` is called before
    each, when the grid is known and the author's code has nothing left to do but the kernel.
    """

    def __init__(self, operators: Operators, at_launch: Callable[[], None] = lambda: None) -> None:
        self._operators = operators
        self._at_launch = at_launch
        self._counts: dict[Callable[..., Any], int] = {}
        self._python: dict[Callable[..., Any], set[str]] = {}
        self._originals: list[tuple[Any, Any]] = []

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
                "atomics": has_atomics(function),
                "python": sorted(self._python[function]),
            }
            for function, count in self._counts.items()
        ]

    def __enter__(self) -> "Launches":
        for kind in (JITFunction, InterpretedFunction):
            self._originals.append((kind, kind.run))
            kind.run = recorded(kind.run, self._launching, self._launched)
        return self

    def __exit__(self, *error: object) -> None:
        while self._originals:
            kind, original = self._originals.pop()
            kind.run = original

    def _launching(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before a kernel runs, which may put other things behind the names that it uses."""
        self._at_launch()
        function = kernel.fn
        names = self._python.setdefault(function, set())
        if function in _python_in_compiled:
            names |= _python_in_compiled[function]
            return
        names |= python_in(function, dict(zip(kernel.arg_names, args, strict=False)) | kwargs)
        if not isinstance(kernel, InterpretedFunction):
            _python_in_compiled[function] = frozenset(names)

    def _launched(self, function: Callable[..., Any], arguments: Any) -> None:
        self._counts[function] = self._counts.get(function, 0) + 1
        for tensor in tensors_in(arguments):
            self._operators.touched(tensor)


def recorded(original: Any, launching: Callable[..., None], launched: Callable[..., None]) -> Any:
    """A `run` that reports each launch: `launching(self, args, kwargs)`, then `launched(fn, arguments)`."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        extents: list[Any] = []

        def seen_grid(bound: Any) -> Any:
            extents[:] = grid(bound)
            launching(self, args, kwargs)
            return tuple(extents)

        if callable(grid):
            result = original(self, *args, grid=seen_grid, warmup=warmup, **kwargs)
        else:
            launching(self, args, kwargs)
            result = original(self, *args, grid=grid, warmup=warmup, **kwargs)
            extents[:] = grid or ()
        if not warmup and extents and math.prod(map(int, extents)) > 0:
            launched(self.fn, (args, kwargs))
        return result

    return run
