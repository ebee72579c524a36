"""`torch.autocast("cuda")` is traced as a GPU would take it, though the trace sees none."""

import pytest

from .conftest import TracingText

pytestmark = pytest.mark.anyio

HEAD = """import torch
import torch.nn.functional as F

INPUTS = {"x": "float32[M, K]", "w": "float32[N, K]"}
DIMS = {"M": [1, 5], "K": [3, 40], "N": [4, 17]}


"""
BY_HAND = {
    "a decorator": (
        "@torch.autocast('cuda', torch.bfloat16)\ndef f(x, w):\n    return torch.softmax(x @ w.t(), -1)\n",
        "def f(x, w):\n    t = w.t()\n    y = x.bfloat16() @ t.bfloat16()\n"
        "    return torch.softmax(y.float(), -1)\n",
    ),
    "a region of torch.amp in float16, by default": (
        "def f(x, w):\n    with torch.amp.autocast('cuda'):\n        return F.gelu(F.linear(x, w))\n",
        "def f(x, w):\n    return F.gelu(F.linear(x.half(), w.half()))\n",
    ),
    "an old region, and one inside of it that ends it": (
        "def f(x, w):\n    with torch.cuda.amp.autocast(dtype=torch.bfloat16):\n        y = F.linear(x, w)\n"
        "        with torch.autocast('cuda', enabled=False):\n            z = F.linear(x, w)\n"
        "        return F.layer_norm(y, (y.shape[-1],)) + z\n",
        "def f(x, w):\n    y = F.linear(x.bfloat16(), w.bfloat16())\n    z = F.linear(x, w)\n"
        "    return F.layer_norm(y.float(), (y.shape[-1],)) + z\n",
    ),
}


@pytest.mark.parametrize("what", BY_HAND)
async def test_a_region_is_traced_as_its_casts_by_hand(what: str, traced: TracingText) -> None:
    region, by_hand = [await traced(HEAD + body) for body in BY_HAND[what]]
    calls = [[(n.op, n.dtype) for n in t.graph.nodes] for t in (region, by_hand)]
    assert calls[0] == calls[1]
    assert region.output_dtypes == by_hand.output_dtypes
    assert (region.graph.autocast, by_hand.graph.autocast) == (True, False)
