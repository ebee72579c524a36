"""Arguments that are whole numbers and sizes: a draft takes any of them, as the reference does."""

import re
from pathlib import Path

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from ..conftest import Written
from .drafting import drafted, drafts_of, sourced

pytestmark = pytest.mark.anyio

GROUPS = (
    'INPUTS = {"x": "float32[B, D]", "n_groups": "G"}\n'
    'DIMS = {"B": [1, 3], "D": [24], "G": [1, 4]}\nREQUIRES = ["D % G == 0"]\n\n\n'
    "def f(x, n_groups):\n"
    "    groups = x.view(x.shape[0], n_groups, x.shape[1] // n_groups)\n"
    "    return (groups - groups.mean(-1, keepdim=True)).reshape(x.shape)\n"
)
GROUP_NORM = (
    'INPUTS = {"x": "float32[B, D]", "weight": "float32[D]", "n_groups": "G"}\n'
    'DIMS = {"B": [1, 3], "D": [24], "G": [1, 4]}\nREQUIRES = ["D % G == 0"]\n\n\n'
    "def f(x, weight, n_groups):\n"
    "    B, D = x.shape\n"
    "    groups = x.view(B, n_groups, D // n_groups)\n"
    "    groups = groups * torch.rsqrt(groups.square().mean(-1, keepdim=True) + 1e-6)\n"
    "    return groups.reshape(B, D) * weight\n"
)
MEMBERS = (
    'INPUTS = {"x": "float32[B, G*D]", "weight": "float32[G*D]", "n_groups": "G"}\n'
    'DIMS = {"B": [1, 3], "D": [6, 24], "G": [1, 4]}\n\n\n'
    "def f(x, weight, n_groups):\n"
    "    groups = x.unflatten(-1, (n_groups, -1))\n"
    "    return (groups * torch.rsqrt(groups.square().mean(-1, keepdim=True) + 1e-6)).flatten(-2) * weight\n"
)
WINDOW = (
    'INPUTS = {"x": "float32[B, D]", "shape": ["D"], "k": "2*H"}\n'
    'DIMS = {"B": [1, 3], "D": [24], "H": [1, 5]}\nREQUIRES = ["2*H <= D"]\n\n\n'
    "def f(x, shape, k):\n    return F.layer_norm(x, shape)[:, :k] * k\n"
)


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        (GROUPS, ("B=3 D=24 G=4", "B=2 D=30 G=6", "B=1 D=7 G=1")),
        (GROUP_NORM, ("B=3 D=24 G=4", "B=2 D=30 G=6", "B=1 D=7 G=1", "B=2 D=8 G=8")),
        (MEMBERS, ("B=3 D=24 G=4", "B=2 D=5 G=7", "B=1 D=1 G=1", "B=2 D=0 G=3")),
        (WINDOW, ("B=3 D=24 H=5", "B=2 D=33 H=16")),
    ],
)
async def test_a_draft_takes_every_size_that_is_passed_as_a_number(
    text: str,
    cases: tuple[str, ...],
    written: Written,
    worker: WorkerClient,
    interpreter: Runtime,
    tmp_path: Path,
) -> None:
    target = written(text)
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=(2,))
    request = ValidationRequest(candidate=Target(path=Path(file)), reference=target, cases=cases, seed=3)
    verdict = await validate(worker, request, interpreter)
    assert [case.status for case in verdict.cases] == ["passed"] * len(cases), verdict.summary


async def test_groups_of_such_a_size_are_one_kernel_that_reads_each_element_once(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    origin = await sourced(worker, interpreter, written(GROUP_NORM))
    (kernel,) = origin.drafted(2).kernels
    divided = re.findall(r"(\S+) (?:%|//) ", "\n".join(kernel.lines))
    assert set(divided) <= {"row", "n_cols"}, "none of an element's own index"
    assert sum("x_ptr +" in line for line in kernel.lines) == 1


@pytest.mark.parametrize("text", [GROUPS, GROUP_NORM])
async def test_gradients_are_drafted_for_every_number_too(
    text: str, written: Written, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = written(text)
    request = ConversionRequest(target=target, backward=True)
    origin = (await resolve(worker, request, interpreter)).convertible()
    (draft,) = drafts_of(origin, (2,)).values()
    file = tmp_path / "draft.py"
    file.write_text(draft.text, encoding="utf-8")
    cases = ("B=3 D=24 G=4", "B=2 D=30 G=6")
    asked = ValidationRequest(
        candidate=Target(path=file), reference=target, cases=cases, backward=True, seed=3
    )
    verdict = await validate(worker, asked, interpreter)
    assert [case.status for case in verdict.cases] == ["passed"] * len(cases), verdict.summary


async def test_a_kernel_for_one_number_alone_is_refused(
    written: Written, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    target = written(GROUPS)
    (file,) = await drafted(worker, interpreter, target, tmp_path, stages=(2,))
    wrong = Path(file).read_text(encoding="utf-8").replace("G = n_groups", "G = 4")
    Path(file).write_text(wrong.replace("assert n_groups", "assert 4"), encoding="utf-8")
    request = ValidationRequest(candidate=Target(path=Path(file)), reference=target, seed=3, stop="early")
    assert (await validate(worker, request, interpreter)).verdict == "failed"
