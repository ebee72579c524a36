"""Whatever goes wrong in drafting leaves its operator to PyTorch, named as a defect with its reason."""

from dataclasses import replace
from functools import wraps
from typing import Any

import pytest

from pytorch_to_triton.draft.file import launches
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.draft.file.module import by_reason, draft
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


STAGES: tuple[Stage, ...] = (1, 2)


def failing(function: Any, word: str) -> Any:
    """The same function, but for what mentions the word among its first two arguments."""

    @wraps(function)
    def failing(*given: Any, **more: Any) -> Any:
        if word in str(given[:2]):
            raise ZeroDivisionError("of 3 by 0")
        return function(*given, **more)

    return failing


async def test_a_defect_leaves_its_operator_to_pytorch_and_the_rest_is_drafted(
    written: Written, worker: WorkerClient, interpreter: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = await sourced(worker, interpreter, written(SOURCE))
    row = load_rows()["aten.tanh.default"]
    for where in ("row", "pattern", "printer"):
        with monkeypatch.context() as patch:
            match where:
                case "row":
                    patch.setitem(ROWS, row.op, replace(row, function=failing(row.function, "")))
                case "pattern":
                    patch.setattr(pointwise, "match", failing(pointwise.match, "tanh"))
                case "printer":
                    patch.setattr(launches, "printed", failing(launches.printed, "tanh"))
            drafts = [draft(origin.traced.graph, origin.source, stage) for stage in STAGES]
        for drafted in drafts:
            assert drafted.calls == ("aten.tanh.default",), where
            (left,) = drafted.left
            assert "`aten.tanh` (line 9): a defect of pytorch-to-triton, please report it" in left
            assert "ZeroDivisionError: of 3 by 0" in left
            assert "tl.sigmoid" in drafted.text or "tl.exp" in drafted.text
            assert left.split(": ", 1)[1] in drafted.text


def test_calls_that_are_left_for_one_reason_have_it_said_once() -> None:
    left = (
        "`aten.topk` (line 4): wrong at N=5",
        "`aten.sort` (line 6): no kernel",
        "`aten.eq` (line 5): wrong at N=5",
    )
    assert (
        by_reason(left)
        == "`aten.topk` (line 4), `aten.eq` (line 5): wrong at N=5; `aten.sort` (line 6): no kernel"
    )
