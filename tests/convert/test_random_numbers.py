"""Dropout in training is drawn inside of kernels, in the finished file and under torch.compile too."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.session.finish import run_tests
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .conftest import Conversions

pytestmark = [pytest.mark.anyio, pytest.mark.corpora]

SOURCE = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.25)

    def forward(self, x):
        turned = self.drop(F.gelu(self.norm(x).transpose(1, 2)))
        return x + self.drop(turned.softmax(-1)).transpose(1, 2)


class Residual(nn.Module):
    def forward(self, x, y):
        x, y = torch.stack((x, y)).unbind()
        return torch.relu(y + F.dropout(x * y, 0.3, self.training)) * 2
"""
INPUTS = {
    "Block": "[torch.randn(2, 5, 12)]",
    "Residual": "[torch.randn(3, 20), torch.randn(3, 20)]",
}


def module_in(folder: Path, name: str) -> Target:
    """One of SOURCE in a file of its own, which leaves it in training."""
    functions = {"get_inputs": INPUTS[name], "get_init_inputs": "[]"}
    path = folder / "model.py"
    text = "".join(f"\n\ndef {function}():\n    return {given}\n" for function, given in functions.items())
    path.write_text(SOURCE + text, encoding="utf-8")
    return Target(path=path, name=name)


@pytest.mark.parametrize("name", ["Block", "Residual"])
async def test_a_module_with_dropout_in_training_is_converted_and_its_finished_tests_pass(
    converted: Conversions, worker: WorkerClient, interpreter: Runtime, tmp_path: Path, name: str
) -> None:
    conversion = await converted(module_in(tmp_path, name), backward=name == "Residual")
    assert conversion.verdict == "converted", conversion.summary
    file = tmp_path / "converted" / f"test_{name.lower()}_triton.py"
    outcome = await run_tests(worker, file, interpreter, seconds=300)
    assert outcome.passed, outcome


async def test_under_torch_compile_gradients_are_those_of_the_mask_that_was_drawn(
    converted: Conversions, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    await converted(module_in(tmp_path, "Residual"), backward=True)
    test = tmp_path / "converted" / "test_compiled.py"
    test.write_text(COMPILED, encoding="utf-8")
    outcome = await run_tests(worker, test, interpreter, seconds=300)
    assert outcome.passed, outcome


COMPILED = """import torch
from residual_triton import residual


def test_gradients():
    x = torch.full((64, 20), 0.5, requires_grad=True)
    y = torch.ones(64, 20, requires_grad=True)
    out = torch.compile(residual, backend="aot_eager")(x, y)
    out.sum().backward()
    kept = out > 2
    assert 0.5 < kept.float().mean() < 0.9
    assert torch.equal(x.grad != 0, kept)
"""
