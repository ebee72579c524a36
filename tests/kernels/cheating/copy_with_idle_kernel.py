"""Cheats: an idle kernel is given the output, PyTorch copies the result into it."""

import torch
import triton

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 4], "N": [8, 20]}


def reference(x):
    return x.t().to(torch.bfloat16)


@triton.jit
def nothing(out_ptr):
    pass


def run(x):
    out = torch.empty((x.shape[1], x.shape[0]), dtype=torch.bfloat16, device=x.device)
    if out.numel():
        nothing[(1,)](out)
        out.copy_(x.t())
    return out
