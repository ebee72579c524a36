"""A drafted `run` takes what was declared, and refuses the rest in words."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target

from ..conftest import Written
from .conftest import Resolving

pytestmark = pytest.mark.anyio

Drafting = Callable[[Target], Awaitable[str]]
CALLED_OTHERWISE = Path(__file__).parent / "jobs" / "called_otherwise.py"
DECLARED = 'INPUTS = {"x": "float32|bfloat16[M, N]", "w": "float32[N]"}\nDIMS = {"M": [3], "N": [9]}\n\n\n'
BODY = "def f(x, w):\n    return x * w\n"


@pytest.fixture
def drafted(resolved: Resolving) -> Drafting:
    """The text of a target's first stage."""

    async def drafted(target: Target) -> str:
        return (await resolved(target)).convertible().drafted(1).text

    return drafted


def run_of(text: str) -> str:
    """The lines of `run` after its docstring."""
    return text.partition("def run(")[2].partition('"""\n')[2]


async def test_what_was_not_declared_is_refused_with_the_way_out(
    worker: WorkerClient, interpreter: Runtime, written: Written, drafted: Drafting, tmp_path: Path
) -> None:
    file = tmp_path / "drafted.py"
    file.write_text(await drafted(written(DECLARED + BODY)), encoding="utf-8")
    job = Job(kind=str(CALLED_OTHERWISE), arguments={"file": str(file)})
    outcome = await worker.ask(job, interpreter, seconds=120.0)
    assert outcome.answer == {
        "as drafted": "ran",
        "x in float64": "TypeError: f was drafted for torch.float32 and torch.bfloat16 x; got torch.float64. "
        "Convert again for that dtype.",
        "w in bfloat16": "TypeError: f was drafted for torch.float32 w; got torch.bfloat16. "
        "Convert again for that dtype.",
        "w elsewhere": "ValueError: w is on meta, not on cpu. Move it there.",
        "w requires grad": "RuntimeError: w requires grad, and f was drafted without a backward. "
        "Use torch.no_grad() or w.detach(), or train with the PyTorch function.",
        "w requires grad under no_grad": "ran",
        "w detached": "ran",
    }


async def test_dims_of_a_tensor_that_were_declared_as_one_are_checked(
    written: Written, drafted: Drafting
) -> None:
    source = 'import torch\n\nINPUTS = {"x": "float32[B, T, T]"}\nDIMS = {"B": [1, 2], "T": [3, 9]}\n\n\n'
    text = await drafted(written(source + "def f(x):\n    return x.softmax(-1)\n"))
    assert "assert x.shape == (B, T, T)" in run_of(text)


async def test_a_constant_of_the_users_keeps_its_name_beside_the_checks(
    written: Written, drafted: Drafting
) -> None:
    text = await drafted(
        written(DECLARED + "DTYPES = (2.0, 3.0)\n\n\ndef f(x, w):\n    return x * DTYPES[1]\n")
    )
    assert "\nDTYPES = (2.0, 3.0)\n" in text
    assert "\nDTYPES_ = {\n" in text


async def test_what_all_branches_share_stands_outside_of_the_choice(
    written: Written, drafted: Drafting
) -> None:
    body = "def f(x, w):\n    if x.dtype == torch.bfloat16:\n        return x.sin() * w\n    return x * w\n"
    lines = [line.strip() for line in run_of(await drafted(written(DECLARED + body))).splitlines()]
    choice = lines.index("if x.dtype == torch.bfloat16:")
    assert any("torch.empty" in line for line in lines[:choice])
    assert "n_elements = M * N" in lines[:choice]
    assert lines[choice + 1].startswith("f_bfloat16")
    assert "else:" in lines[choice + 1 :]
    assert lines[-1] == "return out"
    assert sum("return" in line for line in lines) == 1


async def test_mixtures_that_torch_refuses_are_refused(written: Written, drafted: Drafting) -> None:
    body = "def f(x, w):\n    assert x.dtype == w.dtype\n    return x * w\n"
    text = await drafted(written(DECLARED.replace('"float32[N]', '"float32|bfloat16[N]') + body))
    assert run_of(text).splitlines()[1:3] == [
        "    if len({x.dtype, w.dtype}) > 1:",
        '        raise TypeError("f takes x and w of one dtype, as PyTorch does.")',
    ]


async def test_an_argument_that_was_not_declared_is_held_to_its_default(
    written: Written, drafted: Drafting
) -> None:
    declared = 'INPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [3], "N": [9]}\n\n\n'
    body = "def f(x, mode='relu'):\n    return torch.relu(x) if mode == 'relu' else torch.tanh(x)\n"
    assert "if mode != 'relu':\n        raise ValueError" in await drafted(written(declared + body))
