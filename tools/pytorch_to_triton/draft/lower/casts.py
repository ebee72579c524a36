"""Values in other dtypes. Where they lie, and on which device, is not a kernel's question."""

from __future__ import annotations

from pytorch_to_triton.draft.lower.row import WIDTHS, Context, Refused, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


@row("aten._to_copy.default", arguments="input dtype layout device pin_memory non_blocking memory_format")
def to(ctx: Context, input: Tensor) -> Tensor:
    if ctx.dtype not in WIDTHS:
        raise Refused(f"it casts to {ctx.dtype}")
    return cast(input, ctx.dtype)
