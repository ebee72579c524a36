"""The outcome of a conversion, from its stages."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytorch_to_triton.convert.convert import conclude, notes_of
from pytorch_to_triton.convert.stages import Staged
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime

from ..conftest import Written
from .conftest import Resolving
from .stages import stage

pytestmark = pytest.mark.anyio

FILE = """INPUTS = {"x": "float32[N]"}
DIMS = {"N": [9]}

def f(x, eps=1e-5):
    return x + eps
"""
BUCKETS = """INPUTS = {"x": "float32[N]", "edges": "float32[K]"}
DIMS = {"N": [9], "K": [3]}

def f(x, edges):
    inner = edges.sort().values
    return torch.bucketize(x, inner), torch.searchsorted(edges, x)
"""
OUTCOMES = [
    ([stage(1), stage(2), stage(3)], "converted", True),
    ([stage(1), stage(2, "failed")], "stopped", True),
    ([stage(1, "failed")], "stopped", False),
]


async def test_a_function_is_converted_only_where_the_last_stage_passed(
    resolved: Resolving, worker: WorkerClient, interpreter: Runtime, written: Written, tmp_path: Path
) -> None:
    target = replace(await resolved(written(FILE), seed=7), fixed={"T": 4})
    work = ConversionWork(worker, interpreter, None, target, tmp_path)
    installed = await versions(worker, interpreter)
    for stages, verdict, kept in OUTCOMES:
        found = conclude(work, Staged(stages), (), installed)
        assert (found.verdict, found.kernel) == (verdict, tmp_path / "f_triton.py" if kept else None)
        assert found.notes[:2] == (
            "T is 4 in the kernel: it shapes the program.",
            "eps is 1e-05 in the kernel, its default: declare it as an input for another value.",
        )


async def test_boundaries_that_are_drawn_in_no_order_are_named(resolved: Resolving, written: Written) -> None:
    (note,) = notes_of((await resolved(written(BUCKETS))).convertible(), {})
    assert note.startswith("edges is drawn in no order")
    sorted_ones = written(BUCKETS.replace("(edges, x)", "(inner, x)"))
    assert notes_of((await resolved(sorted_ones)).convertible(), {}) == ()
