"""A draft that is wrong is replaced by one that leaves what is wrong to PyTorch, and the report says so."""

from dataclasses import replace
from typing import Any

import pytest

from pytorch_to_triton.draft.lower.row import ROWS, load_rows

from ..conftest import Written
from .conftest import Conversions

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def tanh_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    row, wrong = load_rows()["aten.tanh.default"], load_rows()["aten.sigmoid.default"]
    given: dict[str, Any] = {"function": wrong.function}
    monkeypatch.setitem(ROWS, row.op, replace(row, **given))


SOURCE = """INPUTS = {"x": "float32[N] in -4..4"}
DIMS = {"N": [5]}


def f(x):
    return torch.exp(x), torch.tanh(x) * 2
"""


async def test_what_is_wrong_is_left_to_pytorch_and_the_rest_is_converted(
    converted: Conversions, written: Written
) -> None:
    conversion = await converted(written(SOURCE))
    assert conversion.verdict == "converted", conversion.summary
    (left,) = (note for note in conversion.notes if "leaves to PyTorch" in note)
    assert "`aten.tanh` (line 9)" in left
    assert ": a defect of pytorch-to-triton, please report it" in left
    assert "aten.exp" not in left


OF_VALUES = """INPUTS = {"x": "float32[N] in -8..8"}
DIMS = {"N": [5]}


def f(x):
    scale = x.abs().max().item() + 1
    y = torch.tanh(x) * scale
    low = y.min().item()
    return torch.sigmoid(y - low)
"""


@pytest.mark.corpora
async def test_a_part_that_is_wrong_goes_back_to_pytorch_and_the_others_are_converted(
    converted: Conversions, written: Written
) -> None:
    conversion = await converted(written(OF_VALUES))
    assert conversion.verdict == "converted", conversion.summary
    assert conversion.notes[0].startswith("Kernels compute 2 parts: lines 9, 12;")
    (left,) = (note for note in conversion.notes if "leaves to PyTorch" in note)
    assert "lines 10 to 11: a defect of pytorch-to-triton, please report it" in left
