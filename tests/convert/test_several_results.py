"""What one operator returns is computed by one kernel, which reads its input once."""

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..conftest import Written
from .drafting import drafts_of, sourced

pytestmark = pytest.mark.anyio
BODIES = {
    "the largest of a row and its place": "return x.max(-1)",
    "the smallest of a column and its place": "return x.min(0)",
    "a variance and a mean": "return torch.var_mean(x, -1)",
}


@pytest.mark.parametrize("name", BODIES)
async def test_both_results_are_stored_by_the_same_kernels(
    name: str, written: Written, worker: WorkerClient, interpreter: Runtime
) -> None:
    head = 'import torch\n\nINPUTS = {"x": "float32[M, N]"}\nDIMS = {"M": [3], "N": [33]}\n\n\n'
    drafts = drafts_of(
        await sourced(worker, interpreter, written(f"{head}def f(x):\n    {BODIES[name]}\n")), (2, 3)
    )
    for drafted in drafts.values():
        stored = [drafted.text.split(f"def {kernel.name}(")[1] for kernel in drafted.kernels]
        assert stored
        assert all(text.split("\n@triton")[0].count("tl.store(") >= 2 for text in stored)
