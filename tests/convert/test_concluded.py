"""The outcome of a conversion, from its stages."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import concluded
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.convert.stages import Staged
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .stages import stage

pytestmark = pytest.mark.anyio

FILE = """INPUTS = {"x": "float32[N]"}
DIMS = {"N": [9]}

def f(x):
    return x + 1
"""
OUTCOMES = [
    ([stage(1), stage(2), stage(3)], "converted", True),
    ([stage(1), stage(2, "failed")], "stopped", True),
    ([stage(1, "failed")], "stopped", False),
]


@pytest.mark.parametrize(("stages", "verdict", "kept"), OUTCOMES)
async def test_a_function_is_converted_only_where_the_last_stage_passed(
    stages: list[StageReport],
    verdict: str,
    kept: bool,
    worker: WorkerClient,
    interpreter: Runtime,
    tmp_path: Path,
) -> None:
    target = Target(path=tmp_path / "f.py", name="f")
    target.path.write_text(FILE)
    request = ConversionRequest(target=target, seed=7)
    work = ConversionWork(worker, interpreter, None, await resolve(worker, request, interpreter), tmp_path)
    found = concluded(work, Staged(stages), await versions(worker, interpreter))
    assert (found.verdict, found.kernel) == (verdict, tmp_path / "f_triton.py" if kept else None)
