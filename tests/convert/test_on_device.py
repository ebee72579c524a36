"""On a GPU: a conversion is tuned and timed at each size that matters, and each was compared."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import convert
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.inputs.declaration import parse_points
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..conftest import Written

pytestmark = [pytest.mark.anyio, pytest.mark.gpu]
ROWS = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [40]}


def f(x):
    return torch.softmax(x, -1)
"""


async def test_every_stage_is_timed_and_compared_at_each_named_size(
    worker: WorkerClient, device: Runtime, written: Written, tmp_path: Path
) -> None:
    points = parse_points(["M=4096,N=8192", "M=64,N=256"])
    request = ConversionRequest(target=written(ROWS), points=points, into=tmp_path / "converted", seed=7)
    conversion = await convert(worker, request, device)
    assert conversion.stages[0].passed, conversion.summary
    assert [sizes.dims for sizes in conversion.at] == [{"M": 64, "N": 256}, {"M": 4096, "N": 8192}]
    for sizes in conversion.at:
        assert sizes.timing is not None
        assert sizes.speedup is not None
        labels = {timing.label for timing in sizes.timing.timings}
        assert {"PyTorch eager", "torch.compile", "stage 1"} <= labels
    for stage in conversion.stages:
        tried = {case.name: case.status for case in stage.verdict.cases}
        assert (tried["M=64 N=256"], tried["M=4096 N=8192"]) == ("passed", "passed")
    last = conversion.stages[-1].file.read_text(encoding="utf-8")
    assert "at M=64 N=256; M=4096 N=8192." in last
