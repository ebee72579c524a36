"""Whatever goes wrong in drafting leaves its operator to PyTorch, named as a defect with its reason."""

from dataclasses import replace
from functools import wraps
from typing import Any

import pytest

from pytorch_to_triton.draft.file import launches
from pytorch_to_triton.draft.file.module import draft
from pytorch_to_triton.draft.lower.row import ROWS, load_rows
from pytorch_to_triton.draft.patterns import pointwise
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..conftest import Written
from ..convert.drafting import sourced

pytestmark = pytest.mark.anyio

SOURCE = """INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [9]}


def f(x):
    kept = torch.tanh(x)
    return (kept.cumsum(1) * 2).sigmoid()
"""


def failing(function: Any, word: str) -> Any:
    """The same function, but for arguments that mention the word."""

    @wraps(function)
    def failing(*given: Any, **more: Any) -> Any:
        if word in str(given):
            raise ZeroDivisionError("of 3 by 0")
        return function(*given, **more)

    return failing


@pytest.mark.parametrize("where", ["row", "pattern", "printer"])
async def test_a_defect_leaves_its_operator_to_pytorch_and_the_rest_is_drafted(
    where: str, written: Written, worker: WorkerClient, interpreter: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = await sourced(worker, interpreter, written(SOURCE))
    match where:
        case "row":
            row = load_rows()["aten.tanh.default"]
            monkeypatch.setitem(ROWS, row.op, replace(row, function=failing(row.function, "")))
        case "pattern":
            monkeypatch.setattr(pointwise, "match", failing(pointwise.match, "tanh"))
        case "printer":
            monkeypatch.setattr(launches, "printed", failing(launches.printed, "tanh"))
    for stage in (1, 2):
        drafted = draft(origin.traced.graph, origin.source, stage)  # type: ignore[arg-type]
        assert drafted.calls == ("aten.tanh.default",)
        (left,) = drafted.left
        assert "`aten.tanh` (line 9): a defect of pytorch-to-triton, please report it" in left
        assert "ZeroDivisionError: of 3 by 0" in left
        assert "tl.sigmoid" in drafted.text or "tl.exp" in drafted.text
        assert left.split(": ", 1)[1] in drafted.text
