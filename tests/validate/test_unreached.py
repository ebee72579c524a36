"""What of a candidate's Python no case ran is named: nothing is known of it."""

from pathlib import Path

import pytest

from pytorch_to_triton.validate.unreached import unreached_lines
from pytorch_to_triton.worker.wire.observation import Observation, ReachedFile

from .kernel_files import double_file
from .verdicts import Judge

FILE = "kernel.py"
SOURCE = '''\
def run(x, flag=None):
    """Doubles."""
    if x.dim() > 2:
        raise ValueError("of one dimension")
    if x.numel() > 1000:
        y = x.clone()
        return y
    for _ in range(flag or 0):
        x = x + 1
    try:
        return double(
            x,
        )
    except RuntimeError:
        return None


def never(x):
    return x
'''


def unreached(*lines: int) -> list[str]:
    observation = Observation(reached=(ReachedFile(file=FILE, lines=lines),))
    return [skip.what for skip in unreached_lines(SOURCE, [observation], FILE)]


def test_blocks_that_no_case_ran_are_named_and_refusals_are_not() -> None:
    assert unreached(3, 5, 8, 10, 11, 12) == [
        "lines 6 to 7 of run (y = x.clone())",
        "line 9 of run (x = x + 1)",
        "line 15 of run (return None)",
    ]
    assert unreached(3, 5, 6, 7, 8, 9, 10, 12, 14, 15) == []


def test_of_a_function_that_was_not_called_and_of_another_file_nothing_is_said() -> None:
    assert unreached() == []
    elsewhere = Observation(reached=(ReachedFile(file="other.py", lines=(3, 5)),))
    assert unreached_lines(SOURCE, [elsewhere], FILE) == ()


@pytest.mark.anyio
async def test_a_way_that_no_case_takes_is_in_the_verdict(judge: Judge, tmp_path: Path) -> None:
    counts = (
        "CALLS = []\n\n\ndef run(x):\n    CALLS.append(1)\n    if len(CALLS) > 10**6:\n        return x\n"
    )
    path = double_file(tmp_path, ("\ndef run(x):\n", counts))
    verdict = await judge(path)
    assert verdict.verdict == "passed", verdict.summary
    assert "No case ran line 36 of run (return x): not validated." in verdict.summary
    assert "line 36 of run (return x)" in [skip.what for skip in verdict.skipped]
