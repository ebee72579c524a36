"""`torch.autocast("cuda")` inside of a function: drafted and judged as on a GPU, where there is none, too."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .drafting import drafted

pytestmark = pytest.mark.anyio

HEAD = """import torch
import torch.nn.functional as F

INPUTS = {"x": "float32[M, K]", "w": "float32[N, K]"}
DIMS = {"M": [5], "K": [40], "N": [17]}


"""
FUNCTION = """
@torch.autocast(device_type="cuda", dtype=torch.bfloat16)
def scores(x, w):
    return torch.softmax(x @ w.t(), -1)


def f(x, w):
    with torch.amp.autocast("cuda", dtype=torch.bfloat16):
        projected = F.linear(x, w)
    with torch.autocast("cuda"):
        y = F.linear(x, w)
        loss = (y.softmax(-1) * y).sum(-1)
    return scores(x, w), projected, loss
"""
"""In bfloat16 a decorated function and a result, in float16 what a loss adds up."""


async def test_a_draft_computes_what_each_region_casts(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = Target(path=tmp_path / "user.py", name="f")
    target.path.write_text(HEAD + FUNCTION, encoding="utf-8")
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=[1])
    request = ValidationRequest(
        candidate=Target(path=Path(file)), reference=target, seed=7, cases=("M=5 K=40 N=17",)
    )
    verdict = await validate(worker, request, interpreter)
    assert verdict.verdict == "passed", verdict.summary
    text = Path(file).read_text()
    assert "to(tl.bfloat16)" in text
    assert "to(tl.float16)" in text
