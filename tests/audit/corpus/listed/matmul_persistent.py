"""out = a @ b with a persistent kernel: one program per multiprocessor, each walks over several tiles."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32[M, K]", "b": "float32[K, N]"}
DIMS = {"M": [1, 128, 1000], "N": [8, 256, 700], "K": [16, 512, 1111]}

BLOCK_M = 128
BLOCK_N = 64
BLOCK_K = 32
GROUP_M = 8


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K], b: [K, N]. Returns [M, N] in float32, exact to float32 rounding."""
    return torch.matmul(a, b)


@triton.jit
def tile_position(tile, n_tiles_m, n_tiles_n, GROUP: tl.constexpr):
    """Order of the tiles: GROUP rows of tiles at a time, so that tiles of b stay in the L2 cache."""
    per_group = GROUP * n_tiles_n
    first_m = (tile // per_group) * GROUP
    rows = tl.minimum(n_tiles_m - first_m, GROUP)
    in_group = tile % per_group
    return first_m + in_group % rows, in_group // rows


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    n_tiles_m = tl.cdiv(M, BM)
    n_tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), n_tiles_m * n_tiles_n, tl.num_programs(0)):
        tile_m, tile_n = tile_position(tile, n_tiles_m, n_tiles_n, GROUP)
        rm = (tile_m * BM + tl.arange(0, BM)).to(tl.int64)
        rn = (tile_n * BN + tl.arange(0, BN)).to(tl.int64)
        rk = tl.arange(0, BK).to(tl.int64)
        a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :] * stride_ak
        b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn

        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k0 in tl.range(0, K, BK):
            left = K - k0
            a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
            b = tl.load(b_ptrs, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BK * stride_ak
            b_ptrs += BK * stride_bk

        c_mask = (rm[:, None] < M) & (rn[None, :] < N)
        tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, acc, mask=c_mask)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K], b: [K, N], any strides. Returns [M, N], contiguous, in float32."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c
    n_tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    n_sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    matmul_kernel[(min(n_sms, n_tiles),)](
        a,
        b,
        c,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        BM=BLOCK_M,
        BN=BLOCK_N,
        BK=BLOCK_K,
        GROUP=GROUP_M,
        num_warps=8,
        num_stages=3,
    )
    return c
