"""Functions as people write them: each is drafted, and all stages compute what eager PyTorch does."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .drafting import drafts_of, sourced, written
from .eager_calls import calls, differences, draft_of
from .test_real_functions import declared, sizes

pytestmark = pytest.mark.anyio

SOURCE = """import math
import torch
import torch.nn.functional as F

INPUTS = {inputs}
DIMS = {{"B": [1, 2], "H": [4, 7], "W": [5, 9]}}


def f({parameters}):
    {body}
"""
IMAGE = {"x": "float32[B, 3, H, W]"}
FUNCTIONS: Mapping[str, tuple[Mapping[str, object], str]] = {
    "an image of half its size": (IMAGE, "return F.interpolate(x, scale_factor=0.5).relu()"),
    "a share of each row": (IMAGE, "return x[..., : int(x.shape[-1] * 0.7)] * math.ceil(x.shape[2] / 1.5)"),
}
"""What is declared, and the body."""
LEFT: Mapping[str, tuple[str, ...]] = {}
"""The operators that stay PyTorch's; none of the functions not named."""


@pytest.mark.parametrize("name", FUNCTIONS)
async def test_every_stage_computes_what_eager_pytorch_does(
    name: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    inputs, body = FUNCTIONS[name]
    source = SOURCE.format(inputs=dict(inputs), parameters=", ".join(inputs), body=body)
    path = tmp_path / "target.py"
    path.write_text(source, encoding="utf-8")
    target = Target(path=path, name="f")
    drafted = drafts_of(await sourced(worker, interpreter, target))
    files = [written(d, target, tmp_path, stage) for stage, d in drafted.items()]
    declaration = await declared(worker, interpreter, target)
    draft = draft_of("f", target, files, calls(declaration, sizes(declaration)))
    assert await differences(worker, interpreter, [draft]) == {"f": []}
    assert {call for d in drafted.values() for call in d.calls} == set(LEFT.get(name, ()))
