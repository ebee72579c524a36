"""In 16 bits a draft rounds where PyTorch does: what is inside of one of its operators stays float32."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import convert
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..conftest import Written
from .drafting import drafts_of, sourced

pytestmark = pytest.mark.anyio
ATTENTION = """import torch.nn.functional as F

INPUTS = {name: "float32|bfloat16[B, S, 64]" for name in ("q", "k", "v")}
DIMS = {"B": [1], "S": [1, 130]}


def f(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)
"""


async def test_scores_and_weights_of_an_attention_lie_in_float32_while_they_lie_in_memory(
    written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    drafts = drafts_of(await sourced(worker, interpreter, written(ATTENTION)))
    first = drafts[1].text
    assert first.count("dtype=torch.float32)") == 2
    assert first.count("torch.empty_like(q)") == 1
    assert "tl.dot(weights.to(v.dtype), v, " in first
    for stage in (2, 3):
        assert len(drafts[stage].kernels) == 1


@pytest.mark.corpora
async def test_an_attention_in_bfloat16_passes_all_gates(
    written: Written, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    request = ConversionRequest(target=written(ATTENTION), into=tmp_path / "converted", seed=5)
    conversion = await convert(worker, request, interpreter)
    assert conversion.verdict == "converted", conversion.summary
