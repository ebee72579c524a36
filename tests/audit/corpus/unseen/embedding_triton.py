import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _gather_rows(
    ids_ptr, table_ptr, out_ptr, dim, table_stride, BLOCK_D: tl.constexpr
):
    # program (i, j): columns j * BLOCK_D ... of token i
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask = cols < dim
    idx = tl.load(ids_ptr + token).to(tl.int64)
    vals = tl.load(table_ptr + idx * table_stride + cols, mask=mask)
    tl.store(out_ptr + token * dim + cols, vals, mask=mask)


@triton.jit
def _scatter_grad_rows(
    ids_ptr, dout_ptr, dtable_ptr, dim, padding_idx, BLOCK_D: tl.constexpr
):
    # program (i, j): columns j * BLOCK_D ... of token i, accumulated in float32
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    idx = tl.load(ids_ptr + token).to(tl.int64)
    mask = (cols < dim) & (idx != padding_idx)
    grad = tl.load(dout_ptr + token * dim + cols, mask=mask, other=0.0).to(tl.float32)
    dst = dtable_ptr + idx * dim + cols
    total = tl.load(dst, mask=mask, other=0.0) + grad
    tl.store(dst, total, mask=mask)


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, table, padding_idx):
        flat = ids.reshape(-1).contiguous()
        n, dim = flat.numel(), table.shape[1]
        if table.stride(1) != 1:
            table = table.contiguous()
        out = torch.empty((n, dim), dtype=table.dtype, device=table.device)
        block_d = min(triton.next_power_of_2(dim), 1024)
        if n > 0:
            _gather_rows[(n, triton.cdiv(dim, block_d))](
                flat, table, out, dim, table.stride(0), BLOCK_D=block_d
            )
        ctx.save_for_backward(flat)
        ctx.table_shape = table.shape
        ctx.table_dtype = table.dtype
        ctx.padding_idx = padding_idx
        return out.view(*ids.shape, dim)

    @staticmethod
    def backward(ctx, dout):
        (flat,) = ctx.saved_tensors
        n, dim = flat.numel(), ctx.table_shape[1]
        dtable = torch.zeros(ctx.table_shape, dtype=torch.float32, device=dout.device)
        block_d = min(triton.next_power_of_2(dim), 1024)
        if n > 0:
            _scatter_grad_rows[(n, triton.cdiv(dim, block_d))](
                flat, dout.contiguous(), dtable, dim, ctx.padding_idx, BLOCK_D=block_d
            )
        return None, dtable.to(ctx.table_dtype), None


class Embedding(nn.Module):
    """Drop-in for nn.Embedding(num_embeddings, dim, padding_idx) with dense gradients.

    The ids have to lie in [0, num_embeddings); they are not checked.
    """

    def __init__(self, num_embeddings, dim, padding_idx=None, dtype=None, device=None):
        super().__init__()
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.padding_idx = -1 if padding_idx is None else padding_idx
        self.weight = nn.Parameter(torch.empty(num_embeddings, dim, dtype=dtype, device=device))
        nn.init.normal_(self.weight)
        if padding_idx is not None:
            with torch.no_grad():
                self.weight[padding_idx].zero_()

    def forward(self, ids):
        return _Embedding.apply(ids, self.weight, self.padding_idx)
