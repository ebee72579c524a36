"""What one operator returns is computed by one kernel, which reads its input once."""

import pytest

from ..conftest import Written
from .conftest import Resolving
from .drafting import drafts_of

pytestmark = pytest.mark.anyio
SOURCE = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [33]}


def f(x):
    return x.max(-1), x.min(0), torch.var_mean(x, -1)
"""
"""A row's largest and a column's smallest, each with its place, and a variance with a mean."""


async def test_both_results_are_stored_by_the_same_kernels(written: Written, resolved: Resolving) -> None:
    for drafted in drafts_of((await resolved(written(SOURCE))).convertible(), (2, 3)).values():
        stored = [drafted.text.split(f"def {kernel.name}(")[1] for kernel in drafted.kernels]
        assert stored
        assert all(text.split("\n@triton")[0].count("tl.store(") >= 2 for text in stored)
