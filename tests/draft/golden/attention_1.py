import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def bmm_2_staged_0_kernel(
    q_ptr,
    k_ptr,
    bmm_2_sum_0_ptr,
    M,
    D,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    n_col_blocks = tl.cdiv(N, BLOCK_N)
    tile = pid % (n_row_blocks * n_col_blocks)
    batch = pid // (n_row_blocks * n_col_blocks)
    # Programs that follow each other share blocks of both operands in the cache.
    group = tile // (GROUP_M * n_col_blocks)
    group_size = tl.minimum(n_row_blocks - group * GROUP_M, GROUP_M)
    pid_row = group * GROUP_M + tile % (GROUP_M * n_col_blocks) % group_size
    pid_col = tile % (GROUP_M * n_col_blocks) // group_size
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, D, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < D
        q = tl.load(
            q_ptr + (batch * M + row[:, None]) * D + k[None, :],
            mask=row_mask[:, None] & k_mask[None, :],
            other=0.0,
        )
        k_2 = tl.load(
            k_ptr + (batch * N + col[None, :]) * D + k[:, None],
            mask=k_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total = tl.dot(q, k_2, total, input_precision=PRECISION)
    tl.store(
        bmm_2_sum_0_ptr + (batch * M + row[:, None]) * N + col[None, :],
        total,
        mask=row_mask[:, None] & col_mask[None, :],
    )


@triton.jit
def bmm_2_staged_1_kernel(
    bmm_2_sum_0_ptr,
    bmm_2_product_max_1_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    product_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        bmm_2_sum_0 = tl.load(bmm_2_sum_0_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        product_max_acc = tl.maximum(product_max_acc, bmm_2_sum_0 * 0.25)
    product_max = tl.max(product_max_acc, axis=0)
    tl.store(bmm_2_product_max_1_ptr + row, product_max)


@triton.jit
def bmm_2_staged_2_kernel(
    bmm_2_sum_0_ptr,
    bmm_2_product_max_1_ptr,
    bmm_2_denominator_2_ptr,
    N,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    row = tl.program_id(0).to(INDEX)
    bmm_2_product_max_1 = tl.load(bmm_2_product_max_1_ptr + row)
    denominator_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        col_mask = col < N
        bmm_2_sum_0 = tl.load(bmm_2_sum_0_ptr + row * N + col, mask=col_mask, other=-float("inf"))
        numerator = tl.exp(bmm_2_sum_0 * 0.25 - bmm_2_product_max_1)
        denominator_acc += numerator
    denominator = tl.sum(denominator_acc, axis=0)
    tl.store(bmm_2_denominator_2_ptr + row, denominator)


@triton.jit
def bmm_2_staged_3_kernel(
    bmm_2_sum_0_ptr,
    bmm_2_product_max_1_ptr,
    bmm_2_denominator_2_ptr,
    v_ptr,
    bmm_2_ptr,
    M,
    N,
    D,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    pid = tl.program_id(0).to(INDEX)
    n_row_blocks = tl.cdiv(M, BLOCK_M)
    n_col_blocks = tl.cdiv(D, BLOCK_N)
    tile = pid % (n_row_blocks * n_col_blocks)
    batch = pid // (n_row_blocks * n_col_blocks)
    # Programs that follow each other share blocks of both operands in the cache.
    group = tile // (GROUP_M * n_col_blocks)
    group_size = tl.minimum(n_row_blocks - group * GROUP_M, GROUP_M)
    pid_row = group * GROUP_M + tile % (GROUP_M * n_col_blocks) % group_size
    pid_col = tile % (GROUP_M * n_col_blocks) // group_size
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < M
    bmm_2_product_max_1 = tl.load(bmm_2_product_max_1_ptr + batch * M + row, mask=row_mask)
    bmm_2_denominator_2 = tl.load(bmm_2_denominator_2_ptr + batch * M + row, mask=row_mask)
    col_mask = col < D
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < N
        bmm_2_sum_0 = tl.load(
            bmm_2_sum_0_ptr + (batch * M + row[:, None]) * N + k[None, :],
            mask=row_mask[:, None] & k_mask[None, :],
            other=0.0,
        )
        numerator = tl.exp(bmm_2_sum_0 * 0.25 - bmm_2_product_max_1[:, None])
        v = tl.load(
            v_ptr + (batch * N + k[:, None]) * D + col[None, :],
            mask=k_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        total = tl.dot(
            tl.where(k_mask[None, :], numerator / bmm_2_denominator_2[:, None], 0.0).to(v.dtype),
            v,
            total,
            input_precision=PRECISION,
        )
    tl.store(
        bmm_2_ptr + (batch * M + row[:, None]) * D + col[None, :],
        total,
        mask=row_mask[:, None] & col_mask[None, :],
    )


@triton.jit
def bmm_2_flash_0_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    bmm_2_ptr,
    M,
    D,
    N,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where D <= 128."""
    pid = tl.program_id(0).to(INDEX)
    n_query_blocks = tl.cdiv(M, BLOCK_M)
    pid_query = pid % n_query_blocks
    head = pid // n_query_blocks
    query = pid_query * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    e = tl.arange(0, BLOCK_E)
    query_mask = query < M
    d_mask = d < D
    q = tl.load(
        q_ptr + (head * M + query[:, None]) * D + d[None, :],
        mask=query_mask[:, None] & d_mask[None, :],
        other=0.0,
    )
    e_mask = e < D
    max = tl.full([BLOCK_M], -float("inf"), tl.float32)
    denominator = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_E], tl.float32)
    for start in range(0, N, BLOCK_N):
        key = start + tl.arange(0, BLOCK_N)
        key_mask = key < N
        k = tl.load(
            k_ptr + (head * N + key[None, :]) * D + d[:, None],
            mask=d_mask[:, None] & key_mask[None, :],
            other=0.0,
        )
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
            v_ptr + (head * N + key[:, None]) * D + e[None, :],
            mask=key_mask[:, None] & e_mask[None, :],
            other=0.0,
        )
        acc = acc * rescale[:, None] + tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        max = new_max
    tl.store(
        bmm_2_ptr + (head * M + query[:, None]) * D + e[None, :],
        tl.where(N == 0, 0.0, acc / denominator[:, None]),
        mask=query_mask[:, None] & e_mask[None, :],
    )
