"""Which dtypes the results of an operator have, without computing it: PyTorch's own rule."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils import _pytree as pytree
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
            leaves = pytree.tree_leaves(result_on_meta(func, args, kwargs))
        KNOWN[kind] = tuple(leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor))
    return KNOWN[kind]


def kind_of(value: Any) -> Any:
    """All that matters of an argument."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim() == 0, value.device.type
    if isinstance(value, list | tuple):
        kinds = tuple(map(kind_of, value))
        return frozenset(kinds) if {*map(type, value)} <= {int, float} else kinds
    return value if isinstance(value, VALUES) else type(value)


def result_on_meta(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    arguments = args, dict(kwargs)
    try:
        # Torch's own operators run no user code.
        with without_compiler() if func.namespace in ("aten", "prims") else nullcontext():
            on_meta, named = pytree.tree_map(without_values, arguments)
            return func(*on_meta, **named)
    except Exception:
        copies, named = pytree.tree_map_only(torch.Tensor, as_reported, arguments)
        return func(*copies, **named)


def without_values(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def as_reported(tensor: torch.Tensor) -> torch.Tensor:
    """A copy: the operator may write to it."""
    return getattr(tensor, "held", tensor).detach().to(tensor.dtype, copy=True)
