"""Reductions and scans give what PyTorch gives, for NaN, ties, ints, bools and nothing at all."""

import pytest
import torch

from pytorch_to_triton.draft.ir.values import Argument
from pytorch_to_triton.draft.lower.reductions import vector_norm
from pytorch_to_triton.draft.lower.row import Refused

from ..lowering import agrees

INF, NAN = float("inf"), float("nan")
X = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0))
ODD = torch.tensor(
    [[1.0, NAN, 3.0, NAN], [2.0, 2.0, -INF, 2.0], [-INF, -INF, -INF, -INF], [INF, 1.0, INF, 0.0]]
)
TIES = torch.tensor([[3, 1, 3, 1], [-2, -2, -2, 5]])
TRUTHS = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
EMPTY = torch.zeros(3, 0)
ONE = torch.tensor(2.5)
DIMS = ([0], [1, -1], [0, 2], [-1], [0, 1, 2], None)


def test_sums_and_means_agree_over_any_dimensions() -> None:
    for dims in DIMS:
        for keepdim in (False, True):
            for name in ("sum.dim_IntList", "mean.dim"):
                agrees(f"aten.{name}", X, dims, keepdim)
    for name in ("sum", "mean", "prod"):
        for x in (X, ONE, ODD, X[:1, :, :1]):
            agrees(f"aten.{name}.default", x)
    for x in (TIES, TRUTHS, TIES.to(torch.int32)):
        agrees("aten.sum.default", x)
        agrees("aten.prod.dim_int", x, 1)
        agrees("aten.sum.dim_IntList", x, [0], dtype=torch.float32)
        agrees("aten.mean.dim", x, [1], dtype=torch.float32)
    agrees("aten.prod.dim_int", X, 1, True)
    for name in ("sum.dim_IntList", "mean.dim", "any.dims"):
        agrees(f"aten.{name}", EMPTY, [1])


def test_the_largest_and_smallest_are_found_with_their_first_place() -> None:
    for x in (X, ODD, TIES, TRUTHS, ONE, X[:, :1]):
        last = len(x.shape) - 1
        for name in ("max", "min"):
            agrees(f"aten.{name}.default", x)
            agrees(f"aten.a{name}.default", x)
            agrees(f"aten.a{name}.default", x, [-1], True)
            agrees(f"aten.{name}.dim", x, 0)
            agrees(f"aten.{name}.dim", x, last, True)
            if x.dtype != torch.bool:
                agrees(f"aten.arg{name}.default", x)
                agrees(f"aten.arg{name}.default", x, keepdim=True)
                agrees(f"aten.arg{name}.default", x, -1)


def test_any_takes_every_dtype() -> None:
    for x in (TRUTHS, TIES, ODD, X > 1, ONE):
        agrees("aten.any.default", x)
        agrees("aten.any.dim", x, -1, True)
        agrees("aten.any.dims", x, [0])
        agrees("aten.any.dims", x, [])


def test_variances_take_their_correction() -> None:
    for name in ("var", "var_mean"):
        for correction in (None, 0, 1, 2, 0.5):
            agrees(f"aten.{name}.correction", X, [0, 2], correction=correction, keepdim=True)
        agrees(f"aten.{name}.correction", X)
        agrees(f"aten.{name}.correction", X, [1], correction=0)


def test_norms_agree_for_every_order() -> None:
    for order in (0, 0.5, 1, 2, 3, 2.5, INF, -INF, -1):
        agrees("aten.linalg_vector_norm.default", X, order, [0, 2])
        agrees("aten.linalg_vector_norm.default", X, order, None, True)
    agrees("aten.linalg_vector_norm.default", ODD, INF, [1])
    for order in (0.0, 1.0, 2.0, 3.5, INF):
        agrees("aten.dist.default", X, X[:1] + 1, order)
        agrees("aten._cdist_forward.default", X, X[:, :2] * 2, order, None)
        agrees("aten._cdist_forward.default", X, X, order, 2)


def test_the_logarithm_of_a_sum_of_exponentials_survives_infinities() -> None:
    for x in (ODD, ODD[1:2] * 1e4, TIES, ONE):
        agrees("aten.logsumexp.default", x, [-1])
        agrees("aten.logsumexp.default", x, [0], True)
    agrees("aten.logsumexp.default", X, [0, 2])


def test_running_totals_agree_along_any_dimension() -> None:
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        for dim in (0, 1, -1):
            agrees(f"aten.{name}.default", X, dim)
        for x in (ODD, ONE, X[:, :1]):
            agrees(f"aten.{name}.default", x, -1)
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        for x in (TIES, TIES.to(torch.int32), TRUTHS):
            agrees(f"aten.{name}.default", x, 1)
    agrees("aten.cumsum.default", TIES, 0, dtype=torch.float32)


def test_a_norm_whose_order_is_an_argument_is_refused() -> None:
    with pytest.raises(Refused, match="no literal"):
        vector_norm(None, None, Argument("p", "p"), [0])  # type: ignore[arg-type]
