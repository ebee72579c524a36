"""Cross entropy loss of each row: loss[m] = logsumexp(logits[m]) - logits[m, target[m]]."""

import torch
import triton
import triton.language as tl

INPUTS = {"logits": "float32|bfloat16[M, V]", "target": "int64[M] in 0..V"}
DIMS = {"M": [1, 64], "V": [2, 1000, 1024]}
REQUIRES = ["V >= 1"]


def reference(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.float(), target, reduction="none")


@triton.jit
def cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, stride, V, BLOCK_V: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_V)
    x = tl.load(logits_ptr + row * stride + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
    target = tl.load(target_ptr + row)
    m = tl.max(x, axis=0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), axis=0))
    x_t = tl.load(logits_ptr + row * stride + target).to(tl.float32)
    tl.store(loss_ptr + row, lse - x_t)


def run(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    logits = logits.contiguous()
    target = target.contiguous()
    M, V = logits.shape
    loss = torch.empty(M, dtype=torch.float32, device=logits.device)
    if M == 0:
        return loss
    cross_entropy_kernel[(M,)](logits, target, loss, logits.stride(0), V, BLOCK_V=triton.next_power_of_2(V), num_warps=4)
    return loss
