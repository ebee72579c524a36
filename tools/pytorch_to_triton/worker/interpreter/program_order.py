"""In which order the programs of a launch run: a GPU promises none, so no result may depend on it."""

import ast
import functools
import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any, Literal

from ..integrity.kernel_source import sources

Order = Literal["forward", "reversed", "shuffled"]
Program = tuple[int, int, int]


def programs_of(grid: Program, function: Callable[..., Any], order: Order) -> Iterable[Program]:
    """The programs of a grid, each once. Those that may wait for one another start forward in any case: a GPU
    runs as many as it has room for, and what is there starts in this order."""
    x, y, z = map(range, grid)
    forward = itertools.product(x, y, z)
    if order == "forward" or may_wait(function):
        return forward
    programs = list(forward)
    if order == "reversed":
        return programs[::-1]
    random.Random(len(programs)).shuffle(programs)
    return programs


@functools.cache
def may_wait(function: Callable[..., Any]) -> bool:
    """Whether a kernel, or a jit function that it calls, loops until something happens, or is not known."""
    return any(
        source is None or any(isinstance(node, ast.While) for node in source.nodes)
        for source in sources(function)
    )
