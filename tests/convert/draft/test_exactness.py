"""What a later step brings to light is rounded as PyTorch rounds it, all else is as fast as it can be."""

from collections.abc import Awaitable, Callable

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ...conftest import Written
from ..drafting import drafts_of, sourced

pytestmark = pytest.mark.anyio

Texts = Callable[[str], Awaitable[list[str]]]
DECLARED = 'INPUTS = {"x": "bfloat16[M, N]", "y": "float32[M, N]"}\nDIMS = {"M": [3], "N": [33]}\n\n\n'
QUANTISED = (
    "def f(x, y):\n"
    "    scale = x.abs().amax(-1, keepdim=True).float() / 127.0\n"
    "    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale, y / (1 + y.exp())\n"
)


@pytest.fixture
def texts(written: Written, worker: WorkerClient, interpreter: Runtime) -> Texts:
    """The drafts of a file's text, one a stage."""

    async def texts(text: str) -> list[str]:
        origin = await sourced(worker, interpreter, written(text))
        return [drafted.text for drafted in drafts_of(origin).values()]

    return texts


async def test_divisions_behind_a_rounding_are_those_of_ieee_754_and_others_are_fast(texts: Texts) -> None:
    """Seen on an H200: 63.5, divided fast, came out below and was rounded to 63 in place of 64."""
    for text in await texts(DECLARED + QUANTISED):
        kernels = text[text.index("@triton.jit") :]
        assert kernels.count("quotient_rn(x, ") > 0
        assert "y / (" in kernels
        # Seen on an H100: divided by 127, 591 of 33,554,432 scales of rows came out unlike PyTorch's.
        assert "(1.0 / 127.0)" in kernels


async def test_a_literal_divides_float64_as_it_is(texts: Texts) -> None:
    wide = DECLARED.replace("float32", "float64") + "def f(x, y):\n    return y / 127.0\n"
    assert all("y / 127.0" in text for text in await texts(wide))


async def test_what_an_angle_is_computed_from_is_as_exact_as_pytorch(texts: Texts) -> None:
    """Seen on an H100: the sine of 1000 radians was off by 1e-4 by a fast exponential."""
    body = "def f(x, y):\n    return torch.sin(1000 * torch.exp(y) / x.float().sqrt()), torch.exp(x)\n"
    for text in await texts(DECLARED + body):
        for exact in ("libdevice.exp(y)", "tl.sqrt_rn(", "tl.div_rn(", "tl.exp(x)"):
            assert exact in text


async def test_quotients_that_are_compared_are_exact_but_for_their_sign(texts: Texts) -> None:
    body = "def f(x, y):\n    return x / y > 0.5, (y / x).relu() > 0\n"
    for text in await texts(DECLARED + body):
        assert "tl.div_rn(x, y)" in text
        assert "y / x" in text


async def test_indices_and_integers_are_divided_as_they_are(texts: Texts) -> None:
    whole = DECLARED.replace("float32[M, N]", "int32[M, N]")
    body = "def f(x, y):\n    return torch.floor(y / 3 + x), (y // 2)\n"
    assert all("tl.div_rn(y," not in text for text in await texts(whole + body))
