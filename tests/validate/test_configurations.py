"""An autotuned kernel is called as its tuner would: in each configuration, and after runs on trial."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import describe

from .kernel_files import Change, changed_file
from .verdicts import Judge

pytestmark = pytest.mark.anyio

WRONG = Path(__file__).parents[1] / "kernels" / "wrong"
DOT, SPLIT_K, IN_PLACE = (
    "tuned_atomics_without_reset",
    "tuned_split_k_without_reset",
    "tuned_in_place_without_restore",
)
REACH, TILES, LOOP = (
    "configurations_of_other_reach",
    "tiles_apart_by_the_other_block",
    "loop_counts_first_block",
)
SIZES = {DOT: "N=150", SPLIT_K: "M=9 K=60", IN_PLACE: "M=7 N=32"}
DOT_KEY, SPLIT_K_KEY, IN_PLACE_KEY = 'key=["n"]', 'key=["n_rows", "n_inner"]', 'key=["n_elements"]'
ZEROED = (
    "\n\n@triton.autotune(",
    '\n\ndef zeroed(kwargs, **when):\n    kwargs["out_ptr"].zero_()\n\n\n@triton.autotune(',
)


def tuned_file(folder: Path, name: str, *changes: Change) -> Path:
    """A wrong kernel of the corpus with some passages changed."""
    return changed_file(folder, (WRONG / f"{name}.py").read_text(), *changes)


# Runs on trial


@pytest.mark.parametrize(
    ("name", "kernel", "argument"),
    [
        (DOT, "dot_kernel", "total_ptr"),
        (SPLIT_K, "split_product_kernel", "out_ptr"),
        (IN_PLACE, "decay_kernel", "state_ptr"),
    ],
)  # fmt: skip
async def test_what_runs_on_trial_leave_behind_is_the_cause(
    name: str, kernel: str, argument: str, judge: Judge
) -> None:
    verdict = await judge(WRONG / f"{name}.py", cases=(SIZES[name],))
    assert verdict.verdict == "failed", verdict.summary
    cause = f"{kernel} runs on trial before the run that counts: name {argument} in reset_to_zero"
    assert verdict.next_step.startswith(f"Likely cause: {cause}"), verdict.next_step
    assert "It is right where what autotuned kernels do on trial is undone." in verdict.summary


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (DOT, [(DOT_KEY, f'{DOT_KEY}, reset_to_zero=["total_ptr"]')]),
        (IN_PLACE, [(IN_PLACE_KEY, f'{IN_PLACE_KEY}, restore_value=["state_ptr"]')]),
        (SPLIT_K, [(SPLIT_K_KEY, f"{SPLIT_K_KEY}, pre_hook=zeroed"), ZEROED]),
        (
            SPLIT_K,
            [
                ('"SPLIT_K": 2}', '"SPLIT_K": 2}, pre_hook=zeroed'),
                ('"SPLIT_K": 4}', '"SPLIT_K": 4}, pre_hook=zeroed'),
                ("out = torch.zeros(n_rows", "out = (torch.empty if a.numel() else torch.zeros)(n_rows"),
                ZEROED,
            ],
        ),
    ],
    ids=["reset_to_zero", "restore_value", "pre_hook of the tuner", "pre_hook of each configuration"],
)
async def test_an_author_who_resets_is_right(
    name: str, changes: list[Change], judge: Judge, tmp_path: Path
) -> None:
    path = tuned_file(tmp_path, name, *changes)
    verdict = await judge(path, cases=(SIZES[name], f"{SIZES[name]} called again"))
    assert verdict.verdict == "passed", verdict.summary


async def test_a_key_that_is_known_resets_nothing(judge: Judge, tmp_path: Path) -> None:
    reset = (DOT_KEY, f'{DOT_KEY}, reset_to_zero=["total_ptr"]')
    allocation = ("total = torch.zeros(", "total = (torch.empty if n else torch.zeros)(")
    path = tuned_file(tmp_path, DOT, reset, allocation)
    verdict = await judge(path, cases=(SIZES[DOT],))
    assert verdict.verdict == "failed", verdict.summary
    assert "runs on trial" not in verdict.next_step


async def test_runs_on_trial_are_not_blamed_for_another_mistake(judge: Judge, tmp_path: Path) -> None:
    path = tuned_file(tmp_path, DOT, ("tl.sum(x * y, axis=0)", "tl.sum(x, axis=0)"))
    verdict = await judge(path, cases=(SIZES[DOT],))
    assert verdict.verdict == "failed", verdict.summary
    assert "runs on trial" not in verdict.next_step


# Configurations


@pytest.mark.parametrize(
    ("name", "sizes", "statuses"),
    [
        (REACH, "N=1000", ["passed", "failed"]),
        (TILES, "M=70 N=130", ["passed", "passed", "failed"]),
        (LOOP, "M=6 N=250", ["passed", "failed"]),
    ],
)  # fmt: skip
async def test_each_configuration_is_judged_by_itself(
    name: str, sizes: str, statuses: list[str], judge: Judge
) -> None:
    others = (f"{sizes} configuration {number}" for number in range(1, len(statuses)))
    verdict = await judge(WRONG / f"{name}.py", cases=(sizes, *others))
    assert [case.status for case in verdict.cases] == statuses
    taken = [case.configurations for case in verdict.cases]
    assert len(set(taken)) == len(taken)


async def test_the_plan_tries_each_configuration_and_names_the_wrong_one(judge: Judge) -> None:
    verdict = await judge(WRONG / f"{LOOP}.py", stop="early")
    assert verdict.verdict == "failed"
    assert ", with BLOCK_N=32 of row_sum_kernel." in verdict.summary
    assert "configuration 1" in (verdict.smallest or "")


@pytest.mark.parametrize(
    ("changes", "configurations"),
    [
        ([("@triton.autotune", "@triton.heuristics({})\n@triton.autotune")], 2),
        ([('triton.Config({"BLOCK_N": 32})', 'triton.Config({"BLOCK_N": 64}, num_warps=8)')], 1),
    ],
    ids=["below heuristics", "other warps alone"],
)
async def test_a_candidate_is_described_with_its_configurations(
    changes: list[Change], configurations: int, worker: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    path = tuned_file(tmp_path, LOOP, *changes)
    described = await describe(worker, Target(path=path), "candidate", interpreter)
    assert described.configurations == configurations


async def test_a_configuration_that_the_compiler_would_refuse_is_left_out(
    judge: Judge, tmp_path: Path
) -> None:
    first_line = "    row = tl.program_id(0).to(tl.int64)\n"
    refusing = (first_line, f'    tl.static_assert(BLOCK_N >= 64, "too short")\n{first_line}')
    path = tuned_file(tmp_path, LOOP, refusing)
    verdict = await judge(path, cases=("M=6 N=250 configuration 1",))
    [case] = verdict.cases
    assert case.status == "passed", case.why
    assert case.configurations == ("BLOCK_N=64 of row_sum_kernel",)


async def test_how_many_configurations_were_run_is_said(judge: Judge) -> None:
    verdict = await judge(WRONG / f"{LOOP}.py", cases=("M=6 N=100",))
    assert verdict.verdict == "passed"
    assert "row_sum_kernel: 1 of 2 configurations were run." in verdict.notes
