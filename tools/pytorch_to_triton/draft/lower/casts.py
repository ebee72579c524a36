"""Values in other dtypes. Where they lie, and on which device, is not a kernel's question."""

from __future__ import annotations

from typing import Any

from pytorch_to_triton.draft.lower.row import WIDTHS, Context, Refused, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


@row("aten._to_copy.default")
def to_copy(
    ctx: Context,
    input: Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return _in_dtype(input, ctx.dtype)


@row("aten.to.dtype")
def to_dtype(
    ctx: Context,
    input: Tensor,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return _in_dtype(input, ctx.dtype)


@row("aten.to.device")
def to_device(
    ctx: Context,
    input: Tensor,
    device: Any,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return _in_dtype(input, ctx.dtype)


@row("aten.to.dtype_layout")
def to_dtype_layout(
    ctx: Context,
    input: Tensor,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return _in_dtype(input, ctx.dtype)


@row("aten.to.other")
def to_other(
    ctx: Context,
    input: Tensor,
    other: Tensor,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    return _in_dtype(input, ctx.dtype)


@row("aten.type_as.default")
def type_as(ctx: Context, input: Tensor, other: Tensor) -> Tensor:
    return _in_dtype(input, ctx.dtype)


def _in_dtype(x: Tensor, dtype: str) -> Tensor:
    if dtype not in WIDTHS:
        raise Refused(f"it casts to {dtype}")
    return cast(x, dtype)
