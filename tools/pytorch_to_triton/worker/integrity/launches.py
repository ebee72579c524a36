"""Which Triton kernels were launched: interpreted ones and compiled ones, autotuned ones too."""

import ast
import functools
import inspect
import math
import re
import textwrap
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from .operators import Operators, tensors_in

ATOMIC_INSTRUCTION = re.compile(r"\b(?:atom|red)(?:\.\w+)+")
"""In inline assembly, of PTX."""


class Launches:
    """A context in which every launch is recorded and its tensors made known to `operators`.

    A warm-up, a grid without programs and a launch that raised are no launches.
    """

    def __init__(self, operators: Operators) -> None:
        self._operators = operators
        self._counts: dict[Callable[..., Any], int] = {}
        self._originals: list[tuple[Any, Any]] = []

    @property
    def launched(self) -> list[dict[str, Any]]:
        """`{"kernel": name, "file": path, "line": of its first decorator, "count": n, "atomics": bool}`."""
        return [
            {
                "kernel": function.__name__,
                "file": function.__code__.co_filename,
                "line": function.__code__.co_firstlineno,
                "count": count,
                "atomics": uses_atomics(function),
            }
            for function, count in self._counts.items()
        ]

    def __enter__(self) -> "Launches":
        for kind in (JITFunction, InterpretedFunction):
            self._originals.append((kind, kind.run))
            kind.run = recorded(kind.run, self._launched)
        return self

    def __exit__(self, *error: object) -> None:
        while self._originals:
            kind, original = self._originals.pop()
            kind.run = original

    def _launched(self, function: Callable[..., Any], arguments: Any) -> None:
        self._counts[function] = self._counts.get(function, 0) + 1
        for tensor in tensors_in(arguments):
            self._operators.touched(tensor)


def recorded(original: Any, launched: Callable[[Callable[..., Any], Any], None]) -> Any:
    """A `run` that tells `launched` of each launch."""

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        extents: list[Any] = []

        def seen_grid(bound: Any) -> Any:
            extents[:] = grid(bound)
            return tuple(extents)

        if callable(grid):
            result = original(self, *args, grid=seen_grid, warmup=warmup, **kwargs)
        else:
            result = original(self, *args, grid=grid, warmup=warmup, **kwargs)
            extents[:] = grid or ()
        if not warmup and extents and math.prod(map(int, extents)) > 0:
            launched(self.fn, (args, kwargs))
        return result

    return run


def uses_atomics(function: Callable[..., Any]) -> bool:
    """Whether the kernel, or a function of its own that it calls, has an atomic operation in its source."""
    waiting, seen = [function], set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        atomic, called = scanned(current)
        if atomic:
            return True
        waiting.extend(called)
    return False


@functools.lru_cache(256)
def scanned(function: Callable[..., Any]) -> tuple[bool, tuple[Callable[..., Any], ...]]:
    """Whether the function's own source has an atomic operation, and the kernel functions it names."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False, ()
    called = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("atomic_"):
            return True, ()
        value = node.value if isinstance(node, ast.Constant) else named(node, function)
        if is_atomic(value):
            return True, ()
        if isinstance(value, JITFunction | InterpretedFunction):
            called.append(value.fn)
    return False, tuple(called)


def is_atomic(value: object) -> bool:
    if isinstance(value, str):
        return ATOMIC_INSTRUCTION.search(value) is not None
    return str(getattr(value, "__name__", "")).startswith("atomic_")


def named(node: ast.AST, function: Callable[..., Any]) -> Any:
    """What a name or a dotted name in the function's source stands for; None where it is not known."""
    if isinstance(node, ast.Attribute):
        return getattr(named(node.value, function), node.attr, None)
    if not isinstance(node, ast.Name):
        return None
    with suppress(ValueError):
        free = function.__code__.co_freevars.index(node.id)
        return (function.__closure__ or ())[free].cell_contents
    return function.__globals__.get(node.id)
