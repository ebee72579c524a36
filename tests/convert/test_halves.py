"""In 16 bits a draft rounds where PyTorch does: what is inside of one of its operators stays float32."""

import pytest

from ..conftest import Written
from .conftest import Conversions, Resolving
from .drafting import drafts_of

pytestmark = pytest.mark.anyio
ATTENTION = """import torch.nn.functional as F

INPUTS = {name: "float32|bfloat16[B, S, 64]" for name in ("q", "k", "v")}
DIMS = {"B": [1], "S": [1, 130]}


def f(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
"""


async def test_scores_and_weights_of_an_attention_lie_in_float32_while_they_lie_in_memory(
    written: Written, resolved: Resolving
) -> None:
    drafts = drafts_of((await resolved(written(ATTENTION))).convertible())
    first = drafts[1].text
    assert first.count("dtype=torch.float32)") == 2
    assert first.count("torch.empty_like(q)") == 1
    assert "tl.dot(weights.to(v.dtype), v, " in first
    for stage in (2, 3):
        assert len(drafts[stage].kernels) == 1


@pytest.mark.corpora
async def test_an_attention_in_bfloat16_passes_all_gates(written: Written, converted: Conversions) -> None:
    conversion = await converted(written(ATTENTION))
    assert conversion.verdict == "converted", conversion.summary
