"""Sizes that shape the program: a loop over one, a branch on one, `squeeze`."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options, parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Conversions

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
BRANCH = """import torch

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [3, 40]}


def f(x):
    return x.softmax(-1) if x.shape[-1] > 32 else x.log_softmax(-1)
"""
SQUEEZED = """import torch

INPUTS = {"x": "float32[B, N]"}
DIMS = {"B": [1, 4], "N": [9]}


def f(x):
    return x.squeeze().exp()
"""


def in_file(folder: Path, source: str) -> Target:
    path = folder / "target.py"
    path.write_text(source, encoding="utf-8")
    return Target(path=path, name=source.split("def ")[1].split("(")[0])


async def test_a_loop_over_a_dim_of_one_declared_size_is_converted_at_that_size(
    converted: Conversions, tmp_path: Path
) -> None:
    conversion = await converted(in_file(tmp_path, LOOP))
    assert conversion.verdict == "converted", conversion.summary
    assert "T is 4 in the kernel: it shapes the program." in conversion.notes


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (LOOP.replace("[4]", "[4, 7]"), ("--dim T=4",)),
        (BRANCH, ("--require 'N <= 32'", "--require 'N > 32'")),
        (SQUEEZED, ("--dim B=4", "--dim B=1")),
    ],
)
async def test_sizes_of_two_programs_are_refused_with_options_that_convert_each(
    source: str, kinds: Sequence[str], worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    async def drafted(options: Options = NO_OPTIONS) -> str:
        request = ConversionRequest(target=in_file(tmp_path, source), options=options)
        return (await resolve(worker, request, interpreter)).convertible().drafted(1).text

    with pytest.raises(NotConvertible) as refusal:
        await drafted()
    for option in kinds:
        assert option in refusal.value.hint
        name, text = option.removeprefix("--").replace("'", "").split(" ", 1)
        options = parse_options([], [text]) if name == "dim" else parse_options([], [], [text])
        assert "tl.store" in await drafted(options)
