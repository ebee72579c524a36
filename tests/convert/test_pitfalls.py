"""Functions that drafts have got wrong before."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.conversion import Conversion
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target

from ..conftest import HEAD
from .drafting import drafted

pytestmark = pytest.mark.anyio

BESIDE_EAGER = Path(__file__).parent / "draft" / "jobs" / "beside_eager.py"

# Its work grows with the square of M, which the interpreter walks element by element.
FEW_ROWS = 'REQUIRES = ["M <= 23"]\n\n\n'
ROWS = 'INPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [3], "N": [9]}\n\n\n'
PITFALLS = {
    "two axes of one size": FEW_ROWS
    + "def f(x):\n    return (x[:, None, :] - x[None, :, :]).abs().sum(-1)\n",
    "a variable named like an accumulator": (
        "def f(x):\n    total_acc = x * 2.0\n    total = total_acc.sum(-1, keepdim=True)\n"
        "    return total_acc / (total.abs() + 1.0)\n"
    ),
    "the standard deviation of rows with too few elements": "def f(x):\n    return x.std(-1)\n",
    "two normalisations of one row": (
        "def f(x):\n    y = x + x.square()\n"
        "    return F.layer_norm(x, x.shape[-1:]), F.layer_norm(y, y.shape[-1:])\n"
    ),
    "moments and a maximum of one row": (
        "def f(x):\n    return F.layer_norm(x, x.shape[-1:]) + F.log_softmax(x, dim=-1)\n"
    ),
    "reductions over different axes": (
        "def f(x):\n    return torch.softmax(x - x.mean(0, keepdim=True), dim=-1)\n"
    ),
    "an infinite constant": (
        "def f(x):\n    return torch.softmax(x.masked_fill(x > 1.0, float('-inf')), -1)\n"
    ),
    "variables named like the kernel's own": (
        "def f(x):\n    mask = x * 2.0\n    col = mask.sum(-1, keepdim=True)\n    row = col + mask\n"
        "    count = row * 2.0\n    return count\n"
    ),
}


@pytest.mark.corpora
@pytest.mark.parametrize("what", PITFALLS)
async def test_a_known_pitfall_is_validated_in_all_stages(
    what: str, written: Callable[[str], Target], converted: Callable[[Target], Awaitable[Conversion]]
) -> None:
    conversion = await converted(written(ROWS + PITFALLS[what]))
    assert conversion.verdict == "converted", conversion.summary


async def test_all_stages_of_every_known_pitfall_equal_eager_pytorch(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    functions = []
    for number, (name, body) in enumerate(PITFALLS.items()):
        target = Target(path=tmp_path / f"pitfall_{number}.py", name="f")
        target.path.write_text(HEAD + ROWS + body, encoding="utf-8")
        files = await drafted(worker, interpreter, target, tmp_path)
        functions.append(
            {
                "name": name,
                "source": str(target.path),
                "drafts": files,
                "dims": {"M": [1, 3], "N": [1, 9, 130]},
                "inputs": {"x": ["M", "N"]},
                "tolerance": 1e-4,
            }
        )
    job = Job(kind=str(BESIDE_EAGER), arguments={"functions": functions})  # type: ignore[dict-item]
    outcome = await worker.ask(job, interpreter, seconds=300.0)
    assert outcome.answer is not None, outcome.detail
    assert {name: why for name, why in outcome.answer.items() if why} == {}
