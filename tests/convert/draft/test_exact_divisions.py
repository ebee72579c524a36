"""A quotient that is rounded to a whole number is PyTorch's own, any other as fast as it can be."""

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ...conftest import Written
from ..drafting import drafts_of, sourced

pytestmark = pytest.mark.anyio

DECLARED = 'INPUTS = {"x": "bfloat16[M, N]", "y": "float32[M, N]"}\nDIMS = {"M": [3], "N": [33]}\n\n\n'
QUANTISED = (
    "def f(x, y):\n"
    "    scale = x.abs().amax(-1, keepdim=True).float() / 127.0\n"
    "    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale, y / (1 + y.exp())\n"
)


async def test_divisions_behind_a_rounding_are_those_of_ieee_754_and_others_are_fast(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    """Seen on an H200: 63.5, divided fast, came out below and was rounded to 63 in place of 64."""
    origin = await sourced(worker, interpreter, written(DECLARED + QUANTISED))
    for drafted in drafts_of(origin).values():
        kernels = drafted.text[drafted.text.index("@triton.jit") :]
        of_x, of_y = kernels.count("tl.div_rn("), kernels.count("tl.div_rn(y")
        assert of_x >= 2
        assert of_y == 0
        assert "y / (" in kernels


async def test_indices_and_integers_are_divided_as_they_are(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    text = DECLARED.replace("float32[M, N]", "int32[M, N]")
    body = "def f(x, y):\n    return torch.floor(y / 3 + x), (y // 2)\n"
    origin = await sourced(worker, interpreter, written(text + body))
    assert all("tl.div_rn(y," not in drafted.text for drafted in drafts_of(origin).values())
