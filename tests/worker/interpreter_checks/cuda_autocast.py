"""Regions of torch.autocast("cuda"), where the CPU poses as a GPU: CUDA's lists, not the CPU's."""

import functools

import torch
import torch.nn.functional as F

from pytorch_to_triton.worker.interpreter import cuda_autocast

X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
SHORT = X.to(torch.bfloat16)
bfloat16_region = functools.partial(torch.autocast, "cuda", dtype=torch.bfloat16)


def products_take_the_dtype_of_the_region() -> None:
    with bfloat16_region():
        products = [X @ X.T, F.linear(X, X), torch.einsum("ij,kj->ik", X, X), torch.addmm(X.mm(X.T), X, X.T)]
    assert {p.dtype for p in products} == {torch.bfloat16}
    assert torch.equal(products[0], SHORT @ SHORT.T)


def what_loses_digits_in_short_dtypes_is_computed_in_float32() -> None:
    with bfloat16_region():
        wide = [
            SHORT.softmax(-1), SHORT.sum(), SHORT.exp(), SHORT**2, SHORT.square(), F.layer_norm(SHORT, (8,)),
            F.cross_entropy(SHORT, torch.zeros(4, dtype=torch.int64)), F.mse_loss(SHORT, SHORT), SHORT.norm(),
        ]  # fmt: skip
    assert {w.dtype for w in wide} == {torch.float32}
    assert torch.equal(wide[0], SHORT.float().softmax(-1))


def a_dtype_that_the_function_names_itself_stays() -> None:
    with bfloat16_region():
        assert SHORT.sum(dtype=torch.bfloat16).dtype == torch.bfloat16
        assert SHORT.softmax(-1, dtype=torch.float64).dtype == torch.float64
        assert (X.double() @ X.double().T).dtype == torch.float64


def operands_of_several_dtypes_take_the_widest() -> None:
    with bfloat16_region():
        assert torch.addcmul(X, SHORT, SHORT).dtype == torch.float32
        assert torch.addcmul(SHORT, SHORT, SHORT).dtype == torch.bfloat16


def what_is_on_no_list_of_cudas_keeps_its_dtype() -> None:
    image = SHORT.view(1, 1, 4, 8)
    with bfloat16_region():
        kept = [SHORT.mean(), SHORT.relu(), SHORT + 1, F.pad(image, (1, 1, 1, 1), "replicate")]
    assert {k.dtype for k in kept} == {torch.bfloat16}


def regions_nest_and_end() -> None:
    with torch.amp.autocast("cuda"):
        assert (X @ X.T).dtype == torch.float16
        assert torch.is_autocast_enabled()
        with torch.autocast("cuda", enabled=False):
            assert (X @ X.T).dtype == torch.float32
        assert (X @ X.T).dtype == torch.float16
    assert (X @ X.T).dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")


def a_decorated_function_casts_at_each_call_and_its_gradients_are_wide() -> None:
    product = torch.autocast("cuda", dtype=torch.bfloat16)(lambda x: x @ x.T)
    x = X.clone().requires_grad_()
    for _ in range(2):
        assert product(x).dtype == torch.bfloat16
    product(x).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.float32


def installing_twice_changes_nothing() -> None:
    before = torch.set_autocast_enabled
    cuda_autocast.install()
    assert torch.set_autocast_enabled is before
