"""The outcome of a conversion, from its stages."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import concluded
from pytorch_to_triton.convert.stages import Staged
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, parse_declaration
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .drafting import sourced
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
    traced, source = await sourced(worker, interpreter, target)
    work = ConversionWork(
        worker=worker,
        runtime=interpreter,
        listener=None,
        target=target,
        options=NO_OPTIONS,
        folder=tmp_path,
        source=source,
        traced=traced,
        declaration=parse_declaration({"x": "float32[N]"}, {"N": [9]}),
        seed=7,
        seconds=60.0,
        backward=False,
        thorough=False,
    )
    found = concluded(work, Staged(stages), await versions(worker, interpreter))
    assert (found.verdict, found.kernel) == (verdict, tmp_path / "f_triton.py" if kept else None)
