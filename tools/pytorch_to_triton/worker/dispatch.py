"""torch's dispatch without torch's compiler and sympy, whose imports take seconds in each process."""

import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

COMPILER, ALGEBRA = "torch._dynamo", "sympy"


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that torch does not mark for its compiler: that alone would import it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def arguments_by_name(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call under the names of the operator's schema, defaults included."""
    schema = operator._schema.arguments
    defaults = {argument.name: argument.default_value for argument in schema}
    return {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}


@contextmanager
def without_compiler() -> Iterator[None]:
    """Inside, meta kernels run without importing torch's compiler.

    At their first call they ask `torch._dynamo.disable` to keep the compiler out (torch/_compile.py), and
    whether a number is a `sympy.Basic` (torch/_prims_common). Nothing but operators of torch's own may run
    inside; one that needs more raises. What is imported already is used.
    """
    absent = {name: types.ModuleType(name) for name in (COMPILER, ALGEBRA) if name not in sys.modules}
    compiler: Any = absent.get(COMPILER)
    algebra: Any = absent.get(ALGEBRA)
    if compiler:
        torch._dynamo = compiler
        compiler.disable = lambda function, *_, **__: function
    if algebra:
        algebra.Basic = type("Basic", (), {})
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
        if compiler:
            del torch._dynamo
