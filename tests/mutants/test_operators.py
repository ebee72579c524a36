"""Each operator makes its mistake where it says, and nowhere else."""

from mutants.mutate import mutants_of
from mutants.operators import OPERATORS

KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, eps, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr):
{lines}


def run(x):
    kernel
"""
HOST = """
def run(x):
{lines}
"""
IN_KERNELS: dict[str, tuple[str, list[str]]] = {
    "mask_term_dropped": ("m = (r < n) & (c < k)", ["m = (r < n)", "m = (c < k)"]),
    "mask_dropped": ("x = tl.load(p, mask=m, other=0.0)", ["x = tl.load(p)"]),
    "negation_dropped": ("m = ~(r == c)", ["m = (r == c)"]),
    "bound_off_by_one": ("m = (r + c) >= n", ["m = (r + c) > n"]),
    "equality_negated": ("m = r == c", ["m = r != c"]),
    "bound_of_other_dim": (
        "m = r < n_rows and c < n_cols",
        ["m = r < n_cols and c < n_cols", "m = r < n_rows and c < n_rows"],
    ),
    "other_dropped": ("x = tl.load(p, mask=m, other=0.0)", ["x = tl.load(p, mask=m)"]),
    "other_changed": ("x = tl.load(p, mask=m, other=0.0)", ["x = tl.load(p, mask=m, other=1)"]),
    "offset_by_one": ("tl.store(p, x)", ["tl.store(p + 1, x)"]),
    "lanes_shifted": ("c = tl.arange(0, BLOCK_N)", ["c = (1 + tl.arange(0, BLOCK_N))"]),
    "strides_swapped": ("p = x_ptr + r * x_row_stride", ["p = x_ptr + r * x_col_stride"]),
    "offset_cast_dropped": ("r = tl.program_id(0).to(tl.int64)", ["r = tl.program_id(0)"]),
    "program_axis_changed": ("r = tl.program_id(0)", ["r = tl.program_id(1)"]),
    "quotient_and_remainder_swapped": ("r = p // n", ["r = p % n"]),
    "store_skipped": ("tl.store(p, x, mask=m)", ["pass"]),
    "barrier_dropped": ("tl.debug_barrier()", ["pass"]),
    "semantics_relaxed": ('tl.atomic_add(p, x, sem="release")', ['tl.atomic_add(p, x, sem="relaxed")']),
    "transpose_dropped": ("y = tl.trans(a + b)", ["y = (a + b)"]),
    "plus_made_minus": ("y = a + b", ["y = a - b"]),
    "minus_made_plus": ("y = (a) - b", ["y = (a) + b"]),
    "factor_dropped": ("y = (a + b) * c", ["y = (a + b)"]),
    "divided_by_block": ("y = a / n_cols", ["y = a / BLOCK_N"]),
    "eps_dropped": ("y = tl.rsqrt(v + eps)", ["y = tl.rsqrt(v)"]),
    "max_subtraction_dropped": ("y = tl.exp(x - m)", ["y = tl.exp(x)"]),
    "cast_dropped": ("y = (a + b).to(tl.float32) * c", ["y = (a + b) * c"]),
    "accumulator_narrowed": (
        "y = tl.zeros((B,), dtype=tl.float32)",
        ["y = tl.zeros((B,), dtype=tl.float16)"],
    ),
    "accumulator_dropped": ("y = tl.dot(a, b, y)", ["y = tl.dot(a, b)"]),
    "reduction_changed": ("y = tl.max(x, axis=0)", ["y = tl.min(x, axis=0)", "y = tl.sum(x, axis=0)"]),
    "axis_changed": ("y = tl.sum(x[:, None], axis=1)", ["y = tl.sum(x[:, None], axis=0)"]),
    "nan_handling_dropped": ("y = tl.where(x != x, x, a + b)", ["y = (a + b)"]),
    "branches_swapped": ("y = tl.where(m, a, 0.0)", ["y = tl.where(m, 0.0, a)"]),
    "constant_changed": ("y = tl.exp(x, 2.0)", ["y = tl.exp(x, 2.02)"]),
    "number_changed": ("y = x // 16", ["y = x // 17"]),
    "cdiv_made_floor": ("y = tl.cdiv(n, a + b)", ["y = (n // (a + b))"]),
    "first_iteration_skipped": (
        "for k in tl.range(0, n, BLOCK_N): pass",
        ["for k in tl.range(0 + BLOCK_N, n, BLOCK_N): pass"],
    ),
    "last_iteration_skipped": ("for k in range(n): pass", ["for k in range(n - 1): pass"]),
    "sum_overwritten": ("y //= x", ["y = x"]),
    "update_dropped": ("y = z = 0\n    for k in range(n): y = x", ["for k in range(n): pass"]),
    "condition_negated": ("if n > 1: pass", ["if not (n > 1): pass"]),
}
"""The lines, and what becomes of the one that is touched."""
IN_HOST_CODE: dict[str, tuple[str, list[str]]] = {
    "launch_arguments_swapped": ("kernel[grid](x, y, n)", ["kernel[grid](y, x, n)", "kernel[grid](x, n, y)"]),
    "grid_axes_swapped": ("kernel[lambda meta: (a, b)](x)", ["kernel[lambda meta: (b, a)](x)"]),
    "cdiv_of_host_made_floor": ("y = triton.cdiv(n, 8)", ["y = (n // 8)"]),
    "zeros_made_empty": ("y = torch.zeros(n)", ["y = torch.empty(n)"]),
    "contiguous_dropped": ("y = f(x).contiguous()", ["y = f(x)"]),
    "stride_of_other_dim": ("y = x.stride(-1)", ["y = x.stride(-2)"]),
}  # fmt: skip


def test_every_operator_makes_its_mistake() -> None:
    made = {}
    for template, examples in ((KERNEL, IN_KERNELS), (HOST, IN_HOST_CODE)):
        for operator, (lines, _) in examples.items():
            mutants = mutants_of("base", template.format(lines=f"    {lines}"))
            made[operator] = [m.after for m in mutants if m.operator == operator]
    assert made == {name: after for name, (_, after) in {**IN_KERNELS, **IN_HOST_CODE}.items()}
    assert made.keys() == {operator.name for operator in OPERATORS}
