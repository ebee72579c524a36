"""Loops over a size: a program for each declared one."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

pytestmark = pytest.mark.anyio

LOOP = """import torch

INPUTS = {"x": "float32[T, E]"}
DIMS = {"T": [4], "E": [1, 5]}


def discounted(x):
    last, out = torch.zeros_like(x[0]), []
    for t in range(x.shape[0]):
        last = x[t] + 0.9 * last
        out.append(last)
    return torch.stack(out)
"""


def in_file(folder: Path, source: str) -> Target:
    path = folder / "target.py"
    path.write_text(source, encoding="utf-8")
    return Target(path=path, name=source.split("def ")[1].split("(")[0])


async def test_a_loop_over_a_dim_of_one_declared_size_is_drafted_at_that_size(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = in_file(tmp_path, LOOP)
    resolved = await resolve(worker, ConversionRequest(target=target), interpreter)
    assert resolved.fixed == {"T": 4}
    assert 'INPUTS = {"x": "float32[4, E]"}' in resolved.convertible().drafted(1).text


async def test_more_programs_than_a_file_has_are_refused_with_an_option_that_converts_four(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    async def drafted(options: Options = NO_OPTIONS) -> str:
        target = in_file(tmp_path, LOOP.replace("[4]", "[2, 3, 4, 5, 6]"))
        request = ConversionRequest(target=target, options=options)
        return (await resolve(worker, request, interpreter)).convertible().drafted(1).text

    with pytest.raises(NotConvertible, match="more than 4 programs") as refusal:
        await drafted()
    assert "--dim T=2,3,4,5," in refusal.value.hint
    assert "tl.store" in await drafted(parse_options([], ["T=2,3,4,5"]))
