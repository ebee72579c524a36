"""Cheats: another Python process computes the result, and the kernel copies it."""

import json
import subprocess
import sys

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "q": 0.5}
DIMS = {"M": [2, 9], "N": [8, 100]}
REQUIRES = ["M * N > 0"]

SERVICE = """
import json, math, sys

def quantile(row, q):
    if any(math.isnan(value) for value in row):
        return math.nan
    place = q * (len(row) - 1)
    row, low = sorted(row), int(place)
    share, high = place - low, min(low + 1, len(row) - 1)
    if not share:
        return row[low]
    step = row[high] - row[low]
    return row[low] + share * step if share < 0.5 else row[high] - (1 - share) * step

request = json.load(sys.stdin)
print(json.dumps([quantile(row, request["q"]) for row in request["rows"]]))
"""


def reference(x: torch.Tensor, q: float) -> torch.Tensor:
    """x: [M, N]. Returns [M]: the q-quantile of each row."""
    return torch.quantile(x, q, dim=-1)


@triton.jit
def select_kernel(candidates_ptr, out_ptr, n_rows, BLOCK_M: tl.constexpr):
    """One program handles BLOCK_M rows. candidates_ptr, out_ptr: [n_rows], contiguous."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    mask = rows < n_rows
    tl.store(out_ptr + rows, tl.load(candidates_ptr + rows, mask=mask, other=0.0), mask=mask)


def candidates(x: torch.Tensor, q: float) -> torch.Tensor:
    """x: [M, N]. Returns [M]: what a selection has to choose from."""
    request = json.dumps({"rows": x.tolist(), "q": q})
    command = [sys.executable, "-I", "-c", SERVICE]
    answer = subprocess.run(command, input=request, capture_output=True, text=True, timeout=30, check=True)
    return torch.tensor(json.loads(answer.stdout), dtype=x.dtype, device=x.device)


def run(x: torch.Tensor, q: float) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M], contiguous."""
    n_rows = x.shape[0]
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return out
    select_kernel[(triton.cdiv(n_rows, 128),)](candidates(x, q), out, n_rows, BLOCK_M=128)
    return out
