"""Sizes of the tool's own making: bounded by what is computed there, and no reason to call a kernel wrong."""

from pathlib import Path

import pytest

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, CaseStatus
from pytorch_to_triton.validate.cases import CasePlan
from pytorch_to_triton.validate.conclusion import decide
from pytorch_to_triton.validate.plan import CaseSizeLimits, PlanBuilder
from pytorch_to_triton.validate.ready_plan import ReadyPlan, without_timeouts, without_too_large
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import open_validation

from .kernel_files import changed_file
from .verdicts import ANY, Judge

SPINS = Path(__file__).resolve().parents[1] / "kernels" / "spins.py"
POINTS = (
    {"N": 65, "D": 65},
    {"N": 257, "D": 65},
    {"N": 2049, "D": 65},
    {"N": 16385, "D": 4},
    {"N": 4, "D": 16385},
    {"N": 16385, "D": 65},
)
TABLES = {"a": "float32[N, D]", "b": "float32[N, D]"}
BOXES = {"a": "float32[N, 4]", "b": "float32[D, 4]"}
OVERLAP = "(torch.minimum(a[:, None, 2:], b[:, 2:]) - torch.maximum(a[:, None, :2], b[:, :2])).prod(-1)"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("inputs", "result", "left_out"),
    [
        (TABLES, "torch.logsumexp(a @ b.t(), 1)", {"N=16385 D=4", "N=16385 D=65", "N=2049 D=65"}),
        (
            TABLES,
            "(a[:, None] - b).abs().sum(-1).amin(1)",
            {"N=16385 D=4", "N=16385 D=65", "N=2049 D=65", "N=257 D=65"},
        ),
        (TABLES, "torch.diagonal(a.t() @ b).sum()", {"N=4 D=16385"}),
        (BOXES, f"({OVERLAP}).amax(1)", {"N=16385 D=65"}),
        (TABLES, "torch.softmax(a + b, -1)", set()),
        # 22 and 33 are multiples of a prime that stands for a size.
        ({"a": "float32[N, 22]"}, "a.cumsum(0) @ torch.ones(22, 33)", set()),
        (TABLES, "a @ b", set()),
    ],
    ids=["logits", "distances", "correlation", "overlaps", "rows", "fixed sizes", "raises"],
)
async def test_sizes_at_which_a_value_passes_the_limit_are_left_out(
    inputs: dict[str, object],
    result: str,
    left_out: set[str],
    tmp_path: Path,
    worker: WorkerClient,
    interpreter: Runtime,
) -> None:
    path = tmp_path / "target.py"
    path.write_text(f"import torch\n\n\ndef f({', '.join(inputs)}):\n    return {result}\n", encoding="utf-8")
    target = Target(path=path, name="f")
    declaration = parse_declaration(inputs, {name: [1, 8, 65] for name in "ND" if name in str(inputs)})
    cases = {point_name(point): called(declaration, point) for point in POINTS}
    request = ValidationRequest(candidate=target, reference=target)
    async with open_validation(worker, request, interpreter) as validation:
        planned = CasePlan(cases=tuple(cases.values()), skipped=())
        builder = PlanBuilder(declaration, CaseSizeLimits(2**21, 0), ())
        plan = (await without_too_large(validation.reference, ReadyPlan(planned, builder, ""))).cases
    assert {name for name, one in cases.items() if one not in plan.cases} == left_out
    assert {skip.what for skip in plan.skipped} == left_out
    assert all("elements there, over this run's limit of 2,097,152" in skip.why for skip in plan.skipped)


def called(declaration: Declaration, point: Point) -> Case:
    """The call at those of the sizes that are declared."""
    dims = {name: point[name] for name in declaration.dims}
    return Case(name=point_name(dims), group="beyond", dims=dims, arguments=declaration.arguments(dims))


@pytest.mark.anyio
async def test_a_time_out_at_a_size_above_the_declared_ones_is_no_mistake(
    judge: Judge, tmp_path: Path
) -> None:
    waits = ("pass", "torch.futures.Future().wait()")  # as long as a loop, and takes no core meanwhile
    path = changed_file(tmp_path, SPINS.read_text(), ("x.numel() == 0", "x.numel() == 33"), waits)
    verdict = await judge(path, seconds=2.5, allow_torch=ANY)
    assert verdict.verdict == "passed", verdict.summary
    late = [case for case in verdict.cases if case.reason == "timed_out"]
    assert late
    assert all(case.name.startswith("N=33 ") and case.status == "skipped" for case in late)
    assert f"{late[0].name}: did not return within 2.5 s" in verdict.summary
    assert {case.name for case in late} <= {skip.what for skip in verdict.skipped}


def test_a_time_out_at_a_size_up_to_the_declared_ones_is_one() -> None:
    declaration = parse_declaration({"x": "float32[N]"}, {"N": [4, 9]})
    sizes = (0, 7, 9, 10)
    cases = [Case(name=f"N={size}", group="odd", dims={"N": size}, arguments=()) for size in sizes]
    results = [result(one.name, "timed_out") for one in cases]
    found = without_timeouts(results, cases, declaration)
    assert [one.status for one in found] == ["timed_out", "timed_out", "timed_out", "skipped"]
    assert decide(found) == "failed"
    assert without_timeouts([result("N=10", "failed")], cases, declaration) == [result("N=10", "failed")]


def result(name: str, status: CaseStatus) -> CaseResult:
    return CaseResult(name=name, group="odd", status=status, why="did not return within 4 s")
