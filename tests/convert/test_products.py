"""Products of operands that were computed: what lies past the end of their common axis is not counted."""

from pathlib import Path

import pytest

from ..conftest import Written
from .conftest import Comparing, Resolving
from .drafting import written_drafts
from .eager_calls import calls, draft_of

pytestmark = pytest.mark.anyio

FACTORS = ("{0}", "({0} + 1)", "{0}.exp()", "(1 / {0})", "({0} - {0}.mean({1}, keepdim=True))", "{0}.cos()")
"""At 0: 0, 1, 1, infinite, and whatever the mean is."""
SOURCE = """
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
    left: str, resolved: Resolving, compared: Comparing, written: Written, tmp_path: Path
) -> None:
    products = ", ".join(f"{left.format('x', 1)} @ {right.format('w', 0)}" for right in FACTORS)
    target = await resolved(written(SOURCE.format(products=products)))
    files = written_drafts(target.convertible(), target.target, tmp_path, (1, 2))
    given = calls(target.declaration, [{"M": 5, "K": 8, "N": 16}, {"M": 3, "K": 33, "N": 4}])
    assert await compared(draft_of("f", target.target, files, given)) == {"f": []}
