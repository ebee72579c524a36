"""PyTorch's own operators become problems of one line, and the table says what became of them."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from yardsticks.opinfo import arguments, run

pytestmark = pytest.mark.anyio


async def test_operators_are_drafted_and_compared_at_their_sample_inputs(
    worker: WorkerClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["--operators", "mT,where,linalg_qr,item,nn_functional_dropout2d", "--samples", "1"]
    given = arguments([*chosen, "--out", str(tmp_path), "--device", "interpreter", "--jobs", "1"])
    assert await run(given, worker) == 0
    problems = tmp_path / "problems_1"
    assert "return x0.mT\n" in (problems / "mT" / "0.py").read_text()
    assert "return torch.where(x0, x1, x2)\n" in (problems / "where" / "0.py").read_text()
    assert (
        "return torch.nn.functional.dropout2d(x0"
        in (problems / "nn_functional_dropout2d" / "0.py").read_text()
    )
    assert json.loads((problems / "left_out.json").read_text()) == {"item": "it returns no tensor"}
    table = (tmp_path / "table.md").read_text()
    assert "| drafted | kernels alone, with PyTorch's results | 1 | 25.0% |" in table
    assert "| computes nothing | a view of what it is given | 2 | 50.0% |" in table
    assert "| left to PyTorch | traced, and no kernel drafted | 1 | 25.0% |" in table
    assert "| 1 | `aten.linalg_qr`: no kernel is drafted for this operator | linalg_qr |" in table
    capsys.readouterr()
    assert await run(given, worker) == 0
    assert "where" not in capsys.readouterr().out
