"""Sizes that a kernel is made for: a device tries each once, beside what follows from the declared ones."""

from pathlib import Path

import pytest

from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.targets.problem import problem_of
from pytorch_to_triton.validate.cases import add_points, build_plan, plan_of
from pytorch_to_triton.validate.plan import CaseSizeLimits
from pytorch_to_triton.validate.ready_plan import ready_plan, without_too_large
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import limits_of, open_validation

GPU_BYTES = 80 * 10**9
DECLARATION = parse_declaration({"x": "float32[M, N]"}, {"M": [3, 7], "N": [40]})
LOGITS = """import torch

INPUTS = {"a": "float32[N, 64]", "b": "float32[N, 64]"}
DIMS = {"N": [3, 8]}


def f(a, b):
    return (a @ b.t()).logsumexp(-1)
"""


@pytest.mark.parametrize(
    ("free_bytes", "point", "is_tried", "why"),
    [
        (GPU_BYTES, {"M": 8192, "N": 4096}, True, ""),
        (GPU_BYTES, {"M": 65536, "N": 4096}, True, ""),
        (GPU_BYTES, {"M": 2**20, "N": 4096}, False, "too large for this run: 4,294,967,296 elements"),
        (None, {"M": 16, "N": 128}, False, "tried on a GPU alone"),
    ],
)
def test_a_device_tries_a_named_size_as_far_as_its_memory_allows(
    free_bytes: int | None, point: dict[str, int], is_tried: bool, why: str
) -> None:
    request = ValidationRequest(candidate=Target(path=Path("k.py")))
    builder = build_plan(DECLARATION, limits_of(request, free_bytes))
    add_points(builder, [point])
    plan = plan_of(builder)
    assert [case.group for case in plan.cases if case.dims == point] == ["declared"] * is_tried
    skipped = [skip.why for skip in plan.skipped if skip.what == f"M={point['M']} N={point['N']}"]
    assert [why in text for text in skipped] == [True] * (not is_tried)


@pytest.mark.anyio
async def test_a_value_that_grows_with_the_square_of_a_named_size_has_the_limit_of_the_memory(
    tmp_path: Path, worker: WorkerClient, interpreter: Runtime
) -> None:
    target = Target(path=tmp_path / "target.py", name="f")
    target.path.write_text(LOGITS, encoding="utf-8")
    points = ({"N": 16384}, {"N": 65536})
    request = ValidationRequest(candidate=target, reference=target, points=points)
    limits = CaseSizeLimits(2**26, 0, named_elements=GPU_BYTES // 64)
    async with open_validation(worker, request, interpreter) as validation:
        description = await describe(worker, target, "reference", interpreter)
        planned = ready_plan(request, problem_of(description, description), limits, seed=7)
        plan = (await without_too_large(validation.reference, planned)).cases
    assert points[0] in [case.dims for case in plan.cases]
    (skipped,) = (skip for skip in plan.skipped if skip.declared)
    assert skipped.what == "N=65536"
    assert "a value of 4,294,967,296 elements" in skipped.why
