"""What tensors hold, concealed from Python: only kernels and operators of torch see it.

A wrapper may read elements past torch, in bytes of a file, shared memory or an address, and compute with them
itself. Where it finds noise, its results are noise. Under the interpreter alone: what a device does is not
seen by the host, such as the replay of a graph.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from .allocation import SCATTERED_BYTES
from .dispatch import AroundFunctions, AroundOperators
from .guarded_memory import GuardedMemory
from .integrity.operators import READINGS
from .replacement import replaced

NOISE = 0x5B
"""Each byte of what is concealed."""


class Concealment:
    """Conceals all storages of a call but very large ones."""

    def __init__(self, memory: GuardedMemory) -> None:
        self._memory = memory
        self._kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        """The bytes of each concealed storage, and what they held."""
        self._revealed = 0
        """How many kernels and operators that are running, one inside the other, see what tensors hold."""
        self._readings = {getattr(torch.Tensor, name) for name in READINGS}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Inside, Python sees noise."""
        with ExitStack() as stack:
            for kind in (JITFunction, InterpretedFunction):
                stack.enter_context(replaced(kind, "run", self._launching(kind.run)))
            stack.enter_context(AroundFunctions(self._function))
            stack.enter_context(AroundOperators(self._operator, higher_order=True))
            with self._concealed():
                yield

    @contextmanager
    def _concealed(self) -> Iterator[None]:
        before, self._revealed = self._revealed, 0
        self._conceal()
        try:
            yield
        finally:
            self._reveal()
            self._revealed = before

    @contextmanager
    def _seen(self) -> Iterator[None]:
        if not self._revealed:
            self._reveal()
        self._revealed += 1
        try:
            yield
        finally:
            self._revealed -= 1
            if not self._revealed:
                self._conceal()

    def _launching(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A launch that sees what tensors hold; a grid that Python computes does not."""

        @functools.wraps(run)
        def launch(kernel: Any, /, *args: Any, grid: Any, **kwargs: Any) -> Any:
            def concealed_grid(bound: Any) -> Any:
                with self._concealed():
                    return grid(bound)

            with self._seen():
                return run(kernel, *args, grid=concealed_grid if callable(grid) else grid, **kwargs)

        return launch

    def _operator(self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._seen():
            return operator(*args, **kwargs)

    def _function(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Who reads elements openly is counted, and refused or allowed: from then on all is seen."""
        if function in self._readings and not self._revealed:
            self._reveal()
            self._revealed += 1
        return function(*args, **kwargs)

    def _conceal(self) -> None:
        with unobserved():
            for storage in self._memory.storages():
                if storage.nbytes() <= SCATTERED_BYTES:
                    held = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
                    self._kept.append((held, held.clone()))
                    held.fill_(NOISE)

    def _reveal(self) -> None:
        with unobserved():
            for held, before in self._kept:
                held.copy_(before)
        self._kept.clear()


@contextmanager
def unobserved() -> Iterator[None]:
    """Inside, no mode is told what torch does."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield
