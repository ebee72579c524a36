"""The random numbers of a kernel are those that a reference draws in its place, to the last bit."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from pytorch_to_triton.draft.ir.functions import FUNCTIONS
from pytorch_to_triton.worker.random_numbers import DrawnByElement, has_drawn, seed_call, uniform

INTERPRETED = """import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch, triton, triton.language as tl

@triton.jit
def uniform_kernel(seed_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.rand(tl.load(seed_ptr), i))

torch.manual_seed(int(sys.argv[1]))
out = torch.empty(1024)
uniform_kernel[(1,)](torch.randint(2**62, ()), out, 1024)
print(out.tolist())
"""


@pytest.mark.parametrize("seed", [0, 3, 2**31])
def test_torch_numpy_and_triton_draw_the_same_numbers(seed: int) -> None:
    torch.manual_seed(seed)
    drawn = uniform(torch.empty(1024))
    torch.manual_seed(seed)
    numpy = FUNCTIONS["uniform"].numpy(int(torch.randint(2**62, ())), np.arange(1024))
    assert np.array_equal(drawn.numpy(), numpy)
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED, str(seed)], capture_output=True, text=True, check=True
    )
    assert drawn.tolist() == eval(done.stdout)
    assert 0 <= drawn.min() < 0.01 < 0.99 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.03


DRAWING = {
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "native_dropout": lambda x: torch.ops.aten.native_dropout(x, 0.5, True)[0],
    "dropout2d": lambda x: torch.nn.functional.dropout2d(x[None, None], 0.5),
    "alpha_dropout": lambda x: torch.nn.functional.alpha_dropout(x, 0.5, training=True),
    "bernoulli_": lambda x: x.clone().bernoulli_(0.3),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "normal": lambda x: torch.normal(x, 1.0),
    "rrelu": lambda x: torch.nn.functional.rrelu(x, training=True),
    "multinomial": lambda x: torch.multinomial(x.softmax(-1), 2),
}


@pytest.mark.parametrize("name", DRAWING)
def test_an_element_s_number_does_not_depend_on_strides(name: str) -> None:
    x = torch.randn(5, 7).t()
    results = []
    for operand in (x, x.contiguous()):
        seed_call("case")
        with DrawnByElement():
            results.append(DRAWING[name](operand))
        assert has_drawn("case")
    assert torch.equal(*results)
    assert not torch.equal(results[0], x) or name == "dropout2d"


def test_dropout_drops_its_share_and_scales_the_rest() -> None:
    x = torch.ones(100, 100, requires_grad=True)
    with DrawnByElement():
        out = torch.nn.functional.dropout(x, 0.2)
        again = torch.nn.functional.dropout(x, 0.2)
    assert not torch.equal(out, again)
    assert set(out.unique().tolist()) == {0.0, 1.25}
    assert 0.78 < (out > 0).float().mean() < 0.82
    out.sum().backward()
    assert torch.equal(x.grad, out)


def test_what_draws_nothing_is_seen_as_such() -> None:
    seed_call("case")
    torch.nn.functional.dropout(torch.ones(9), 0.5, training=False)
    assert not has_drawn("case")
