"""Rows that no program holds: as few passes as an expert's kernel takes, and statistics that are saved."""

from pathlib import Path

import pytest

from pytorch_to_triton.draft.file.module import Drafted

from ..conftest import Written
from .conftest import Judging, Resolving

pytestmark = pytest.mark.anyio
LOSSES = """import torch
import torch.nn.functional as F

INPUTS = {{"x": "bfloat16[N, V]"{more}}}
DIMS = {{"N": [1, 3], "V": [2, {longest}]}}


def f(x{arguments}):
    return {value}
"""
LABELS = {"more": ', "y": "int64[N] in 0..V"', "arguments": ", y"}
GRADIENTS = {
    "cross entropy": (LABELS, "F.cross_entropy(x.float(), y)", "x, y, amax, total, total_2", 0),
    "chosen log probabilities": (
        LABELS,
        "torch.log_softmax(x.float(), -1).gather(1, y[:, None]).squeeze(1)",
        "x, y, amax, log",
        0,
    ),
    "softmax": ({}, "torch.softmax(x.float(), -1).to(x.dtype)", "x, amax, total", 2),
    "softmax in 16 bits": ({}, "torch.softmax(x, -1)", "out", 2),
}
FORWARD = {
    "entropy": ("-(torch.softmax(x.float(), -1) * torch.log_softmax(x.float(), -1)).sum(-1)", 2),
    "a softmax by hand": ("(e := torch.exp(x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True)", 2),
    "a maximum that is returned": (
        "((e := torch.exp(x - (m := x.float().amax(-1, keepdim=True)))).sum(-1), m)",
        2,
    ),
}


def loss(value: str, longest: int, more: str = "", arguments: str = "") -> str:
    """The source of a function `f` of rows up to so many elements."""
    return LOSSES.format(value=value, longest=longest, more=more, arguments=arguments)


def loops(drafted: Drafted, part: str) -> int:
    """The loops over columns in the kernels whose names hold the part."""
    kernels = ("\n".join(k.lines) for k in drafted.kernels if part in k.name)
    return sum(text.count("for start in range(0, V, BLOCK_N)") for text in kernels)


@pytest.mark.parametrize("name", GRADIENTS)
async def test_a_backward_pass_reads_the_statistics_of_a_long_row_in_place_of_walking_it_again(
    name: str, written: Written, resolved: Resolving
) -> None:
    text, value, saved, walks = GRADIENTS[name]
    drafted = (await resolved(written(loss(value, 33_000, **text)), backward=True)).convertible().drafted(3)
    assert f'"""Saves {saved} for the backward pass."""' in drafted.text
    assert loops(drafted, "backward") == walks


async def test_rows_that_a_program_holds_are_reduced_again_and_nothing_is_saved_of_them(
    written: Written, resolved: Resolving
) -> None:
    text, value, *_ = GRADIENTS["cross entropy"]
    drafted = (await resolved(written(loss(value, 4_000, **text)), backward=True)).convertible().drafted(3)
    assert '"""Saves x, y, total for the backward pass."""' in drafted.text


@pytest.mark.parametrize("name", FORWARD)
async def test_a_long_row_is_walked_once_for_all_statistics_that_wait_for_no_other(
    name: str, written: Written, resolved: Resolving
) -> None:
    value, walks = FORWARD[name]
    drafted = (await resolved(written(loss(value, 33_000)))).convertible().drafted(3)
    assert loops(drafted, "") == walks


async def test_a_maximum_that_leaves_nan_out_does_so_in_rows_of_one_element_too(
    written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = written(loss('torch.where(x.isnan(), float("-inf"), x).amax(-1)', 9))
    draft = tmp_path / "draft.py"
    draft.write_text((await resolved(target)).convertible().drafted(3).text, "utf-8")
    verdict = await judged(draft, target)
    assert verdict.verdict == "passed", verdict.summary
    assert any("V=1" in case.name and "nan" in case.name for case in verdict.cases)


@pytest.mark.corpora
@pytest.mark.parametrize("name", [*GRADIENTS, *FORWARD])
async def test_drafts_of_long_rows_are_right(
    name: str, written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    text, value, *_ = GRADIENTS.get(name) or ({}, *FORWARD[name])
    target, backward = written(loss(value, 33_000, **text)), name in GRADIENTS
    draft = tmp_path / "draft.py"
    draft.write_text((await resolved(target, backward=backward)).convertible().drafted(3).text, "utf-8")
    verdict = await judged(draft, target, backward=backward, stop="early")
    assert verdict.verdict == "passed", verdict.summary
