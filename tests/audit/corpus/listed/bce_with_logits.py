"""Binary cross entropy on logits with a weight per class for the positive examples, without reduction.

loss = (1 - t) * x + (1 + (pos_weight - 1) * t) * softplus(-x), as torch.nn.BCEWithLogitsLoss has it.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "logits": "float32|bfloat16|float16[M, N]",
    "targets": "float32|bfloat16|float16[M, N]",
    "pos_weight": "float32[N]",
}
DIMS = {"M": [1, 33, 512], "N": [1, 80, 1000]}


def reference(logits: torch.Tensor, targets: torch.Tensor, pos_weight: torch.Tensor) -> torch.Tensor:
    """logits, targets: [M, N], pos_weight: [N]. Returns the loss of each element, [M, N], in float32."""
    return torch.nn.functional.binary_cross_entropy_with_logits(
        logits.float(), targets.float(), pos_weight=pos_weight, reduction="none"
    )


@triton.jit
def softplus(x):
    return tl.log(1.0 + tl.exp(x))


@triton.jit
def bce_kernel(
    logits_ptr,
    targets_ptr,
    pos_weight_ptr,
    loss_ptr,
    n_rows,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, j) handles a tile of BLOCK_M rows and BLOCK_N classes. All tensors are contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    offs = rows[:, None] * n_cols + cols[None, :]

    x = tl.load(logits_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    t = tl.load(targets_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(pos_weight_ptr + cols, mask=cols < n_cols, other=1.0)

    scale = 1.0 + (w[None, :] - 1.0) * t
    loss = (1.0 - t) * x + scale * softplus(-x)
    tl.store(loss_ptr + offs, loss, mask=mask)


def run(logits: torch.Tensor, targets: torch.Tensor, pos_weight: torch.Tensor) -> torch.Tensor:
    """logits, targets: [M, N], pos_weight: [N]. Returns [M, N] in float32."""
    n_rows, n_cols = logits.shape
    logits, targets, pos_weight = logits.contiguous(), targets.contiguous(), pos_weight.contiguous()
    loss = torch.empty((n_rows, n_cols), dtype=torch.float32, device=logits.device)
    if loss.numel() == 0:
        return loss
    block_n = min(256, triton.next_power_of_2(n_cols))
    block_m = 1024 // block_n
    grid = (triton.cdiv(n_rows, block_m), triton.cdiv(n_cols, block_n))
    bce_kernel[grid](logits, targets, pos_weight, loss, n_rows, n_cols, block_m, block_n, num_warps=4)
    return loss
