"""Random numbers, by Triton's generator (Philox 4x32-10) from a seed that torch draws for each call.

They are other numbers than eager PyTorch's, as they are under torch.compile: element i of a tensor in
row-major order is `tl.rand(seed, i)`.
"""

from __future__ import annotations

from pytorch_to_triton.draft.ir.indices import offset
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import op
from pytorch_to_triton.draft.lower.creation import PLACE, filled
from pytorch_to_triton.draft.lower.row import Context, Operand, Refused, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position


def uniform(ctx: Context, dims: tuple[Dim, ...]) -> Tensor:
    """float32 numbers in [0, 1) over dimensions."""
    sizes = (product(a.size for a in dim) for dim in dims)
    return Tensor(dims, op("uniform", ctx.seed(), offset(map(position, dims), sizes)), "float32")


def kept(ctx: Context, input: Tensor, p: Operand) -> Tensor:
    """Which elements are kept, each dropped with probability p."""
    if not isinstance(p, float) or not 0 < p < 1:
        raise Refused("its probability is no number between 0 and 1")
    keep = op("gt", uniform(ctx, input.dims).value, p, name="keep")
    return ctx.stored("keep", Tensor(input.dims, keep, "bool"))


@row("aten.native_dropout.default")
def native_dropout(ctx: Context, input: Tensor, p: Operand, train: bool | None) -> tuple[Tensor, ...]:
    if not train or not isinstance(p, float):
        raise Refused("it drops nothing")
    keep = kept(ctx, input, p)
    scaled = input.value * op("to_float", keep.value) * (1 / (1 - p))
    return Tensor(input.dims, scaled, input.dtype), keep


@row("aten.bernoulli.p", arguments="input p generator")
def bernoulli(ctx: Context, input: Tensor, p: Operand) -> Tensor:
    if not isinstance(p, float):
        raise Refused("its probability is no number")
    if p in (0, 1):
        return filled(ctx, p)
    return Tensor(input.dims, op("to_float", kept(ctx, input, 1 - p).value), ctx.dtype)


@row("aten.rand.default", arguments=f"size {PLACE}")
@row("aten.rand_like.default", arguments=f"input {PLACE} memory_format")
def rand(ctx: Context) -> Tensor:
    if ctx.dtype != "float32":
        raise Refused(f"it draws {ctx.dtype}")
    return uniform(ctx, ctx.names.dims(ctx.shape))
