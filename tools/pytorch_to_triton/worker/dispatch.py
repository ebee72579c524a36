"""torch's dispatch without torch's compiler and sympy, whose imports take seconds in each process."""

import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

COMPILER, ALGEBRA = "torch._dynamo", "sympy"
Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""What is done in place of calling an operator, or a function of torch, with these arguments."""


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that torch does not mark for its compiler: that alone would import it."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class AroundOperators(DispatchMode):  # type: ignore[no-untyped-call]
    """Inside, each operator goes through `call`."""

    def __init__(self, call: Call, *, higher_order: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._call = call
        self.supports_higher_order_operators = higher_order

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._call(func, args, kwargs or {})


class AroundFunctions(TorchFunctionMode):
    """Inside, each function of torch goes through `call`."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._call(func, args, kwargs or {})


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
