"""Differences that PyTorch's own rounding cancels: drafts round neither side between their kernels."""

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

INPUTS = {"a": "bfloat16[N, V]", "b": "bfloat16[N, V]"}
DIMS = {"N": [5], "V": [100]}


def f(a, b):
    p, log_q = F.softmax(b, -1), F.log_softmax(a, -1)
    return """
RESULTS = {
    "a divergence of a student from its teacher": 'F.kl_div(log_q, p, reduction="batchmean")',
    "a cross entropy less the entropy": "(p * p.log()).sum(-1) - (p * log_q).sum(-1)",
    "a ratio of probabilities": "torch.exp(p.log() - log_q).mean(-1) - 1.0",
    "a divergence beside the probabilities": "(p * (p.log() - log_q)).sum(), p",
}


LESS = ("a ratio of probabilities", "a divergence beside the probabilities")
"""With the corpora."""


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=pytest.mark.corpora if what in LESS else ()) for what in RESULTS]
)
async def test_what_cancels_in_pytorch_cancels_in_a_draft(
    what: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = Target(path=tmp_path / "user.py", name="f")
    target.path.write_text(f"{HEAD}{RESULTS[what]}\n", encoding="utf-8")
    for file in await drafted(worker, interpreter, target, tmp_path, stages=[1, 3]):
        request = ValidationRequest(
            candidate=Target(path=Path(file)), reference=target, seed=7, cases=("N=5 V=100 zeros",)
        )
        verdict = await validate(worker, request, interpreter)
        assert verdict.verdict == "passed", verdict.summary
