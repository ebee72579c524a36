"""A case that is wrong is run again in other ways: the kernel is told from what compiled it."""

from pathlib import Path

import pytest

from pytorch_to_triton.hardware.versions import Assembler
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, ElementValues, Mismatch, Violation
from pytorch_to_triton.validate.at_fault import (
    NO_CULPRIT,
    UNSTEADY,
    Culprit,
    find_culprit,
    leaves_doubt,
    ways_to_compile,
)
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .kernel_files import double_file
from .trials import trial_of

REFERENCE_KERNELS = Path(__file__).parents[2] / "reference_kernels"
FIRST = ElementValues(index=(0,), candidate=1.0, pytorch=2.0, truth=2.0)
MISMATCH = Mismatch(
    output="out", kind="values", where="everywhere", message="out is wrong.", causes=(), first=FIRST
)
VIOLATION = Violation(kind="load_outside", message="It loads outside.", suggestion="Mask it.")
ADDS_ONE = ("x * 2, mask", "x * 2 + 1, mask")
DROPS_A_CONSTANT = '''
"""Numbers at their own places, by way of remainders that ptxas 12.8 to 13.1 adds up wrongly in 16 bits."""
import torch
import triton
import triton.language as tl

INPUTS = {"x": "int32[M]"}
DIMS = {"M": [7840]}
REQUIRES = ["M == 7840"]


def reference(x):
    return x * 1


@triton.jit
def scattered_kernel(x_ptr, out_ptr, x_stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i.to(tl.int64) * x_stride, mask=i < 7840)
    same = i // 784 * 784 + i // 28 % 28 * 28 + i % 28
    tl.store(out_ptr + same, x, mask=i < 7840)


def run(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scattered_kernel[(1,)](x, out, x.stride(0), BLOCK=8192)
    return out
'''


def wrong(case: Case, **changes: object) -> CaseResult:
    result = CaseResult(name=case.name, group=case.group, status="failed", why="", mismatches=(MISMATCH,))
    return result.model_copy(update=changes)


async def fault_of(file: Path, worker: WorkerClient, runtime: Runtime, **changes: object) -> Culprit:
    """Of one of its cases, called wrong whatever it is."""
    async with trial_of(worker, Target(path=file), runtime) as (trial, case):
        return await find_culprit(trial, case, wrong(case, **changes), file.read_text())


@pytest.mark.anyio
async def test_a_kernel_that_is_wrong_under_the_interpreter_is_at_fault(
    worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    found = await fault_of(double_file(tmp_path, ADDS_ONE), worker, interpreter)
    assert found.sentence.endswith(
        "is wrong under Triton's interpreter: the kernel is at fault, not the compiler."
    )


@pytest.mark.anyio
async def test_a_right_kernel_is_called_in_each_other_way_and_found_right(
    worker: WorkerClient, interpreter: Runtime
) -> None:
    found = await fault_of(REFERENCE_KERNELS / "vector_add.py", worker, interpreter)
    assert UNSTEADY in found.sentence
    assert "with num_stages=1 and with another num_warps" in found.sentence


@pytest.mark.anyio
async def test_nothing_is_called_where_the_cause_is_known(worker: WorkerClient, interpreter: Runtime) -> None:
    file = REFERENCE_KERNELS / "vector_add.py"
    assert await fault_of(file, worker, interpreter, violations=(VIOLATION,)) == NO_CULPRIT


def test_doubt_is_left_by_wrong_values_and_crashes_without_a_known_cause() -> None:
    case = Case(name="N=64", group="declared", dims={"N": 64}, arguments=())
    of_another_shape = MISMATCH.model_copy(update={"kind": "shape", "first": None})
    unsteady = VIOLATION.model_copy(update={"kind": "not_reproducible"})
    unwritten = VIOLATION.model_copy(update={"kind": "reads_uninitialised"})
    assert leaves_doubt(wrong(case))
    assert leaves_doubt(wrong(case, mismatches=(), violations=(unsteady,)))
    assert leaves_doubt(wrong(case, violations=(unwritten,)))
    assert leaves_doubt(wrong(case, status="crashed", mismatches=()))
    assert not leaves_doubt(wrong(case, mismatches=(of_another_shape,)))
    assert not leaves_doubt(wrong(case, violations=(VIOLATION,)))
    assert not leaves_doubt(wrong(case, status="raised", mismatches=()))
    assert not leaves_doubt(wrong(case, status="timed_out", mismatches=()))


def test_the_newest_other_assemblers_are_tried_and_none_where_there_is_none() -> None:
    found = [Assembler(version=version, path=f"/{version}") for version in ("12.8", "13.3", "13.1", "12.4")]
    ways = ways_to_compile(found)
    named = [way for way in ways if way.startswith("with ptxas")]
    assert named == ["with ptxas unoptimised", "with ptxas 13.3", "with ptxas 13.1"]
    assert set(ways["with ptxas 13.3"].environment.values()) == {"/13.3"}
    assert not any("ptxas" in way for way in ways_to_compile([]))


@pytest.mark.anyio
@pytest.mark.gpu
async def test_on_a_gpu_a_wrong_kernel_is_told_from_a_wrong_compiler(
    worker: WorkerClient, device: Runtime, tmp_path: Path
) -> None:
    file = double_file(tmp_path, ADDS_ONE)
    verdict = await validate(worker, ValidationRequest(candidate=Target(path=file), seed=7), device)
    assert verdict.notes[0].endswith("the kernel is at fault, not the compiler.")
    file = tmp_path / "scattered.py"
    file.write_text(DROPS_A_CONSTANT)
    verdict = await validate(worker, ValidationRequest(candidate=Target(path=file), seed=7), device)
    if verdict.verdict == "passed":
        pytest.skip("this ptxas keeps the constant")
    assert "right under Triton's interpreter" in verdict.notes[0]
    assert "with ptxas unoptimised" in verdict.notes[0].partition(", wrong ")[0]
    assert "is at fault" in verdict.notes[0]
    assert "triton/issues/11581" in verdict.notes[0]
    assert "ptxas 13.3" in verdict.next_step
