"""Values in other dtypes. Where they lie, and on which device, is not a kernel's question."""

from __future__ import annotations

from pytorch_to_triton.draft.lower.row import WIDTHS, Context, Refused, cast, row
from pytorch_to_triton.draft.lower.tensor import Tensor


@row("aten._to_copy.default", arguments="input dtype layout device pin_memory non_blocking memory_format")
@row("aten.to.dtype", arguments="input dtype non_blocking copy memory_format")
@row("aten.to.device", arguments="input device dtype non_blocking copy memory_format")
@row("aten.to.dtype_layout", arguments="input dtype layout device pin_memory non_blocking copy memory_format")
@row("aten.to.other", arguments="input other non_blocking copy memory_format")
@row("aten.type_as.default", arguments="input other")
def to(ctx: Context, input: Tensor) -> Tensor:
    if ctx.dtype not in WIDTHS:
        raise Refused(f"it casts to {ctx.dtype}")
    return cast(input, ctx.dtype)
