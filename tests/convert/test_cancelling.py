"""Differences that PyTorch's own rounding cancels: drafts round neither side between their kernels."""

from pathlib import Path

import pytest

from ..conftest import Written
from .conftest import Judging, Resolving
from .drafting import written_drafts

pytestmark = pytest.mark.anyio

HEAD = """
INPUTS = {"a": "bfloat16[N, V]", "b": "bfloat16[N, V]"}
DIMS = {"N": [5], "V": [100]}


def f(a, b):
    p, log_q = F.softmax(b, -1), F.log_softmax(a, -1)
    return """
RESULTS = {
    "a divergence of a student from its teacher": 'F.kl_div(log_q, p, reduction="batchmean")',
    "a cross entropy less the entropy": "(p * p.log()).sum(-1) - (p * log_q).sum(-1)",
    "a ratio of probabilities": "torch.exp(p.log() - log_q).mean(-1) - 1.0",
    "a divergence beside the probabilities": "(p * (p.log() - log_q)).sum(), p",
}


LESS = ("a ratio of probabilities", "a divergence beside the probabilities")
"""With the corpora."""


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=pytest.mark.corpora if what in LESS else ()) for what in RESULTS]
)
async def test_what_cancels_in_pytorch_cancels_in_a_draft(
    what: str, resolved: Resolving, judged: Judging, written: Written, tmp_path: Path
) -> None:
    target = written(f"{HEAD}{RESULTS[what]}\n")
    for file in written_drafts((await resolved(target)).convertible(), target, tmp_path, (1, 3)):
        verdict = await judged(file, target, cases=("N=5 V=100 zeros",))
        assert verdict.verdict == "passed", verdict.summary
