"""L1 distances between two sets of points, out[m, n] = sum_d |x[m, d] - y[n, d]|."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, D]", "y": "float32[N, D]"}
DIMS = {"M": [1, 50, 256], "N": [32, 100, 256], "D": [3, 64, 200]}

BLOCK_M = 32
BLOCK_N = 32
BLOCK_D = 8


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x: [M, D], y: [N, D]. Returns [M, N]."""
    return torch.cdist(x, y, p=1.0)


@triton.jit
def pairwise_l1_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    M,
    N,
    D,
    stride_xm,
    stride_xd,
    stride_yn,
    stride_yd,
    stride_om,
    stride_on,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    """One program computes a tile of BM x BN distances, BD coordinates at a time."""
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BN)
    offs_m = ((pid // tiles_n) * BM + tl.arange(0, BM)).to(tl.int64)
    offs_n = ((pid % tiles_n) * BN + tl.arange(0, BN)).to(tl.int64)
    offs_d = tl.arange(0, BD).to(tl.int64)

    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for d0 in tl.range(0, D, BD):
        d = d0 + offs_d
        x_mask = (offs_m[:, None] < M) & (d[None, :] < D)
        y_mask = (offs_n[:, None] < M) & (d[None, :] < D)
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + d[None, :] * stride_xd, mask=x_mask, other=0.0)
        y = tl.load(y_ptr + offs_n[:, None] * stride_yn + d[None, :] * stride_yd, mask=y_mask, other=0.0)
        acc += tl.sum(tl.abs(x[:, None, :] - y[None, :, :]), axis=2)

    out_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on, acc, mask=out_mask)


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x: [M, D], y: [N, D], any strides. Returns [M, N], contiguous, in float32."""
    M, D = x.shape
    N = y.shape[0]
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    pairwise_l1_kernel[grid](
        x,
        y,
        out,
        M,
        N,
        D,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        out.stride(0),
        out.stride(1),
        BM=BLOCK_M,
        BN=BLOCK_N,
        BD=BLOCK_D,
        num_warps=4,
    )
    return out
