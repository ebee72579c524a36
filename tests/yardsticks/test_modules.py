"""Modules of a checkout of pytorch-jit-paritybench become problems, chosen by a seed."""

import ast
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from yardsticks.extraction import cases_of, problem_of
from yardsticks.modules import arguments, run

pytestmark = pytest.mark.anyio

GENERATED = """import sys
_module = sys.modules[__name__]
ops = _module
from _paritybench_helpers import _mock_config
import math, cv2
import torch.nn as nn
import torch.nn.functional as F

WIDTH = 4

def half(x):
    return x / math.sqrt(WIDTH)

def unused(x):
    return cv2.blur(x)

class Scaled(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.by = config.by

    def forward(self, x, y):
        return F.relu(half(x)) * self.by + y

class Reads(nn.Module):
    def forward(self, x):
        return cv2.blur(x)

class Stands(nn.Module):
    def forward(self, x):
        return ops.blur(x)

class Random(nn.Module):
    def forward(self, x):
        return torch.rand_like(x)

TESTCASES = [
    (Scaled, lambda: ([], {'config': _mock_config(by=3)}),
     lambda: ([torch.rand([4, 5]), torch.rand([5])], {}), True),
    (Reads, lambda: ([], {}), lambda: ([torch.rand([4])], {}), False),
    (Stands, lambda: ([], {}), lambda: ([torch.rand([4])], {}), False),
    (Scaled, lambda: ([], {'config': _mock_config(by=3)}),
     lambda: ([torch.rand([4])], {'y': torch.rand([4])}), True),
]
"""


def test_a_module_comes_with_what_it_needs_alone() -> None:
    tree = ast.parse(GENERATED)
    texts = [problem_of("test_x.py", tree, case) for case in cases_of(tree)]
    assert texts[1:] == [None, None, None]
    text = texts[0]
    assert text is not None
    assert "unused" not in text
    assert "cv2" not in text
    model = {}
    exec(compile(text, "problem", "exec"), model)
    x, y = model["get_inputs"]()
    assert model["Model"]()(x, y).shape == (4, 5)


async def test_the_modules_of_a_seed_are_drafted_and_compared(worker: WorkerClient, tmp_path: Path) -> None:
    generated = tmp_path / "checkout" / "generated"
    generated.mkdir(parents=True)
    (generated / "test_x.py").write_text(GENERATED)
    (generated / "test_no_python.py").write_text("print 1\n")
    shared = ["--out", str(tmp_path), "--device", "interpreter", "--jobs", "1", "--count", "3"]
    assert await run(arguments([str(tmp_path / "checkout"), "--seeds", "7", *shared]), worker) == 0
    assert [file.name for file in (tmp_path / "problems_3" / "level7").glob("*.py")] == ["1_Scaled.py"]
    table = (tmp_path / "table.md").read_text()
    assert "| drafted | kernels alone, with PyTorch's results | 1 | 100.0% |" in table


async def test_a_folder_without_modules_is_named(worker: WorkerClient, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no generated/test_"):
        await run(arguments([str(tmp_path), "--out", str(tmp_path), "--device", "interpreter"]), worker)
