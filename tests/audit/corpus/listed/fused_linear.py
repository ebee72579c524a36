"""Linear layer with bias and an optional squared ReLU in one kernel, for inference in half precision."""

import torch
import triton
import triton.language as tl


def _configs():
    tiles = [(128, 128, 32, 4), (128, 64, 64, 4), (64, 128, 64, 4), (64, 64, 64, 4), (32, 64, 128, 4)]
    return [
        triton.Config(
            {"BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": bk, "GROUP_M": 8}, num_warps=warps, num_stages=stages
        )
        for bm, bn, bk, warps in tiles
        for stages in (3, 4)
    ]


@triton.autotune(configs=_configs(), key=["M", "N"])
@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_xk,
    stride_wn,
    stride_wk,
    stride_ym,
    stride_yn,
    SQUARED_RELU: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """y = act(x @ w.T + b), with x: [M, K], w: [N, K], b: [N]."""
    pid = tl.program_id(0)
    grid_m = tl.cdiv(M, BLOCK_M)
    grid_n = tl.cdiv(N, BLOCK_N)
    width = GROUP_M * grid_n
    first_m = (pid // width) * GROUP_M
    group = tl.minimum(grid_m - first_m, GROUP_M)
    pid_m = first_m + (pid % width) % group
    pid_n = (pid % width) // group

    rm = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    rn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    rk = tl.arange(0, BLOCK_K).to(tl.int64)
    x_ptrs = x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk
    w_ptrs = w_ptr + rk[:, None] * stride_wk + rn[None, :] * stride_wn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=(rm < M)[:, None] & (rk < K - k)[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=(rk < K - k)[:, None] & (rn < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
        x_ptrs += BLOCK_K * stride_xk
        w_ptrs += BLOCK_K * stride_wk

    bias = tl.load(b_ptr + rn, mask=rn < N, other=0.0)
    acc += bias[None, :].to(tl.float32)
    if SQUARED_RELU:
        acc = tl.maximum(acc, 0.0)
        acc = acc * acc
    y_ptrs = y_ptr + rm[:, None] * stride_ym + rn[None, :] * stride_yn
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


class FusedLinear(torch.nn.Module):
    """Takes over the weights of an nn.Linear (with bias); has no backward pass."""

    def __init__(self, linear: torch.nn.Linear, squared_relu: bool = False):
        super().__init__()
        if linear.weight.dtype not in (torch.float16, torch.bfloat16):
            raise TypeError("FusedLinear is for float16 and bfloat16 weights")
        self.register_buffer("weight", linear.weight.detach())
        self.register_buffer("bias", linear.bias.detach().contiguous())
        self.squared_relu = squared_relu

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != self.weight.dtype:
            raise TypeError(f"the input is {x.dtype}, the weight {self.weight.dtype}")
        N, K = self.weight.shape
        x2 = x.reshape(-1, K)
        M = x2.shape[0]
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        if y.numel() == 0:
            return y.view(*x.shape[:-1], N)

        def grid(meta):
            return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

        linear_kernel[grid](
            x2,
            self.weight,
            self.bias,
            y,
            M,
            N,
            K,
            *x2.stride(),
            *self.weight.stride(),
            *y.stride(),
            SQUARED_RELU=self.squared_relu,
        )
        return y.view(*x.shape[:-1], N)
