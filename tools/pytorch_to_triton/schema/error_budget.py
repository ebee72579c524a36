"""How far a result may be from the truth."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytorch_to_triton.worker import wire

FACTOR = 2.0
"""A candidate may err twice as much as PyTorch: another order of the same operations easily does."""
SLACK = {
    "float64": 8.0,
    "float32": 8.0,
    "float16": 4.0,
    "bfloat16": 4.0,
    "float8_e4m3fn": 1.0,
    "float8_e5m2": 1.0,
}
"""What a candidate may err beyond that, in units of rounding error: where PyTorch is exact by chance, a right
kernel may still be off by a fast exp (2 units) and a few additions in another order. Shorter dtypes get less:
a good kernel computes in float32 and rounds once, and 8 units of bfloat16 would be 6 %."""
STRICT = {
    "float64": 1e-10,
    "float32": 1e-5,
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 0.13,
    "float8_e5m2": 0.26,
}
"""Fixed tolerances, relative and absolute alike, that many projects test with: they are reported with the
budget and decide nothing. Loose ones are a hundred times as large, and no more than LOOSEST."""
LOOSEST = 0.5
UNTRUSTED = 0.5
"""Relative error from which on an element of PyTorch's result is no measure for the candidate's."""


def budget() -> "wire.ErrorBudget":
    """The error budget as the worker's jobs take it."""
    return {
        "factor": FACTOR,
        "slack": dict(SLACK),
        "untrusted": UNTRUSTED,
        "strict": dict(STRICT),
        "loose": {dtype: min(100 * strict, LOOSEST) for dtype, strict in STRICT.items()},
    }
