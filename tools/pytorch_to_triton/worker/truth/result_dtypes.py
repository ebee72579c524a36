"""Which dtypes the results of an operator have, without computing it: PyTorch's own rule."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..dispatch import without_compiler

KNOWN: dict[Any, tuple[torch.dtype, ...]] = {}
"""By operator and `kind_of` its arguments."""
VALUES = (bool, str, torch.dtype, torch.layout, torch.memory_format, type(None))


def result_dtypes(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int
) -> tuple[torch.dtype, ...]:
    """The dtypes of the `count` tensors that `func` returns, nested ones in order.

    Sizes and numbers do not matter, so meta tensors are enough; where an operator has no meta kernel, it is
    run once on tensors of the dtypes that its arguments report.
    """
    kind = (func, count, torch.get_default_dtype(), kind_of(args), tuple(map(kind_of, kwargs.items())))
    if kind not in KNOWN:
        with _disable_current_modes():
            KNOWN[kind] = tuple(tensor.dtype for tensor in tensors_in(result_on_meta(func, args, kwargs)))
    return KNOWN[kind]


def kind_of(value: Any) -> Any:
    """All that matters of an argument."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim() == 0, value.device.type
    if isinstance(value, list | tuple):
        return frozenset(map(kind_of, value)) if is_numbers(value) else tuple(map(kind_of, value))
    return value if isinstance(value, VALUES) else type(value)


def is_numbers(values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def result_on_meta(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    try:
        with without_compiler() if is_torch_operator(func) else nullcontext():
            return func(*without_values(args), **{n: without_values(value) for n, value in kwargs.items()})
    except Exception:
        return func(*as_reported(args), **{name: as_reported(value) for name, value in kwargs.items()})


def is_torch_operator(func: Any) -> bool:
    """Whether it is one of torch's own operators, which run no user code."""
    return getattr(func, "namespace", "") in ("aten", "prims")


def without_values(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return [without_values(item) for item in value]
    return torch.device("meta") if isinstance(value, torch.device) else value


def as_reported(value: Any) -> Any:
    """A copy: the operator may write to it."""
    if isinstance(value, torch.Tensor):
        return getattr(value, "held", value).detach().to(value.dtype, copy=True)
    return [as_reported(item) for item in value] if isinstance(value, list | tuple) else value


def tensors_in(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, list | tuple):
        for item in result:
            yield from tensors_in(item)
