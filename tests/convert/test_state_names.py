"""A module's parameters and buffers may be called anything: arguments of drafts have names of their own."""

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pytorch_to_triton.convert.cuts.cutting import attribute
from pytorch_to_triton.convert.finish.files import state_source
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Resolving
from .eager_calls import outcome_of

SOURCE = """import torch
from torch import nn

INPUTS = {"weight": "float32[K, 4]"}
DIMS = {"K": [3, 5]}


class Named(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 3))
        self.add_module("initial-conv-4", nn.Linear(4, 3))
        self.part = nn.Linear(4, 3)
        self.part_weight = nn.Parameter(torch.randn(3, 4))
        self.weight = nn.Parameter(torch.randn(3))
        self.tl = nn.Parameter(torch.randn(3))

    def forward(self, weight):
        dashed = getattr(self, "initial-conv-4")
        y = self[0](weight) + dashed(weight) * self.weight
        return y * self.part(weight) + torch.relu(weight @ self.part_weight.t()) * self.tl
"""


@pytest.mark.anyio
async def test_names_that_are_none_of_pythons_or_are_taken_are_changed(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = Target(path=tmp_path / "named.py", name="Named")
    target.path.write_text(SOURCE, encoding="utf-8")
    differing, left = await outcome_of(worker, interpreter, {"named": target}, tmp_path, (3,))
    assert not any(differing.values()), differing
    assert left == {"named": set()}
    tree = ast.parse((tmp_path / "named_stage3.py").read_text(encoding="utf-8"))
    (run,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run")
    assert [argument.arg for argument in run.args.args] == [
        "weight", "part_weight", "module_weight", "module_tl", "module_0_weight", "module_0_bias",
        "initial_conv_4_weight", "initial_conv_4_bias", "module_part_weight", "part_bias",
    ]  # fmt: skip


@pytest.mark.anyio
async def test_a_dim_called_like_a_parameter_of_the_module_is_refused(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = Target(path=tmp_path / "named.py", name="Named")
    target.path.write_text(SOURCE.replace("K", "part_bias"), encoding="utf-8")
    with pytest.raises(BadInput, match="The dim part_bias is called like a parameter or buffer"):
        await resolve(worker, ConversionRequest(target=target), interpreter)


def test_any_parameter_can_be_read_from_its_module() -> None:
    module = torch.nn.Module()
    module.add_module("initial-conv", torch.nn.Linear(2, 2))
    module.layers = torch.nn.Sequential(torch.nn.Linear(2, 2))
    module.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))])
    module.bias = torch.nn.Parameter(torch.ones(2))
    for key, parameter in module.named_parameters():
        assert eval(state_source(key), {"self": module}) is parameter
        assert eval(attribute("self", key), {"self": module}) is parameter


NORM = """import torch
from torch import nn

INPUTS = {"x": "float32[B, 8, N]"}
DIMS = {"B": [3], "N": [5]}


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(x).relu()
"""


@pytest.fixture
def norm(tmp_path: Path) -> Target:
    path = tmp_path / "norm.py"
    path.write_text(NORM, encoding="utf-8")
    return Target(path=path, name="Normed")


async def test_a_variance_that_a_norm_keeps_is_declared_positive(resolved: Resolving, norm: Target) -> None:
    origin = (await resolved(norm)).convertible()
    assert str(origin.state["norm_running_var"]) == "float32[8] in 0.25..4.0"


async def test_a_batch_norm_s_reference_runs_among_the_fake_tensors_of_torch_compile(
    resolved: Resolving, norm: Target
) -> None:
    reference = (await resolved(norm)).convertible().reference
    contents: dict[str, Any] = {"torch": torch}
    exec("\n".join((*reference.imports, *reference.definitions)), contents)
    state = dict.fromkeys(("norm_weight", "norm_bias", "norm_running_mean", "norm_running_var"), (8,))
    contents["reference_module"]()
    with FakeTensorMode():
        given = {name: torch.empty(shape) for name, shape in state.items()}
        count = torch.empty((), dtype=torch.int64)
        result = contents["reference"](torch.empty(2, 8, 5), norm_num_batches_tracked=count, **given)
    assert result.shape == (2, 8, 5)
