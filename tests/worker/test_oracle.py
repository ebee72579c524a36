"""The float64 truth: it takes the branches of the case's own dtypes, and rounds nothing."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from .dtype_references import ROWS, Row
from .oracles import truth_of, values

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def named(value: Any) -> str:
    reference = value.reference if isinstance(value, Row) else value
    return getattr(reference, "__name__", type(reference).__name__ if isinstance(value, Row) else str(value))


def x_of(dtype: torch.dtype) -> Tensor:
    return torch.randn(7, 16, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=named)
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_the_truth_takes_the_branches_of_the_case_s_dtype(
    row: Row, dtype: torch.dtype, tmp_path: Path
) -> None:
    x, w = x_of(dtype), torch.linspace(0.5, 2, 16)
    truth = truth_of(row.reference, {"x": x, "w": w}, tmp_path)
    by_hand = row.formula(x.double(), w.double(), dtype)
    assert truth.precision == "float64"
    assert torch.allclose(values(truth), by_hand, rtol=1e-11, atol=1e-11)
    eager = truth.pytorch["out"].tensor
    assert eager is not None
    error = (eager.double() - by_hand).abs() / (1 + by_hand.abs())
    assert float(error.max()) < 8 * torch.finfo(dtype).eps
