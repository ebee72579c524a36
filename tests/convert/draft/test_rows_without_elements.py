"""A row without elements has PyTorch's result, too."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from ...conftest import Written
from ..drafting import drafted

pytestmark = pytest.mark.anyio

WEIGHTED = (
    'INPUTS = {"x": "float32[M, N]", "v": "float32[M, N]"}\nDIMS = {"M": [3], "N": [33]}\n\n\n'
    "def f(x, v):\n    return (torch.softmax(x, -1) * v).sum(-1)\n"
)


async def test_a_weighted_sum_of_nothing_is_zero_in_every_stage(
    written: Written, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = written(WEIGHTED)
    for file in await drafted(worker, interpreter, target, tmp_path):
        request = ValidationRequest(
            candidate=Target(path=Path(file)), reference=target, cases=("M=3 N=0",), seed=3
        )
        verdict = await validate(worker, request, interpreter)
        assert [case.status for case in verdict.cases] == ["passed"], verdict.summary
