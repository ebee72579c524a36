"""Wrong kernels are caught and named; right ones pass; whatever a candidate does, there is a verdict."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pytorch_to_triton.errors import MissingRequirement, TargetBroken
from pytorch_to_triton.inputs.declaration import Options, parse_options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.cases import MOST_TELLING
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

from .conftest import LONG_SECONDS
from .kernel_files import KERNELS, corpus_file, double_file, plain_file
from .verdicts import ANY, Judge, case, most_wrong, statuses

pytestmark = pytest.mark.anyio

ENDLESS = """
    turn = 0
    x = tl.load(x_ptr + index, mask=mask)
    while turn < 1:
        x = tl.load(x_ptr + index, mask=mask)
"""

MODULES = KERNELS / "linear_norm_module.py"


async def test_each_side_of_a_kernel_file_is_loaded_by_one_process_and_the_compiler_has_its_own(
    judge: Judge, worker: WorkerClient
) -> None:
    await judge(KERNELS / "honest" / "row_mean.py", cases=("M=2 N=8",))
    before = [*worker.process_times]
    await judge(KERNELS / "honest" / "row_mean.py", cases=("M=2 N=8",))
    processes = sorted(p.what for p in worker.process_times if p not in before)
    assert processes == ["candidate", "front_end", "reference"]


async def test_a_tail_is_reported_with_its_indices_and_values(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(corpus_file(tmp_path, "wrong/drops_tail"), cases=("N=100", "N=5"))
    result, mismatch = most_wrong(verdict)
    assert result.name == "N=100"
    assert "elements 96 to 99 of 100" in mismatch.message
    assert mismatch.first is not None
    assert mismatch.first.index == (96,)
    assert mismatch.first.candidate == 0
    assert "triton.cdiv" in verdict.next_step


async def test_for_the_decision_alone_no_size_is_tried_after_a_wrong_one(
    judge: Judge, tmp_path: Path
) -> None:
    wrong = corpus_file(tmp_path, "wrong/drops_tail")
    verdict = await judge(wrong, cases=("N=32", "N=100", "N=64"), stop="at once")
    assert verdict.verdict == "failed"
    assert {c.name: c.status for c in verdict.cases} == {"N=32": "passed", "N=100": "failed"}


async def test_a_mistake_that_the_most_telling_cases_show_ends_the_validation_with_its_smallest_case(
    judge: Judge, tmp_path: Path
) -> None:
    verdict = await judge(corpus_file(tmp_path, "wrong/drops_tail"), stop="early")
    assert verdict.verdict == "failed"
    assert len(verdict.cases) <= MOST_TELLING + 1
    assert verdict.smallest is not None
    assert verdict.smallest in verdict.replay
    assert "together" not in verdict.summary
    (skip,) = [skip for skip in verdict.skipped if "further cases" in skip.what]
    assert "an earlier case is wrong" in skip.why


async def test_where_the_most_telling_cases_are_right_cases_of_every_group_are_run(judge: Judge) -> None:
    verdict = await judge(KERNELS / "honest" / "row_mean.py", stop="early")
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.provenance.endswith(f"interpreted on CPU tensors by Triton {version('triton')}")
    assert statuses(verdict) == {"passed"}
    groups = {result.group for result in verdict.cases}
    assert groups >= {"declared", "repeat", "odd", "empty", "large_stride", "combined"}
    assert len(verdict.cases) > MOST_TELLING


UNUSED = """
@triton.jit
def unused_kernel(x_ptr, n):
    tl.store(x_ptr, n)


def run(x):
    if x.numel() < 0:
        unused_kernel[(1,)](x, 0)
    return double(x)
"""


async def test_what_no_case_launches_or_repeats_is_listed_as_not_tried(judge: Judge, tmp_path: Path) -> None:
    store = "    tl.store(out_ptr + index, x * 2, mask=mask)"
    loop = "    for start in range(0, n, 2**18):\n        x += start\n" + store
    path = double_file(tmp_path, (store, loop), ("\ndef run(x):\n    return double(x)\n", UNUSED))
    verdict = await judge(path)
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.never_launched == ("unused_kernel",)
    assert "unused_kernel was never launched: not validated." in verdict.summary
    assert verdict.next_step.startswith("Declare sizes at which unused_kernel is launched")
    (turn,) = [skip.what for skip in verdict.skipped if "second turn" in skip.what]
    assert turn.endswith(" of double_kernel")
    chosen = await judge(path, cases=("N=9",))
    assert (chosen.never_launched, chosen.skipped) == ((), ())


async def test_sizes_at_which_the_code_takes_another_way_are_tried_though_none_is_declared(
    judge: Judge, tmp_path: Path
) -> None:
    verdict = await judge(corpus_file(tmp_path, "wrong/long_rows_forgotten"), stop="at once")
    assert verdict.verdict == "failed"
    wrong = [c for c in verdict.cases if c.status == "failed"]
    assert wrong
    assert all(int(c.name.split()[1].removeprefix("N=")) > 1024 for c in wrong)
    assert verdict.never_launched == ()


@pytest.mark.parametrize(
    ("file", "at", "status", "why"),
    [
        ("aborts.py", "N=9", "crashed", "SIGABRT"),
        ("spins.py", "N=0", "timed_out", "did not return within 4 s"),
        ("raises.py", "N=1", "raised", "raised ValueError at raises.py:17: one element is too few"),
    ],
)
async def test_a_candidate_that_does_not_return_is_wrong_in_that_case_alone(
    file: str, at: str, status: str, why: str, judge: Judge
) -> None:
    seconds = 4.0 if status == "timed_out" else LONG_SECONDS
    verdict = await judge(KERNELS / file, seconds=seconds, allow_torch=ANY, cases=("N=4", at, "N=5"))
    assert verdict.verdict == "failed"
    assert case(verdict, at).status == status
    assert why in case(verdict, at).why
    assert why in verdict.summary
    assert verdict.smallest is None
    assert {r.status for r in verdict.cases if r.name != at} == {"passed"}


async def test_the_readme_shows_the_verdict_that_its_command_prints(judge: Judge) -> None:
    readme = " ".join((KERNELS.parents[1] / "README.md").read_text().split())
    verdict = await judge(KERNELS / "wrong" / "grid_rounds_down.py", seed=7)
    assert f"{verdict.summary} {verdict.next_step}" in readme
    assert f"Smallest case with this mistake: {verdict.smallest} Run it again:" in readme


async def test_after_three_crashes_the_rest_is_not_run(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text((KERNELS / "aborts.py").read_text().replace("x.numel() == 9", "x.numel() > 0"))
    cases = ("N=4", "N=9", "N=5", "N=13", "N=1")
    verdict = await judge(path, allow_torch=ANY, cases=cases)
    assert [result.status for result in verdict.cases] == [*["crashed"] * 3, *["skipped"] * 2]
    assert {result.reason for result in verdict.cases} == {"crashed", "not_run"}


async def test_after_two_time_outs_in_a_kernel_the_rest_is_not_run_and_its_loop_is_named(
    judge: Judge, tmp_path: Path
) -> None:
    endless = ("    x = tl.load(x_ptr + index, mask=mask)", ENDLESS)
    path = double_file(tmp_path, endless)
    line = path.read_text().splitlines().index("    while turn < 1:") + 1
    verdict = await judge(path, seconds=4.0, cases=("N=4", "N=9", "N=5", "N=13"))
    assert [result.reason for result in verdict.cases] == [*["timed_out"] * 2, *["not_run"] * 2]
    where = f"N=4: did not return within 4 s in double_kernel (it has a while loop in line {line})"
    assert verdict.summary == f"2 of 4 cases did not return, and 2 were not run. For example, {where}"


async def test_a_reference_that_raises_on_a_declared_size_leaves_it_undecided(
    judge: Judge, tmp_path: Path
) -> None:
    path = plain_file(tmp_path, "return x.view(2, -1).sum()", "return x.view(2, -1).sum()")
    verdict = await judge(path, allow_torch=ANY, cases=("N=4", "N=9"))
    assert verdict.verdict == "undecided"
    assert case(verdict, "N=9").status == "reference_raised"
    assert "RuntimeError" in case(verdict, "N=9").why


async def test_a_reference_that_raises_at_the_middle_of_its_sizes_is_refused(
    judge: Judge, tmp_path: Path
) -> None:
    path = plain_file(tmp_path, "return x.view(3, 3).sum()", "return x.view(3, 3).sum()")
    with pytest.raises(TargetBroken, match=r"raised RuntimeError at kernel\.py:\d+: shape .*, at N=4"):
        await judge(path, allow_torch=ANY)


async def test_a_reference_that_raises_on_a_generated_size_skips_it(judge: Judge, tmp_path: Path) -> None:
    verdict = await judge(plain_file(tmp_path, "return x.amax()", "return x.amax()"), allow_torch=ANY)
    assert verdict.verdict == "passed"
    assert case(verdict, "N=0").status == "skipped"
    assert case(verdict, "N=0").why.startswith("The reference raised")


async def test_an_input_that_the_reference_writes_to_is_an_output(judge: Judge, tmp_path: Path) -> None:
    async def judged(candidate: str) -> Verdict:
        file = plain_file(tmp_path, "return x.mul_(2)", candidate)
        return await judge(file, allow_torch=ANY, cases=("N=4", "N=9"))

    right, wrong = await judged("return x.mul_(2)"), await judged("return x * 2")
    assert right.verdict == "passed"
    assert "x after the call" in [output.path for output in right.cases[0].outputs]
    assert wrong.verdict == "failed"
    assert most_wrong(wrong)[1].output == "x after the call"


async def test_nested_results_are_compared_path_by_path(judge: Judge, tmp_path: Path) -> None:
    reference = 'return {"sum": x.sum(), "parts": [x + 1, (x * 2, 3)]}'
    candidate = 'return {"sum": x.sum(), "parts": [x + 1, (x * 3, 4)]}'
    verdict = await judge(plain_file(tmp_path, reference, candidate), allow_torch=ANY, cases=("N=9",))
    factor, number = verdict.cases[0].mismatches
    assert (factor.output, factor.kind) == ("out.parts[1][0]", "constant_factor")
    assert number.output == "out.parts[1][1]"


async def test_a_random_reference_is_undecided_rather_than_passed(judge: Judge, tmp_path: Path) -> None:
    reference = "return torch.randn(x.shape, dtype=x.dtype)"
    verdict = await judge(
        plain_file(tmp_path, reference, "return torch.zeros_like(x)"), allow_torch=ANY, cases=("N=4", "N=9")
    )
    assert verdict.verdict != "passed"


ROUNDS_BADLY = "return (x + 2048.0) - 2048.0"
"""In float16 this gives even numbers only."""


@pytest.mark.parametrize(
    ("candidate", "decision"),
    [
        (ROUNDS_BADLY, "passed"),
        ("return x.clone()", "undecided"),
        ("return x * 0.4", "undecided"),
    ],
    ids=["PyTorch's own", "float64's", "neither"],
)
async def test_where_pytorch_and_float64_are_far_apart_only_pytorchs_own_result_passes(
    candidate: str, decision: str, judge: Judge, tmp_path: Path
) -> None:
    path = plain_file(tmp_path, ROUNDS_BADLY, candidate)
    path.write_text(path.read_text().replace("float32[N]", "float16[N]"))
    verdict = await judge(path, allow_torch=ANY, cases=("N=9",))
    assert verdict.verdict == decision, verdict.summary
    assert ("too far from the float64 result" in verdict.summary) == (decision == "undecided")


@pytest.mark.parametrize("name", [None, "run", "ModelNew"])
async def test_a_candidate_gets_the_parameters_of_the_reference_module(
    name: str | None, judge: Judge
) -> None:
    cases = () if name is None else ("get_inputs()",)
    reference = Target(path=MODULES, name="Model")
    verdict = await judge(MODULES, name, reference=reference, allow_torch=ANY, cases=cases)
    assert verdict.verdict == "passed", verdict.summary
    assert verdict.cases[0].name == "get_inputs()"


async def test_a_bias_that_is_zero_at_first_is_missed_when_it_is_left_out(judge: Judge) -> None:
    request = {"reference": Target(path=MODULES), "allow_torch": ANY, "cases": ("get_inputs()",)}
    verdict = await judge(MODULES, "forgets_the_bias", **request)
    assert verdict.verdict == "failed"
    assert case(verdict, "get_inputs()").status == "failed"


async def test_a_file_may_generate_its_own_inputs(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        "import torch\n"
        'DIMS = {"N": [4, 9]}\n'
        "def inputs(N):\n    return {'x': torch.randn(N).sort().values, 'k': 2}\n"
        "def reference(x, k):\n    return x * k\n"
        "def run(x, k):\n    return torch.where(x.diff(prepend=x[:1]) >= 0, x * k, 0)\n"
    )
    verdict = await judge(path, allow_torch=ANY)
    assert verdict.verdict == "passed", verdict.summary
    assert case(verdict, "N=4").outputs[0].shape == (4,)


async def test_lists_of_tensors_and_options_reach_both_sides(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "functions.py"
    path.write_text(
        "import torch\n"
        "def slow(xs, scale=1.0):\n    return torch.stack(xs).sum(0) * scale\n"
        "def fast(xs, scale=1.0):\n    return (xs[0] + xs[1]) * scale\n"
    )
    options: Options = parse_options(["xs=[float32[N],float32[N]]", "scale=0.5"], ["N=4,9"])
    slow = Target(path=path, name="slow")
    verdict = await judge(
        path, "fast", reference=slow, options=options, allow_torch=ANY, cases=("N=4", "N=9")
    )
    assert verdict.verdict == "passed", verdict.summary


async def test_a_kernel_takes_a_dict_as_the_reference_does_or_what_it_holds_one_by_one(
    judge: Judge, tmp_path: Path
) -> None:
    path = tmp_path / "functions.py"
    path.write_text(
        "import torch\n"
        'INPUTS = {"batch": {"x": "float32[N]", "parts": ["float32[N]", 0.5]}, "xs": ["float32[N]"]}\n'
        'DIMS = {"N": [4, 9]}\n'
        "def slow(batch, *xs):\n    x, (y, s) = batch['x'], batch['parts']\n    return x * s + y + xs[0]\n"
        "def packed(batch, *xs):\n    x, (y, s) = batch['x'], batch['parts']\n    return x * s + y + xs[0]\n"
        "def flat(batch_x, batch_parts_0, batch_parts_1, xs_0):\n"
        "    return batch_x * batch_parts_1 + batch_parts_0 + xs_0\n"
        "def wrong(batch, *xs):\n    return batch['x'] * 0.5 + batch['parts'][0]\n"
    )
    slow = Target(path=path, name="slow")
    for name, expected in (("packed", "passed"), ("flat", "passed"), ("wrong", "failed")):
        verdict = await judge(path, name, reference=slow, allow_torch=ANY, cases=("N=4", "N=9"))
        assert verdict.verdict == expected, verdict.summary


async def test_the_same_seed_gives_the_same_inputs_and_another_gives_others(
    judge: Judge, cache: Path, tmp_path: Path
) -> None:
    path = corpus_file(tmp_path, "wrong/one_column_wrong")
    largest = ("M=6 N=20",)
    first, second, other = [most_wrong(await judge(path, seed=s, cases=largest))[1].first for s in (1, 1, 2)]
    assert first == second
    assert first != other
    assert list((cache / "exchange").iterdir()) == []


async def test_compiled_kernels_without_a_gpu_are_refused(worker: WorkerClient) -> None:
    runtime = Runtime(python=sys.executable, interpreter=False, devices="")
    with pytest.raises(MissingRequirement, match="no GPU"):
        await validate(
            worker, ValidationRequest(candidate=Target(path=KERNELS / "honest" / "silu.py")), runtime
        )
