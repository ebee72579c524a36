"""Products of operands that were computed: what lies past the end of their common axis is not counted."""

from pathlib import Path

import pytest

from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

from .drafting import written_drafts
from .eager_calls import calls, differences, draft_of

pytestmark = pytest.mark.anyio

FACTORS = ("{0}", "({0} + 1)", "{0}.exp()", "(1 / {0})", "({0} - {0}.mean({1}, keepdim=True))", "{0}.cos()")
"""At 0: 0, 1, 1, infinite, and whatever the mean is."""
SOURCE = """import torch

INPUTS = {{"x": "float32[M, K]", "w": "float32[K, N]"}}
DIMS = {{"M": [5], "K": [8, 33], "N": [16]}}


def f(x, w):
    return {products}
"""


MORE = ("(1 / {0})", "({0} - {0}.mean({1}, keepdim=True))")
"""For every change: all factors on the right of these."""


@pytest.mark.parametrize(
    "left", [pytest.param(left, marks=() if left in MORE else pytest.mark.corpora) for left in FACTORS]
)
async def test_no_stage_counts_what_lies_past_the_end_of_computed_operands(
    left: str, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tmp_path / "products.py"
    products = ", ".join(f"{left.format('x', 1)} @ {right.format('w', 0)}" for right in FACTORS)
    path.write_text(SOURCE.format(products=products), encoding="utf-8")
    target = Target(path=path, name="f")
    resolved = await resolve(worker, ConversionRequest(target=target), interpreter)
    files = written_drafts(resolved.convertible(), target, tmp_path, (1, 2))
    given = calls(resolved.declaration, [{"M": 5, "K": 8, "N": 16}, {"M": 3, "K": 33, "N": 4}])
    assert await differences(worker, interpreter, [draft_of("f", target, files, given)]) == {"f": []}
