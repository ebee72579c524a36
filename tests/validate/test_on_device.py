"""On a GPU: a reference that leaves the GPU unusable costs the case at fault, and no other."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

pytestmark = [pytest.mark.anyio, pytest.mark.gpu]
WRITES_FAR_OUTSIDE_AT_5 = """
import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [5, 7, 64]}


@triton.jit
def write_kernel(out_ptr, far):
    tl.store(out_ptr + far.to(tl.int64), 1.0)


def reference(x):
    if x.numel() == 5:
        write_kernel[(1,)](x, 2**40)
    return 2 * x


@triton.jit
def double_kernel(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets * stride, mask=mask), mask=mask)


def run(x):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel() > 0:
        double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), x.stride(0), BLOCK=64)
    return out
"""


async def test_a_reference_that_breaks_the_gpu_costs_its_own_case_alone(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    file = tmp_path / "double.py"
    file.write_text(WRITES_FAR_OUTSIDE_AT_5)
    verdict = await validate(worker, ValidationRequest(candidate=Target(path=file), seed=7), device)
    at_5 = [case for case in verdict.cases if "N=5" in case.name.split()]
    others = [case for case in verdict.cases if "N=5" not in case.name.split()]
    assert at_5
    assert {case.status for case in at_5}.isdisjoint({"passed"})
    assert len(others) > len(at_5)
    assert {case.status for case in others} == {"passed"}
