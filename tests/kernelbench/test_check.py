"""The check beside eager tells right drafts from wrong ones, at sizes that the interpreter can do."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kernelbench.check import generated, weights_of
from kernelbench.phases import CHECK
from kernelbench.problems import Problem
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime

pytestmark = pytest.mark.anyio

PROBLEM = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return {value}


def get_inputs():
    return [torch.rand(4096, 393216)]


def get_init_inputs():
    return [33]
"""
DRAFT = """import torch
import triton
import triton.language as tl

INPUTS = {{"x": "float32[{shape}]", "norm_weight": "float32[1, 33]"}}
DIMS = {dims}
REQUIRES = {requires}


@triton.jit
def kernel(x_ptr, out_ptr, count, BLOCK_SIZE: tl.constexpr):
    i = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + i, mask=i < count)
    tl.store(out_ptr + i, {value}, mask=i < count)


def run(x, norm_weight):
    assert x.shape[1] > 6, "drafted for N > 6"
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK_SIZE=64)
    return {returned}
"""
RIGHT = {
    "shape": "M, N",
    "dims": {"M": [4096], "N": [393216]},
    "requires": ["M % 2 == 1"],
    "value": "tl.maximum(x, 0.0)",
    "returned": "out",
}
ROUNDED = "torch.round((x + 4096.0 - 4096.0) * 1000.0).int()"
"""In float32 by a step beside the nearest here and there."""
ROWS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "right": ({}, {}),
    "wrong below zero": ({}, {"value": "x"}),
    "one output too many": ({}, {"returned": "out, out"}),
    "without its weight": ({"value": "torch.relu(x) * self.norm.weight.sum()"}, {}),
    "in the weight's terms": (
        {"value": "torch.relu(x) * self.norm.weight.sum()"},
        {"returned": "out * norm_weight.sum()"},
    ),
    "random": ({"value": "torch.nn.functional.dropout(x)"}, {}),
    "random alike": (
        {"value": "torch.nn.functional.dropout(x)"},
        {"value": "x", "returned": "torch.ops.aten.native_dropout(out, 0.5, True)[0]"},
    ),
    "of fixed sizes": ({}, {"shape": "4096, 393216", "dims": {}, "requires": []}),
    "rounded nearer than eager": (
        {"value": ROUNDED},
        {"value": "tl.floor(x * 1000.0 + 0.5)", "returned": "out.int()"},
    ),
    "rounded down": ({"value": ROUNDED}, {"value": "tl.floor(x * 1000.0)", "returned": "out.int()"}),
    "refused by eager below zero": (
        {"value": "x if bool((x >= 0).all()) else x[:, x.shape[1] :].squeeze(7)"},
        {},
    ),
}


async def test_drafts_are_told_apart(worker: WorkerClient, interpreter: Runtime, tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    for number, (name, (problem, draft)) in enumerate(ROWS.items()):
        texts = {
            "problem": PROBLEM.format(**{"value": "torch.relu(x)", **problem}),
            "drafted": DRAFT.format(**{**RIGHT, **draft}),
        }
        paths = {role: str(tmp_path / f"{role}{number}.py") for role in texts}
        for role, text in texts.items():
            Path(paths[role]).write_text(text, encoding="utf-8")
        asked = Problem("", "", Path(paths["problem"])).as_json()
        given = {"problem": asked, "drafted": paths["drafted"]}
        job = Job(kind=CHECK, arguments={**given, "small": True, "device": "cpu", "evaluated": False})
        outcome = await worker.ask(job, interpreter, seconds=60.0)
        assert outcome.answer is not None, outcome
        found[name] = outcome.answer
    assert {name: answer["status"] for name, answer in found.items()} == {
        "right": "right",
        "wrong below zero": "wrong",
        "one output too many": "wrong",
        "without its weight": "wrong",
        "in the weight's terms": "right",
        "random": "random",
        "random alike": "right",
        "of fixed sizes": "too_large",
        "rounded nearer than eager": "right",
        "rounded down": "wrong",
        "refused by eager below zero": "right",
    }
    assert found["right"]["dims"] == {"M": 5, "N": 7}
    assert found["one output too many"]["why"] == "2 outputs, not 1"


WRITING = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        y = self.norm(x.mul_(2)) * 0
        return y + self.norm.running_mean


def get_inputs():
    return [torch.rand(8, 2)]
"""
READING = """INPUTS = {"x": "float32[8, 2]", "norm_running_mean": "float32[2]"}


def run(x, norm_running_mean):
    return (norm_running_mean * 0.9 + x.mean(0) * 0.2).expand(8, 2)
"""


async def test_a_draft_starts_from_the_arguments_and_statistics_that_the_module_started_from(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    (tmp_path / "problem.py").write_text(WRITING, encoding="utf-8")
    (tmp_path / "drafted.py").write_text(READING, encoding="utf-8")
    asked = Problem("", "", tmp_path / "problem.py").as_json()
    given = {"problem": asked, "drafted": str(tmp_path / "drafted.py")}
    job = Job(kind=CHECK, arguments={**given, "small": True, "device": "cpu", "evaluated": False})
    outcome = await worker.ask(job, interpreter, seconds=60.0)
    assert outcome.answer is not None, outcome
    assert outcome.answer["status"] == "right", outcome.answer


async def test_gradients_of_outputs_are_other_numbers_than_the_inputs() -> None:
    """A norm's input has no gradient along itself: a right draft differed from eager by rounding alone."""
    (x,) = generated({"x": "float32[N]"}, {}, {"N": 4096}, torch.randn, "cpu")
    (weights,) = weights_of([x.requires_grad_()])
    assert abs(float(torch.corrcoef(torch.stack((x.detach(), weights)))[0, 1])) < 0.1
