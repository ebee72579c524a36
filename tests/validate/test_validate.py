"""Wrong kernels are caught and named; right ones pass; whatever a candidate does, there is a verdict."""

import sys
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.errors import EnvironmentLacks
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.schema.declaration import Options, parse_options
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, Mismatch, Verdict
from pytorch_to_triton.validate.validate import Request, validate

pytestmark = pytest.mark.anyio

KERNELS = Path(__file__).parents[1] / "kernels"
HONEST = sorted(KERNELS.glob("honest_*.py"))
MODULES = KERNELS / "linear_norm_module.py"
LONG_SECONDS = 120.0

KINDS = {
    "accumulates_in_float16": ("low_precision", "everywhere"),
    "constant_offset": ("constant_offset", "everywhere"),
    "divides_by_block": ("constant_factor", "everywhere"),
    "drops_tail": ("all_zero", "tail"),
    "every_fourth_column_wrong": ("values", "every_nth"),
    "ignores_nan": ("not_propagated", None),
    "mutates_its_input": ("mutates_input", None),
    "nan_in_masked_lanes": ("nan_only", "everywhere"),
    "one_column_wrong": ("all_zero", "one_index"),
    "one_row_wrong": ("values", "one_index"),
    "returns_its_input": ("equals_input", "everywhere"),
    "returns_zeros": ("all_zero", "everywhere"),
    "rounds_to_float16": ("low_precision", "everywhere"),
    "transposed_output": ("transposed", "everywhere"),
    "wrong_dtype": ("dtype", None),
    "wrong_shape": ("shape", None),
}


@pytest.fixture
def judge(door: Door, interpreter: Mode) -> Any:
    """Validates a file, or a name in it, with a fixed seed."""

    async def judge(path: Path, name: str | None = None, **request: Any) -> Verdict:
        settings: dict[str, Any] = {"seed": 7, "seconds": LONG_SECONDS, **request}
        target = Target(path=path, name=name)
        return await validate(door, Request(candidate=target, **settings), interpreter)

    return judge


def case(verdict: Verdict, name: str) -> CaseResult:
    return next(result for result in verdict.cases if result.name == name)


def most_wrong(verdict: Verdict) -> tuple[CaseResult, Mismatch]:
    """The failed case that the summary tells about."""
    result = next(r for r in verdict.cases if f"as in {r.name}: " in verdict.summary)
    return result, result.mismatches[0]


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
async def test_an_honest_kernel_passes(path: Path, judge: Any) -> None:
    verdict = await judge(path)
    assert verdict.verdict == "passed", verdict.summary
    assert {result.status for result in verdict.cases} == {"passed"}
    groups = {result.group for result in verdict.cases}
    assert groups >= {"declared", "odd", "one", "empty", "layout", "special"}


@pytest.mark.parametrize("name", KINDS)
async def test_a_wrong_kernel_fails_with_its_kind_and_place(name: str, judge: Any) -> None:
    verdict = await judge(KERNELS / f"{name}.py")
    assert verdict.verdict == "failed"
    kind, where = KINDS[name]
    _, mismatch = most_wrong(verdict)
    assert mismatch.kind == kind, verdict.summary
    assert where is None or mismatch.where == where, verdict.summary
    assert mismatch.causes


async def test_a_tail_is_told_with_its_indices_and_values(judge: Any) -> None:
    verdict = await judge(KERNELS / "drops_tail.py")
    result, mismatch = most_wrong(verdict)
    assert result.name == "N=100"
    assert "elements 96 to 99 of 100" in mismatch.says
    assert mismatch.first is not None
    assert mismatch.first.index == (96,)
    assert mismatch.first.candidate == 0
    assert "triton.cdiv" in verdict.next_step


async def test_ignored_strides_fail_only_other_layouts_and_the_next_step_says_so(judge: Any) -> None:
    verdict = await judge(KERNELS / "ignores_strides.py")
    failed = {result.group for result in verdict.cases if result.status == "failed"}
    assert failed == {"layout"}
    assert "memory layouts" in verdict.next_step


async def test_a_candidate_that_aborts_is_a_crash_of_one_case(judge: Any) -> None:
    verdict = await judge(KERNELS / "aborts.py")
    assert verdict.verdict == "failed"
    assert case(verdict, "N=9").status == "crashed"
    assert "SIGABRT" in case(verdict, "N=9").why
    assert {r.status for r in verdict.cases if r.name != "N=9"} == {"passed"}


async def test_a_candidate_that_never_ends_is_timed_out_in_that_case(judge: Any) -> None:
    verdict = await judge(KERNELS / "spins.py", seconds=4.0)
    assert case(verdict, "N=0").status == "timed_out"
    assert {r.status for r in verdict.cases if r.name != "N=0"} == {"passed"}


async def test_an_exception_is_told_with_its_line(judge: Any) -> None:
    verdict = await judge(KERNELS / "raises.py")
    assert case(verdict, "N=1").status == "raised"
    assert "ValueError at raises.py:" in case(verdict, "N=1").why
    assert "one element is too few" in verdict.summary


async def test_after_three_crashes_the_rest_is_not_run(judge: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text((KERNELS / "aborts.py").read_text().replace("x.numel() == 9", "x.numel() > 0"))
    statuses = [result.status for result in (await judge(path)).cases]
    assert statuses.count("crashed") == 3
    assert statuses.count("skipped") == len(statuses) - 3


REFERENCE = """
import torch

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4, 9]}

def reference(x: torch.Tensor) -> torch.Tensor:
    REFERENCE

def run(x: torch.Tensor) -> torch.Tensor:
    CANDIDATE
"""


def kernel_file(folder: Path, reference: str, candidate: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(REFERENCE.replace("REFERENCE", reference).replace("CANDIDATE", candidate))
    return path


async def test_a_reference_that_raises_on_a_declared_size_leaves_it_undecided(
    judge: Any, tmp_path: Path
) -> None:
    path = kernel_file(tmp_path, "return x.view(3, 3).sum()", "return x.view(3, 3).sum()")
    verdict = await judge(path)
    assert verdict.verdict == "undecided"
    assert case(verdict, "N=4").status == "reference_raised"
    assert "RuntimeError" in case(verdict, "N=4").why


async def test_a_reference_that_raises_on_a_generated_size_skips_it(judge: Any, tmp_path: Path) -> None:
    verdict = await judge(kernel_file(tmp_path, "return x.amax()", "return x.amax()"))
    assert verdict.verdict == "passed"
    assert case(verdict, "N=0").status == "skipped"
    assert case(verdict, "N=0").why.startswith("The reference raised")


async def test_an_input_that_the_reference_writes_to_is_an_output(judge: Any, tmp_path: Path) -> None:
    right = await judge(kernel_file(tmp_path, "return x.mul_(2)", "return x.mul_(2)"))
    assert right.verdict == "passed"
    assert "x after the call" in [output.path for output in right.cases[0].outputs]
    wrong = await judge(kernel_file(tmp_path, "return x.mul_(2)", "return x * 2"))
    assert wrong.verdict == "failed"
    assert most_wrong(wrong)[1].output == "x after the call"


async def test_a_reference_that_computes_in_float32_is_still_held_against_float64(
    judge: Any, tmp_path: Path
) -> None:
    reference = "return (x.float() / 3).to(x.dtype)"
    verdict = await judge(kernel_file(tmp_path, reference, "return x / 3"))
    assert verdict.verdict == "passed"
    assert {result.truth for result in verdict.cases} == {"float64"}
    assert max(o.pytorch_error for r in verdict.cases for o in r.outputs) > 0


async def test_nested_results_are_compared_path_by_path(judge: Any, tmp_path: Path) -> None:
    reference = 'return {"sum": x.sum(), "parts": [x + 1, (x * 2, 3)]}'
    candidate = 'return {"sum": x.sum(), "parts": [x + 1, (x * 3, 3)]}'
    verdict = await judge(kernel_file(tmp_path, reference, candidate))
    _, mismatch = most_wrong(verdict)
    assert mismatch.output == "out.parts[1][0]"
    assert mismatch.kind == "constant_factor"


async def test_a_wrong_number_is_told(judge: Any, tmp_path: Path) -> None:
    verdict = await judge(kernel_file(tmp_path, "return x.sum(), x.numel()", "return x.sum() * 2, 1"))
    wrong = {mismatch.output for mismatch in case(verdict, "N=4").mismatches}
    assert wrong == {"out[0]", "out[1]"}


async def test_a_missing_output_is_named(judge: Any, tmp_path: Path) -> None:
    verdict = await judge(kernel_file(tmp_path, "return x, x + 1", "return (x,)"))
    _, mismatch = most_wrong(verdict)
    assert (mismatch.kind, mismatch.output) == ("missing_output", "out[1]")


async def test_a_random_reference_is_undecided_rather_than_passed(judge: Any, tmp_path: Path) -> None:
    reference = "return torch.randn(x.shape, dtype=x.dtype)"
    verdict = await judge(kernel_file(tmp_path, reference, "return torch.zeros_like(x)"))
    assert verdict.verdict != "passed"


@pytest.mark.parametrize("name", [None, "run", "ModelNew"])
async def test_a_candidate_gets_the_parameters_of_the_reference_module(name: str | None, judge: Any) -> None:
    reference = Target(path=MODULES, name="Model")
    verdict = await judge(MODULES, name, reference=reference)
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.cases[0].name == "get_inputs()"


async def test_a_bias_that_is_zero_at_first_is_missed_when_it_is_left_out(judge: Any) -> None:
    verdict = await judge(MODULES, "forgets_the_bias", reference=Target(path=MODULES))
    assert verdict.verdict == "failed"
    assert case(verdict, "get_inputs()").status == "failed"


async def test_a_file_may_draw_its_own_inputs(judge: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        "import torch\n"
        'DIMS = {"N": [4, 9]}\n'
        "def inputs(N):\n    return {'x': torch.randn(N).sort().values, 'k': 2}\n"
        "def reference(x, k):\n    return x * k\n"
        "def run(x, k):\n    return torch.where(x.diff(prepend=x[:1]) >= 0, x * k, 0)\n"
    )
    verdict = await judge(path)
    assert verdict.verdict == "passed", verdict.summary
    assert case(verdict, "N=4").outputs[0].shape == (4,)


async def test_lists_of_tensors_and_options_reach_both_sides(judge: Any, tmp_path: Path) -> None:
    path = tmp_path / "functions.py"
    path.write_text(
        "import torch\n"
        "def slow(xs, scale=1.0):\n    return torch.stack(xs).sum(0) * scale\n"
        "def fast(xs, scale=1.0):\n    return (xs[0] + xs[1]) * scale\n"
    )
    options: Options = parse_options(["xs=[float32[N],float32[N]]", "scale=0.5"], ["N=4,9"])
    verdict = await judge(path, "fast", reference=Target(path=path, name="slow"), options=options)
    assert verdict.verdict == "passed", verdict.summary


async def test_the_same_seed_draws_the_same_inputs_and_another_draws_others(judge: Any) -> None:
    path = KERNELS / "one_column_wrong.py"
    first, second, other = [most_wrong(await judge(path, seed=seed))[1].first for seed in (1, 1, 2)]
    assert first == second
    assert first != other


async def test_no_tensors_are_left_behind(judge: Any, cache: Path) -> None:
    await judge(KERNELS / "one_column_wrong.py")
    assert list((cache / "exchange").iterdir()) == []


async def test_compiled_kernels_without_a_gpu_are_refused(door: Door) -> None:
    mode = Mode(python=sys.executable, interpreter=False, devices="")
    with pytest.raises(EnvironmentLacks, match="no GPU"):
        await validate(door, Request(candidate=Target(path=HONEST[0])), mode)
