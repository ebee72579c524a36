"""Drafts of functions of which a result needs no kernel: an input, nothing at all, or a call of PyTorch."""

from pathlib import Path

import pytest

from ..conftest import Written
from .conftest import Judging, Resolving
from .drafting import written as drafted_file

pytestmark = pytest.mark.anyio
HEAD = """INPUTS = {"x": "float32[M, M]", "h": "float32[M, 9]"}
DIMS = {"M": [4]}


def f(x, h):
    """
BODIES = {
    "inputs beside a norm": "return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6), h, x",
    "an input laid out in order": "return F.silu(h), x.contiguous()",
    "a flat view of an input": "return F.silu(h), x.reshape(-1)",
    "an input's transpose": "return F.silu(h), x.t()",
    "the differences of rows, and all but the diagonal": (
        "i = x.flatten()[:-1].view(len(x) - 1, len(x) + 1)[:, 1:].flatten()\n"
        "    return (h[1:] - h[:-1]).abs(), i"
    ),
    "what PyTorch orders beside what is made of it": (
        "v, i = h.topk(7)\n    return torch.softmax(v, -1), i, torch.softmax(h, -1), h.argsort(-1)"
    ),
}
CASES = ("M=4", "M=1", "M=4 x transposed", "M=4 h sliced")


@pytest.mark.parametrize("name", BODIES)
async def test_the_draft_of_a_function_with_such_a_result_passes(
    name: str, written: Written, resolved: Resolving, judged: Judging, tmp_path: Path
) -> None:
    target = written(f"{HEAD}{BODIES[name]}\n")
    draft = (await resolved(target)).convertible().drafted(3)
    file = drafted_file(draft, target, tmp_path, 3)
    verdict = await judged(file, target, allow_torch=frozenset(draft.calls), cases=CASES)
    assert verdict.verdict == "passed", verdict.summary
