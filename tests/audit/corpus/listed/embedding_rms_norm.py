"""First step of a decoder at inference time: look up the token vectors and apply RMSNorm to them."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def mean_square(x, n):
    return tl.sum(x * x, axis=0) / n


@triton.jit
def embedding_rms_norm_kernel(
    ids_ptr, table_ptr, weight_ptr, out_ptr, dim, stride_table, eps, BLOCK: tl.constexpr
):
    """One program per token; BLOCK >= dim.

    ids_ptr: [n_tokens], int32 or int64, values in [0, vocabulary). table_ptr: [vocabulary, dim] with
    stride_table between rows and 1 between columns. out_ptr: [n_tokens, dim], contiguous.
    """
    token = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < dim
    idx = tl.load(ids_ptr + token).to(tl.int64)
    row_ptr = table_ptr + idx * stride_table

    x = tl.load(row_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(mean_square(x, dim) + eps)

    emb = tl.load(row_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * dim + cols, emb * rstd * weight, mask=mask)


def embedding_rms_norm(
    ids: torch.Tensor, table: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> torch.Tensor:
    """ids: integers of any shape, in [0, vocabulary). table: [vocabulary, dim], weight: [dim].

    Returns [*ids.shape, dim] in the dtype of the table.
    """
    if ids.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"ids must be int32 or int64, got {ids.dtype}")
    dim = table.shape[1]
    block = triton.next_power_of_2(dim)
    if block > 16384:
        raise ValueError(f"vectors of {dim} elements are too long for one program")
    if table.stride(1) != 1:
        raise ValueError("the columns of the table must be dense")
    ids, weight = ids.contiguous(), weight.contiguous()
    out = torch.empty((*ids.shape, dim), dtype=table.dtype, device=table.device)
    n_tokens = ids.numel()
    if n_tokens == 0:
        return out
    embedding_rms_norm_kernel[(n_tokens,)](
        ids,
        table,
        weight,
        out,
        dim,
        table.stride(0),
        eps,
        BLOCK=block,
        num_warps=min(max(block // 256, 1), 8),
    )
    return out


class EmbeddingRMSNorm(nn.Module):
    """Takes over a trained embedding table and norm weight; has no backward pass."""

    def __init__(self, embedding: nn.Embedding, weight: torch.Tensor, eps: float = 1e-6):
        super().__init__()
        self.register_buffer("table", embedding.weight.detach().contiguous())
        self.register_buffer("weight", weight.detach())
        self.eps = eps

    @torch.no_grad()
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return embedding_rms_norm(ids, self.table, self.weight, self.eps)
