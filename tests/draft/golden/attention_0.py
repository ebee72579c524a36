import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def bmm_2_flash_0_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    bmm_2_ptr,
    M,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_query_blocks = tl.cdiv(M, BLOCK_M)
    pid_query = pid % n_query_blocks
    head = pid // n_query_blocks
    query = pid_query * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    e = tl.arange(0, BLOCK_E)
    query_mask = query < M
    q = tl.load(q_ptr + (head * M + query[:, None]) * 16 + d[None, :], mask=query_mask[:, None])
    max = tl.full([BLOCK_M], -float("inf"), tl.float32)
    denominator = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_E], tl.float32)
    for start in range(0, N, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        key_mask = key < N
        k = tl.load(k_ptr + (head * N + key[None, :]) * 16 + d[:, None], mask=key_mask[None, :])
        chosen = tl.where(
            key_mask[None, :],
            tl.dot(q, k, input_precision=PRECISION) * 0.25,
            -float("inf"),
        )
        new_max = tl.maximum(max, tl.max(chosen, axis=1))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp(max - shift)
        p = tl.exp(chosen - shift[:, None])
        denominator = denominator * rescale + tl.sum(p, axis=1)
        v = tl.load(
            v_ptr + (head * N + key[:, None]) * 32 + e[None, :],
            mask=key_mask[:, None],
            other=0.0,
        )
        acc = acc * rescale[:, None] + tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        max = new_max
    tl.store(
        bmm_2_ptr + (head * M + query[:, None]) * 32 + e[None, :],
        tl.where(N == 0, 0.0, acc / denominator[:, None]),
        mask=query_mask[:, None],
    )
