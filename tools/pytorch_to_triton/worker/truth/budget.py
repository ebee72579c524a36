"""The numbers of the error budget, in the order in which error.py uses them, each with its reason."""

import torch

# 1. The unit

FEW = 16
"""Elements: fewer do not show what size is typical of a row, nor fewer rows what is typical of an output."""
ORDINARY = 1e3
"""Root mean square up to which inputs show how large the terms were that cancelled. Larger ones may well be
normalized before anything cancels; how far the truth moves shows it there."""
NOTHING = 2.0**-40
"""Of the inputs' size: what float64 leaves where all cancels, times the reciprocal of something small."""

# 2. PyTorch's own error

ROUNDING = 100.0
"""Units: errors of PyTorch's up to this are rounding, and a measure, however small their row is."""
UNTRUSTED = 0.5
"""Of its own row's size: where PyTorch errs more than both, it is no measure. Short dtypes round by less than
ROUNDING: to them this share of the typical size is the first limit, too."""

# 3. The allowance

FACTOR = 2.0
"""Times what PyTorch errs: another order of the same operations easily errs twice as much."""
MOST_ROWS = 0.9
"""Of all rows: the most that PyTorch errs in these a candidate may err in any. A row or two that PyTorch gets
wrong excuse no other."""
SLACK = {
    torch.float64: 8.0,
    torch.float32: 8.0,
    torch.float16: 4.0,
    torch.bfloat16: 4.0,
    torch.float8_e4m3fn: 1.0,
    torch.float8_e5m2: 1.0,
}
"""Units beyond: where PyTorch is exact by chance, a right kernel may still be off by a fast exp (2 units)
and a few additions in another order. Shorter dtypes get less: a good kernel computes in float32 and rounds
once, and 8 units of bfloat16 would be 6 %."""
AS_ELSEWHERE = 1e-2
"""Relative: how far a value in place of NaN may be from the one of PyTorch's kernel for CPUs."""

# More samples, taken only where a candidate fails by little

LITTLE = 16.0
"""Times the allowance: beyond it, no other sample would make a right value of a wrong one."""
SAMPLES, NEIGHBORS = range(2, 5), range(1, 4)
"""The numbers of further samples, and of the neighboring inputs at which PyTorch runs: a single one moves an
element of millions too little by chance."""
SIGNS = range(1, 13)
"""The numbers of the neighboring inputs that show which infinities have the sign of a rounding error."""
NEAR_TIES = 0.01
"""Of whole numbers: up to this share of them may all be near a tie, which rounding decides."""
SAMPLES_OF_TIES = range(5, 14)
"""The numbers of those after them: each moves every other number that is near a tie."""

# What rounding does inside the reference (nearby.py)

TERMS = 4
"""A sum of n terms, one after the other, errs by about eps * n / 8 of a term; kernels add up columns so."""
CHAIN = 4
"""A product's n terms are added one after the other by a tile's multiply-adds: the errors of the partial sums
come to about eps * sqrt(n) / 8 of the result's typical size, whether the terms have one sign or two, and the
largest of millions of elements errs six times as much. Twice that leaves room within the slack."""

REPRESENTABLE = 4.0
"""Rounding errors of the arithmetic: an operand no further than this from a number of the inputs' dtype is
one of them, moved. Others are computed, and a tensor core takes them rounded to that dtype."""

# Fixed tolerances, |value - truth| <= tolerance * (1 + |truth|), which are reported and decide nothing

STRICT = {
    torch.float64: 1e-10,
    torch.float32: 1e-5,
    torch.float16: 1e-3,
    torch.bfloat16: 1e-2,
    torch.float8_e4m3fn: 0.13,
    torch.float8_e5m2: 0.26,
}
"""Those that many projects test with."""
LOOSER, LOOSEST = 100.0, 0.5
"""Loose ones are so many times as large, and no more than the second."""


def for_dtype(table: dict[torch.dtype, float], dtype: torch.dtype) -> float:
    """The table's number for a dtype; the smallest for one that it lacks."""
    return table.get(dtype, min(table.values()))
