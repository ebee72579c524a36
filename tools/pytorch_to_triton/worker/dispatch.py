"""torch's dispatch without torch's compiler, whose import takes seconds in every process that meets it."""

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

COMPILER = "torch._dynamo"


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that torch does not mark for its compiler: that alone would import it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


@contextmanager
def without_compiler() -> Iterator[None]:
    """Inside, functions of torch's that are kept from its compiler run as they are, and do not import it.

    They look for `torch._dynamo.disable` at their first call (torch/_compile.py), meta kernels among them.
    Nothing but torch's own functions may run inside. Where the compiler is there already, it is used.
    """
    if COMPILER in sys.modules:
        yield
        return
    absent: Any = types.ModuleType(COMPILER)
    absent.disable = lambda function, *_, **__: function
    sys.modules[COMPILER] = torch._dynamo = absent
    try:
        yield
    finally:
        del sys.modules[COMPILER], torch._dynamo
