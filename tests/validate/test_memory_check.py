"""What a device does not show is looked for in the guarded interpreter; and how cases share processes."""

from itertools import pairwise
from pathlib import Path

import pytest

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe
from pytorch_to_triton.validate.behavior import Policy
from pytorch_to_triton.validate.cases import plan_cases
from pytorch_to_triton.validate.memory_check import MemoryCheck, look_under_the_interpreter
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.trial import CandidateWorkers, ValidationTrial, units
from pytorch_to_triton.validate.validate import open_validation

pytestmark = pytest.mark.anyio
KERNELS = Path(__file__).parents[1] / "kernels"


async def planned(worker: WorkerClient, target: Target, runtime: Runtime) -> tuple[Case, ...]:
    described = await describe(worker, target, "reference", runtime)
    return plan_cases(declaration_of(described, described), limit_elements=2**12).cases


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("cheating/copy_with_idle_kernel.py", "output_without_kernel"),
        ("wrong/stores_one_past_end.py", "store_outside"),
    ],
)
async def test_what_a_device_does_not_show_is_seen_in_the_guarded_interpreter(
    file: str, kind: str, worker: WorkerClient, interpreter: Runtime
) -> None:
    target = Target(path=KERNELS / file)
    case = next(c for c in await planned(worker, target, interpreter) if c.elements > 1)
    found = MemoryCheck()
    async with open_validation(
        worker, ValidationRequest(candidate=target, seed=7), interpreter
    ) as validation:
        candidate = CandidateWorkers(validation.setting, target, "candidate", ())
        trial = ValidationTrial(validation.setting, Policy(), validation.reference, candidate)
        await look_under_the_interpreter(trial, [case], found)
    assert [violation.kind for violation in found.by_case[case.name]][:1] == [kind]
    assert found.unable == {}


async def test_cases_of_the_same_sizes_and_dtypes_are_called_in_one_process(
    worker: WorkerClient, interpreter: Runtime
) -> None:
    cases = await planned(worker, Target(path=KERNELS / "cheating" / "caches_by_fingerprint.py"), interpreter)
    found = units(cases)
    assert sorted(case.name for unit in found for case in unit) == sorted(case.name for case in cases)
    assert all(len({(str(case.dims), str(case.dtypes)) for case in unit}) == 1 for unit in found)
    specials = [[case for case in unit if case.group == "special"] for unit in found]
    assert max(len(unit) for unit in specials) >= 10
    for unit in found:
        for before, case in pairwise(unit):
            assert case.again_after in (None, before.name)
