"""Wrong: the mean loss is divided by the number of rows, ignored ones included."""

import torch
import triton
import triton.language as tl

INPUTS = {"logits": "float32|bfloat16[M, V]", "labels": "int64[M] in 0..V"}
DIMS = {"M": [1, 8, 60], "V": [2, 10, 100]}
REQUIRES = ["V > 0"]


def reference(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """logits: [M, V]; labels: int64 [M], 0 for rows to ignore. Returns the mean loss, a float32 scalar."""
    return torch.nn.functional.cross_entropy(logits.float(), labels, ignore_index=0)


@triton.jit
def row_loss_kernel(
    logits_ptr, labels_ptr, losses_ptr, n_classes, stride_m, stride_v, labels_stride, BLOCK_V: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    classes = tl.arange(0, BLOCK_V).to(tl.int64)
    row_ptr = logits_ptr + row * stride_m
    logits = tl.load(row_ptr + classes * stride_v, mask=classes < n_classes, other=-float("inf"))
    logits = logits.to(tl.float32)
    largest = tl.max(logits, axis=0)
    log_total = tl.log(tl.sum(tl.exp(logits - largest), axis=0))
    label = tl.load(labels_ptr + row * labels_stride)
    is_kept = label != 0
    picked = tl.load(row_ptr + label * stride_v, mask=is_kept, other=0.0).to(tl.float32)
    tl.store(losses_ptr + row, tl.where(is_kept, log_total - (picked - largest), 0.0))


@triton.jit
def mean_kernel(losses_ptr, out_ptr, n_rows, BLOCK_M: tl.constexpr):
    lanes = tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + lanes
        total += tl.load(losses_ptr + rows, mask=rows < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0) / n_rows)


def run(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    n_rows, n_classes = logits.shape
    losses = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=torch.float32, device=logits.device)
    if n_rows > 0:
        BLOCK_V = triton.next_power_of_2(n_classes)
        row_loss_kernel[(n_rows,)](
            logits, labels, losses, n_classes, *logits.stride(), labels.stride(0), BLOCK_V=BLOCK_V
        )
    mean_kernel[(1,)](losses, out, n_rows, BLOCK_M=256)
    return out
