"""A module's parameters and buffers may be called anything: arguments of drafts have names of their own."""

import ast
from pathlib import Path

import pytest
import torch

from pytorch_to_triton.convert.cuts.cutting import attribute
from pytorch_to_triton.convert.finish.files import state_source
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

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
