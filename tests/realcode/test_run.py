"""Real model code is drafted and checked as KernelBench's problems are, with gradients where it has some."""

from pathlib import Path

import pytest

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.sweep.journal import Journal
from realcode.run import HALVES, arguments, problems_in, run

pytestmark = pytest.mark.anyio


def test_no_function_is_in_both_halves() -> None:
    work, held_out = ({(p.path.stem, p.function) for p in problems_in(half)} for half in HALVES)
    assert not work & held_out


@pytest.mark.parametrize("half", HALVES)
def test_a_function_with_gradients_is_a_problem_with_them_and_one_without(half: str) -> None:
    problems = problems_in(half)
    forward = {problem.key for problem in problems if not problem.backward}
    assert {p.key.removesuffix("/backward") for p in problems if p.backward} < forward


async def test_gradients_are_checked_and_their_bytes_counted(worker: WorkerClient, tmp_path: Path) -> None:
    chosen = ["--problems", "diffusion/gated_residual*", "--device", "interpreter", "--jobs", "1"]
    assert await run(arguments([*chosen, "--out", str(tmp_path)]), worker) == 0
    table = (tmp_path / "work" / "table.md").read_text()
    assert (
        "| diffusion/gated_residual | yes | yes | 1 | 1 | 1.00 | – | own kernels | not done | right |"
        in table
    )
    assert "| diffusion/gated_residual/backward | yes | yes |" in table
    assert "- checked beside eager: 2 of 2" in table


@pytest.mark.corpora
@pytest.mark.parametrize("file", sorted({problem.path.stem for problem in problems_in("work")}))
async def test_drafts_of_every_function_of_a_file_compute_what_pytorch_does(
    worker: WorkerClient, tmp_path: Path, file: str
) -> None:
    chosen = ["--problems", f"{file}/*", "--device", "interpreter", "--jobs", "2", "--phase", "draft,check"]
    assert await run(arguments([*chosen, "--out", str(tmp_path)]), worker) == 0
    journal = Journal(tmp_path / "work" / "journal.sqlite")
    checked = {record["item"]: record["status"] for record in journal if record["phase"] == "check"}
    assert checked == {p.key: "right" for p in problems_in("work") if p.path.stem == file}
