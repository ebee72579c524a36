"""Arguments that are whole numbers and sizes: a draft takes any of them, as the reference does."""

import re
from pathlib import Path

import pytest

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.input_spec import ConstantSpec
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe

from ..conftest import Written
from .conftest import Judging, Resolving
from .drafting import written_drafts

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
    text: str, cases: tuple[str, ...], written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = await resolved(written(text))
    (file,) = written_drafts(target.convertible(), target.target, tmp_path, (2,))
    verdict = await judged(file, target.target, cases=cases)
    assert [case.status for case in verdict.cases] == ["passed"] * len(cases), verdict.summary


async def test_groups_of_such_a_size_are_one_kernel_that_reads_each_element_once(
    written: Written, resolved: Resolving
) -> None:
    (kernel,) = (await resolved(written(GROUP_NORM))).convertible().drafted(2).kernels
    divided = re.findall(r"(\S+) (?:%|//) ", "\n".join(kernel.lines))
    assert set(divided) <= {"row", "n_cols"}, "none of an element's own index"
    assert sum("x_ptr +" in line for line in kernel.lines) == 1


@pytest.mark.parametrize("text", [GROUPS, GROUP_NORM])
async def test_gradients_are_drafted_for_every_number_too(
    text: str, written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = await resolved(written(text), backward=True)
    (file,) = written_drafts(target.convertible(), target.target, tmp_path, (2,))
    cases = ("B=3 D=24 G=4", "B=2 D=30 G=6")
    verdict = await judged(file, target.target, cases=cases, backward=True)
    assert [case.status for case in verdict.cases] == ["passed"] * len(cases), verdict.summary


async def test_a_kernel_for_one_number_alone_is_refused(
    written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = await resolved(written(GROUPS))
    right = target.convertible().drafted(2).text
    file = tmp_path / "wrong.py"
    wrong = right.replace("G = n_groups", "G = 4").replace("assert n_groups", "assert 4")
    file.write_text(wrong, encoding="utf-8")
    assert (await judged(file, target.target, stop="early")).verdict == "failed"


VALUES = (
    'INPUTS = {{"x": "float32[B, n_groups*D]", "n_groups": {values}}}\n'
    'DIMS = {{"B": [1, 3], "D": [2, 5]}}\n\n\n'
    "def f(x, n_groups{annotated}):\n"
    "    groups = x.unflatten(-1, (n_groups, -1))\n"
    "    if n_groups == 1:\n        groups = groups * 2.0\n"
    "    return (groups - groups.mean(-1, keepdim=True)).flatten(-2)\n"
)


@pytest.mark.parametrize(
    ("values", "annotated"), [("[1, 4, 8]", ": int"), ("[1, 4, 8]", "=8"), ('"1|4|8"', "")]
)
async def test_listed_values_are_validated_and_drafted_each(
    values: str, annotated: str, written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = await resolved(written(VALUES.format(values=values, annotated=annotated)))
    origin = target.convertible()
    assert target.declaration.dims["n_groups"] == (1, 4, 8)
    assert [branch.sizes for branch in origin.traced.branches] == [("n_groups == 1",)]
    (file,) = written_drafts(origin, target.target, tmp_path, (2,))
    verdict = await judged(file, target.target, stop="early")
    assert verdict.verdict == "passed", verdict.summary
    tried = {re.search(r"n_groups=(\d+)", case.name)[1] for case in verdict.cases}  # type: ignore[index]
    assert tried == {"1", "4", "8"}


async def test_a_list_of_other_values_for_one_number_is_refused_with_what_to_do(
    written: Written, resolved: Resolving
) -> None:
    for values in ("[1, 0.5]", "['mean']", "[]"):
        with pytest.raises(BadDeclaration) as caught:
            await resolved(written(VALUES.format(values=values, annotated=": int")))
        assert "it takes one int, and this is a list" in caught.value.message
        assert "n_groups=[1, 4, 8]" in caught.value.hint


async def test_a_list_that_is_passed_as_it_is_stays_one_constant_in_drafts_too(
    written: Written, resolved: Resolving, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    text = (
        'INPUTS = {"x": "float32[B, D]", "dims": [0, 1]}\nDIMS = {"B": [3], "D": [5]}\n\n\n'
        "def f(x, dims: list[int] = [0]):\n    return x.sum(dims)\n"
    )
    kept = text.replace("dims: list[int] = [0]", "dims=0").replace("[0, 1]", "[[0, 1]]")
    for given in (text, kept):
        target = await resolved(written(given))
        assert target.declaration.inputs["dims"] == ConstantSpec(value=(0, 1))
        (file,) = written_drafts(target.convertible(), target.target, tmp_path, (1,))
        described = await describe(worker, Target(path=Path(file)), "reference", interpreter)
        assert declaration_of(described, described).inputs["dims"] == ConstantSpec(value=(0, 1))
