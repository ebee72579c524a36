"""Products of matrices, vectors and stacks of them are PyTorch's."""

import numpy as np
import pytest
import torch

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Buffer, Cluster, Store
from pytorch_to_triton.draft.lower.contractions import mm
from pytorch_to_triton.draft.lower.row import Context
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, source

from ..evaluate import evaluate
from ..lowering import agrees

A, B, V = torch.randn(3, 5), torch.randn(5, 7), torch.randn(5)
STACK, OTHER = torch.randn(2, 3, 5), torch.randn(2, 5, 4)
WHOLE = torch.randint(-9, 9, (3, 5)), torch.randint(-9, 9, (5, 2))
BIAS, NAN = torch.randn(7), torch.full((3, 7), torch.nan)
TRILINEAR = "aten._trilinear.default"
PLACES = ([1, 3], [0], [1, 2], [2, 3])
"""Where each operand has dimensions of size 1, and over which the product is summed."""
CALLS = {
    "mm": ("aten.mm.default", A, B),
    "mm of whole numbers": ("aten.mm.default", *WHOLE),
    "mm over one element": ("aten.mm.default", A[:, :1], B[:1]),
    "mm over none": ("aten.mm.default", A[:, :0], B[:0]),
    "mm of one row and one column": ("aten.mm.default", A[:1], B[:, :1]),
    "bmm": ("aten.bmm.default", STACK, OTHER),
    "linear": ("aten.linear.default", A, B.T.contiguous()),
    "linear with a bias": ("aten.linear.default", STACK, B.T.contiguous(), BIAS),
    "a bilinear layer's product": (TRILINEAR, A, torch.randn(4, 5, 6), torch.randn(3, 6), *PLACES),
    "a bilinear layer's product of one tensor": (TRILINEAR, A, torch.randn(4, 5, 5), A, *PLACES),
    "linear of a vector": ("aten.linear.default", V, B.T.contiguous(), BIAS),
}
SUMS = {
    "addmm": ("aten.addmm.default", BIAS, A, B),
    "addmm of a matrix": ("aten.addmm.default", torch.randn(3, 7), A, B),
    "baddbmm": ("aten.baddbmm.default", torch.randn(2, 1, 4), STACK, OTHER),
    "addbmm": ("aten.addbmm.default", torch.randn(3, 4), STACK, OTHER),
    "addbmm of one batch": ("aten.addbmm.default", torch.randn(4), STACK[:1], OTHER[:1]),
    "addmv": ("aten.addmv.default", torch.randn(3), A, V),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_product_is_pytorchs(name: str) -> None:
    agrees(*CALLS[name])


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, 1), (1, 0.5), (-0.5, 3), (0, 2)])
@pytest.mark.parametrize("name", SUMS)
def test_what_is_added_is_scaled(name: str, alpha: float, beta: float) -> None:
    agrees(*SUMS[name], alpha=alpha, beta=beta)


def test_with_beta_0_not_even_nan_is_added() -> None:
    agrees("aten.addmm.default", NAN, A, B, beta=0, alpha=2)


def test_a_tensor_may_be_multiplied_with_itself() -> None:
    names = Names()
    x = source(names, "x", [sizes.size(3)] * 2, "float32")
    found = mm(Context(names, (), "float32", "out"), x, x)
    assert isinstance(found, Tensor)
    arrays = {"x": np.random.default_rng(0).normal(size=(3, 3))}
    store = Store(Buffer("out", found.shape, "float32"), found.indices, found.value)
    evaluate(Cluster("one", (store,)), arrays, {})
    np.testing.assert_allclose(arrays["out"], arrays["x"] @ arrays["x"])
