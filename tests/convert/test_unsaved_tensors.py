"""Tensors of a module that no state_dict has: a kernel is given them, and makes positions by itself."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pytorch_to_triton.schema.target import Target

from ..validate.verdicts import ANY
from .conftest import Conversions, Judging, Resolving

WINDOW = """import torch
from torch import nn

INPUTS = {"scores": "float32[B, 4, 8, 8]"}
DIMS = {"B": [2, 3]}


class Window(nn.Module):
    def __init__(self, heads=4, window=8):
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]
        self.scale = 1.0 - rates[-1]
        self.table = nn.Parameter(torch.zeros(2 * window - 1, heads))
        places = torch.arange(window)
        self.register_buffer("index", places[:, None] - places[None, :] + window - 1, persistent=False)
        self.register_buffer("decay", torch.linspace(0.5, 1.0, heads), persistent=False)
        self.register_buffer("places", places, persistent=False)

    def forward(self, scores):
        bias = self.table[self.index.view(-1)].view(*self.index.shape, -1).permute(2, 0, 1)
        return torch.softmax(scores * self.scale + bias * self.decay[:, None, None] - self.places, -1)
"""
OWN_INDEX = """import torch
from torch import nn


def same(scores, table):
    places = torch.arange(8, device=scores.device)
    bias = table[places[:, None] - places[None, :] + 7].permute(2, 0, 1)
    decay = torch.linspace(0.5, 1.0, 4, device=scores.device)
    return torch.softmax(scores * 0.5 + bias * decay[:, None, None] - places, -1)


class Same(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(15, 4))

    def forward(self, scores):
        return same(scores, self.table)
"""


@pytest.fixture
def window(tmp_path: Path) -> Target:
    path = tmp_path / "window.py"
    path.write_text(WINDOW, encoding="utf-8")
    return Target(path=path, name="Window")


@pytest.mark.anyio
async def test_buffers_are_arguments_but_for_positions_and_places_keep_their_range(
    resolved: Resolving, window: Target
) -> None:
    origin = (await resolved(window)).convertible()
    assert {name: str(spec) for name, spec in origin.state.items()} == {
        "table": "float32[15, 4]",
        "index": "int64[8, 8] in 0..15",
        "decay": "float32[4]",
    }


@pytest.mark.anyio
async def test_the_reference_has_them_among_fake_tensors_too(resolved: Resolving, window: Target) -> None:
    reference = (await resolved(window)).convertible().reference
    contents: dict[str, Any] = {"torch": torch}
    exec("\n".join((*reference.imports, *reference.definitions)), contents)
    module = contents["Window"]()
    scores, table = torch.randn(2, 4, 8, 8), torch.randn(15, 4)
    given = (scores, table, module.index, module.decay)
    expected = torch.func.functional_call(module, {"table": table}, (scores,))
    assert torch.equal(contents["reference"](*given), expected)
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(t) for t in given]
        assert contents["reference"](*fakes).shape == scores.shape


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["Same", "same"])
async def test_what_computes_them_itself_may_stand_for_the_reference(
    judged: Judging, window: Target, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "same.py"
    path.write_text(OWN_INDEX, encoding="utf-8")
    verdict = await judged(path, window, candidate=Target(path=path, name=name), allow_torch=ANY)
    assert verdict.verdict == "passed", verdict.summary


@pytest.mark.anyio
@pytest.mark.corpora
async def test_the_tests_of_its_finished_file_pass(
    converted: Conversions, window: Target, tmp_path: Path
) -> None:
    conversion = await converted(window)
    assert conversion.verdict == "converted", conversion.summary
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_window_triton.py"]
    variables = {**os.environ, "TRITON_INTERPRET": "1"}
    folder = tmp_path / "converted"
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
