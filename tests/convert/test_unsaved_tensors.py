"""Tensors of a module that no state_dict has: a kernel is given them, and makes positions by itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pytorch_to_triton.convert.session.finish import run_tests
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
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


ATTRIBUTES = """import torch
from torch import nn

INPUTS = {"x": "float32[B, 4, 8, 8]"}
DIMS = {"B": [2, 3]}


class Scaled(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 1)
        self.scale = self.conv.weight.data.square().mean().sqrt()
        self.conv.weight.data /= self.scale

    def forward(self, x):
        return self.conv(self.scale * x)


class Attributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled = Scaled()
        self.offset = torch.randn(8)
        self.places = torch.arange(8)

    def forward(self, x):
        return torch.relu(self.scaled(x)) + self.offset * self.places


class Drawn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)
        self.gain = self.conv.weight.std().item()

    def forward(self, x):
        return self.conv(x) * self.gain


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.zeros(4, 8, 8)

    def forward(self, x):
        self.last = torch.tanh(x.mean(0) + self.last)
        return x * self.last


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.places = torch.arange(4)

    def forward(self, module, state):
        return torch.tanh(self.linear(module)) * self.places + state


class Static(nn.Module):
    @staticmethod
    def forward(x, offset=torch.tensor(float("nan"))):
        return torch.where(offset.isnan(), x.sigmoid() * x, x)
"""


@pytest.fixture
def attributes(tmp_path: Path) -> Path:
    path = tmp_path / "attributes.py"
    path.write_text(ATTRIBUTES, encoding="utf-8")
    return path


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
async def test_plain_attributes_are_arguments_too(resolved: Resolving, attributes: Path) -> None:
    origin = (await resolved(Target(path=attributes, name="Attributes"))).convertible()
    assert {name: str(spec) for name, spec in origin.state.items()} == {
        "scaled_conv_weight": "float32[4, 4, 1, 1]",
        "scaled_conv_bias": "float32[4]",
        "offset": "float32[8]",
        "scaled_scale": "float32[]",
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "why"),
    [("Drawn", "draws `gain` at random"), ("Keeping", "sets `last`, which the next call reads")],
)
async def test_what_no_kernel_is_given_is_refused(
    resolved: Resolving, attributes: Path, name: str, why: str
) -> None:
    with pytest.raises(NotConvertible, match=why):
        (await resolved(Target(path=attributes, name=name))).convertible()


@pytest.mark.anyio
async def test_a_static_forward_keeps_its_first_argument_and_nan_is_its_own_default(
    resolved: Resolving, attributes: Path, tmp_path: Path
) -> None:
    origin = (await resolved(Target(path=attributes, name="Static"))).convertible()
    assert origin.reference.parameters == "x, offset=torch.tensor(float('nan'))"
    text = origin.drafted(1).text
    assert "if repr(offset) != repr(torch.tensor(float('nan'))):" in text


@pytest.mark.anyio
async def test_the_reference_of_a_cell_keeps_its_arguments(resolved: Resolving, attributes: Path) -> None:
    text = "float32[B, 4]"
    options = parse_options([f"module={text}", f"state={text}"], ["B=2,3"])
    origin = (await resolved(Target(path=attributes, name="Cell"), options=options)).convertible()
    contents: dict[str, Any] = {"torch": torch}
    exec("\n".join((*origin.reference.imports, *origin.reference.definitions)), contents)
    cell, x, state = contents["Cell"](), torch.randn(2, 4), torch.randn(2, 4)
    expected = cell(x, state)
    assert torch.equal(contents["reference"](x, state, cell.linear.weight, cell.linear.bias), expected)


@pytest.mark.anyio
@pytest.mark.corpora
@pytest.mark.parametrize("name", ["Window", "Attributes"])
async def test_the_tests_of_its_finished_file_pass(
    converted: Conversions, worker: WorkerClient, interpreter: Runtime, window: Target, attributes: Path,
    tmp_path: Path, name: str,
) -> None:  # fmt: skip
    target = window if name == "Window" else Target(path=attributes, name=name)
    conversion = await converted(target)
    assert conversion.verdict == "converted", conversion.summary
    file = tmp_path / "converted" / f"test_{name.lower()}_triton.py"
    outcome = await run_tests(worker, file, interpreter, seconds=300)
    assert outcome.passed, outcome
