"""A run over problems of which some crash: each costs its row, and what is done is not done again."""

from pathlib import Path

import pytest

from kernelbench.problems import chosen, problems_in
from kernelbench.run import arguments, run
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.sweep.journal import Journal

pytestmark = pytest.mark.anyio

RELU = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(7, 33)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two problems of level 1, one of level 2, as a checkout of KernelBench holds them."""
    problems = {
        "level1/2_ReLU.py": RELU,
        "level1/10_Dies.py": "import os\n\nos.kill(os.getpid(), 9)\n",
        "level2/1_Broken.py": "import torch\n\nraise ValueError('no problem')\n",
    }
    for name, text in problems.items():
        file = tmp_path / "KernelBench" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def test_problems_are_chosen_by_level_or_by_pattern(checkout: Path) -> None:
    problems = problems_in(checkout)
    assert [p.key for p in chosen(problems, ("1", "2"), ())] == ["1/2", "1/10", "2/1"]
    assert [p.key for p in chosen(problems, ("2",), ())] == ["2/1"]
    assert [p.key for p in chosen(problems, ("2",), ("1/1*",))] == ["1/10"]


async def test_a_run_goes_on_where_it_ended(
    worker: WorkerClient, checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    shared = ["--out", str(out), "--phase", "draft,check", "--device", "interpreter", "--jobs", "1"]
    assert await run(arguments([str(checkout), "--problems", "1/*", *shared]), worker) == 0
    table = (out / "table.md").read_text()
    assert "| 1/2 ReLU | yes | yes | 1 | 1 | 1.00 | – | own kernels | not done | right |" in table
    assert "| 1/10 Dies | no | refused |" in table
    assert "SIGKILL" in table
    capsys.readouterr()
    assert await run(arguments([str(checkout), *shared]), worker) == 0
    said = capsys.readouterr().out
    assert "2/1" in said
    assert "1/2" not in said
    assert "| 2/1 Broken | no | refused |" in (out / "table.md").read_text()


async def test_a_deadline_leaves_what_is_not_done_for_the_next_run(
    worker: WorkerClient, checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    given = [str(checkout), "--out", str(out), "--phase", "draft", "--device", "interpreter"]
    assert await run(arguments([*given, "--deadline", "0"]), worker) == 0
    assert "goes on from here" in capsys.readouterr().out
    assert Journal(out / "journal.sqlite").items() == []
