"""`torch.autocast("cuda")` inside of a function: drafted and judged as on a GPU, where there is none, too."""

from pathlib import Path

import pytest

from ..conftest import Written
from .conftest import Judging, Resolving
from .drafting import written_drafts

pytestmark = pytest.mark.anyio

HEAD = """
INPUTS = {"x": "float32[M, K]", "w": "float32[N, K]"}
DIMS = {"M": [5], "K": [40], "N": [17]}


"""
FUNCTION = """
@torch.autocast(device_type="cuda", dtype=torch.bfloat16)
def scores(x, w):
    return torch.softmax(x @ w.t(), -1)


def f(x, w):
    with torch.amp.autocast("cuda", dtype=torch.bfloat16):
        projected = F.linear(x, w)
    with torch.autocast("cuda"):
        y = F.linear(x, w)
        loss = (y.softmax(-1) * y).sum(-1)
    return scores(x, w), projected, loss
"""
"""In bfloat16 a decorated function and a result, in float16 what a loss adds up."""


async def test_a_draft_computes_what_each_region_casts(
    resolved: Resolving, judged: Judging, written: Written, tmp_path: Path
) -> None:
    target = written(HEAD + FUNCTION)
    (file,) = written_drafts((await resolved(target)).convertible(), target, tmp_path, (1,))
    verdict = await judged(file, target, cases=("M=5 K=40 N=17",))
    assert verdict.verdict == "passed", verdict.summary
    text = Path(file).read_text()
    assert "to(tl.bfloat16)" in text
    assert "to(tl.float16)" in text
