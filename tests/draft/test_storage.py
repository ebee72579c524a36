"""In which dtype a drafted `run` keeps what lies in memory."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from ..convert.drafting import drafts_of, sourced

pytestmark = pytest.mark.anyio

HEAD = """import torch.nn.functional as F

INPUTS = {"x": "DTYPES[M, K]", "w": "DTYPES[K, K]"}
DIMS = {"M": [5], "K": [40]}


def f(x, w):
    """
Allocating = Callable[[str, str], Awaitable[dict[str, str]]]


@pytest.fixture
def allocated(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> Allocating:
    """The tensors that stage 1 of a function allocates, each with its dtype as source."""

    async def allocated(dtypes: str, body: str) -> dict[str, str]:
        target = Target(path=tmp_path / "user.py", name="f")
        target.path.write_text(HEAD.replace("DTYPES", dtypes) + body, encoding="utf-8")
        text = drafts_of(await sourced(worker, interpreter, target), [1])[1].text
        alike = {
            name: f"{model}.dtype" for name, model in re.findall(r"(\w+) = torch\.empty_like\((\w+)\)", text)
        }
        return alike | dict(re.findall(r"(\w+) = torch\.empty\(.*dtype=(.*)\)", text))

    return allocated


LOGARITHMS = "return x.softmax(-1).log().sum(0)\n"


@pytest.mark.parametrize(
    ("dtypes", "kept"),
    [
        ("bfloat16", "torch.float32"),
        ("float64|float32|bfloat16", "torch.promote_types(x.dtype, torch.float32)"),
        ("float64|float32", "x.dtype"),
    ],
)
async def test_what_kernels_alone_read_is_never_short(dtypes: str, kept: str, allocated: Allocating) -> None:
    assert await allocated(dtypes, LOGARITHMS) == {"log": kept, "out": "x.dtype"}


async def test_a_result_that_another_kernel_reads_is_rounded_at_the_end(allocated: Allocating) -> None:
    body = "probs = x.softmax(-1)\n    return probs, probs.log().sum(0)\n"
    assert (await allocated("bfloat16", body))["probs"] == "torch.float32"


async def test_factors_lie_in_the_dtype_that_is_multiplied(allocated: Allocating) -> None:
    body = "hidden = F.gelu(x @ w)\n    logits = hidden @ w\n    return logits.softmax(-1)\n"
    found = await allocated("bfloat16", body)
    assert (found["hidden"], found["logits"]) == ("x.dtype", "torch.float32")


async def test_what_a_call_of_pytorch_takes_is_pytorchs(allocated: Allocating) -> None:
    body = "probs = x.softmax(-1)\n    return probs.sort(-1).values + probs.sum()\n"
    assert (await allocated("bfloat16", body))["probs"] == "x.dtype"
