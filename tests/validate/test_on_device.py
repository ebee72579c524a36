"""On a GPU: a reference that breaks it costs the case at fault alone, and named sizes are tried."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .kernel_files import double_file

pytestmark = [pytest.mark.anyio, pytest.mark.gpu]
WRITES_FAR_OUTSIDE_AT_5 = """
@triton.jit
def write_kernel(out_ptr, far):
    tl.store(out_ptr + far.to(tl.int64), 1.0)


def reference(x):
    if x.numel() == 5:
        write_kernel[(1,)](x, 2**40)
    return x * 2
"""


async def test_a_reference_that_breaks_the_gpu_costs_its_own_case_alone(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    reference = ("\ndef reference(x):\n    return x * 2\n", WRITES_FAR_OUTSIDE_AT_5)
    file = double_file(tmp_path, reference, ('{"N": [4, 9]}', '{"N": [5, 7, 64]}'))
    verdict = await validate(worker, ValidationRequest(candidate=Target(path=file), seed=7), device)
    at_5 = [case for case in verdict.cases if "N=5" in case.name.split()]
    others = [case for case in verdict.cases if "N=5" not in case.name.split()]
    assert at_5
    assert {case.status for case in at_5}.isdisjoint({"passed"})
    assert len(others) > len(at_5)
    assert {case.status for case in others} == {"passed"}


async def test_a_kernel_that_is_wrong_at_a_named_size_alone_is_refused(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    file = double_file(tmp_path, ("mask = index < n", "mask = index < tl.minimum(n, 1_000_000)"))
    request = ValidationRequest(candidate=Target(path=file), seed=7)
    assert (await validate(worker, request, device)).verdict == "passed"
    named = request.model_copy(update={"points": ({"N": 2**20 + 5},)})
    verdict = await validate(worker, named, device)
    assert verdict.verdict == "failed"
    assert [case.status for case in verdict.cases if case.name == "N=1048581"] == ["failed"]
    assert "--at N=1048581" in verdict.replay


async def test_what_an_infinite_input_makes_nan_of_is_compared_on_the_gpu_too(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    zeros = ("x * 2, mask=mask)", "tl.where(x == x, 0.0, x), mask=mask)")
    file = double_file(tmp_path, zeros, ("    return x * 2\n", "    return x - x\n"))
    verdict = await validate(worker, ValidationRequest(candidate=Target(path=file), seed=7), device)
    assert verdict.verdict == "failed"
    assert {case.status for case in verdict.cases} == {"passed", "failed"}
