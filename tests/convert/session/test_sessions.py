"""A conversion in steps: gates open for what is right, stay shut for what is not, and nothing is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pytorch_to_triton.convert.session.answers import list_of, session_of
from pytorch_to_triton.convert.session.store import SessionFolder, drop, open_session, sessions_below
from pytorch_to_triton.convert.session.submit import restore
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.session import SessionStep

from . import files
from .conftest import Starting, Submitting
from .silent import CountedCases

pytestmark = pytest.mark.anyio

MANY = 20 if os.environ.get("ALL_KERNELS") else 8


def unmet(step: SessionStep) -> dict[str, str]:
    """The conditions that are not met, with the evidence."""
    return {condition.name: condition.evidence for condition in step.unmet}


async def test_a_draft_passes_its_three_gates_and_a_change_to_one_that_has_passed_is_said(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED, archs=())
    understood = folder.record().understood
    assert understood.inputs == ("x: float32[M, N] in -4..4",)
    assert [step.partition(" = ")[2].partition("(")[0] for step in understood.steps] == [
        "aten.mul.Tensor",
        "aten.add.Tensor",
    ]
    assert "bytes" in understood.work
    first = await submitted(folder)
    assert (first.verdict, first.notes) == ("opened", ())
    (compiles,) = (c for c in folder.attempts()[-1].conditions if c.name == "compiles")
    assert "sm_90: f_kernel" in compiles.evidence
    assert "gfx942: f_kernel" in compiles.evidence
    folder.file(1).write_text(files.PLANTED_BUG, encoding="utf-8")
    second = await submitted(folder)
    (note,) = second.notes
    assert second.verdict == "opened"
    assert note.startswith("stage1_correct.py has changed since it passed; what was submitted is stage2_")
    assert (await submitted(folder)).verdict == "finished"
    session = session_of(folder)
    assert session.best == folder.path / "attempts/0003/kernel.py"
    assert "stage 3 of 3" in session.best.read_text(encoding="utf-8")
    assert [c.met for c in session.attempts[-1].conditions if "slower" in c.name] == ["not measured"]
    assert "not measured" in session.summary


async def test_a_file_that_meets_what_stage_three_asks_is_there_after_one_call(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    step = await submitted(folder, files.AUTOTUNED, through=3)
    assert (step.verdict, step.stage, step.unmet) == ("finished", 3, ())
    assert {"right", "coalesced", "autotuned"} <= {*step.met}
    assert [(attempt.stage, attempt.opened) for attempt in folder.attempts()] == [(3, True)]
    assert folder.file(3).read_text(encoding="utf-8") == files.AUTOTUNED


async def test_a_draft_that_nobody_changed_goes_through_all_gates_as_the_last_stage_s_draft(
    started: Starting, submitted: Submitting
) -> None:
    folder, cases = await started(files.DOUBLED), CountedCases()
    first = folder.file(1).read_text(encoding="utf-8")
    step = await submitted(folder, through=3, listener=cases)
    assert (step.verdict, step.stage) == ("finished", 3)
    assert step.notes == ("stage3_tuned.py is drafted, and was submitted for stage1_correct.py.",)
    assert [(attempt.stage, attempt.opened) for attempt in folder.attempts()] == [(3, True)]
    (attempt,) = folder.attempts()
    assert "stage 3 of 3" in folder.text(attempt)
    assert folder.file(3).read_text(encoding="utf-8") == folder.text(attempt)
    assert folder.file(1).read_text(encoding="utf-8") == first
    cases.count = 0
    assert (await submitted(folder, through=3, listener=cases)).verdict == "finished"
    assert cases.count == 0


async def test_a_last_stage_that_somebody_wrote_is_not_drafted_over(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    folder.file(3).write_text(files.AUTOTUNED, encoding="utf-8")
    step = await submitted(folder, through=3)
    assert (step.verdict, step.notes) == ("finished", ())
    assert folder.file(3).read_text(encoding="utf-8") == files.AUTOTUNED
    assert folder.text(folder.attempts()[-1]) == folder.file(1).read_text(encoding="utf-8")


async def test_a_file_goes_as_far_as_its_evidence_and_says_what_the_next_gate_lacks(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    step = await submitted(folder, files.UNCOALESCED, through=3)
    assert (step.verdict, step.stage) == ("opened", 2)
    assert list(unmet(step)) == ["coalesced"]
    assert [(attempt.stage, attempt.opened) for attempt in folder.attempts()] == [(1, True)]


async def test_what_was_right_is_not_run_again_while_it_is_unchanged(
    started: Starting, submitted: Submitting
) -> None:
    folder, cases = await started(files.DOUBLED), CountedCases()
    await submitted(folder, files.AUTOTUNED, listener=cases)
    assert cases.count > 0
    cases.count = 0
    assert (await submitted(folder, files.AUTOTUNED, listener=cases)).verdict == "opened"
    assert cases.count == 0
    await submitted(folder, files.PLANTED_BUG, listener=cases)
    assert cases.count > 0


async def test_what_cannot_be_drafted_starts_with_a_kernel_to_be_written(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.GCD)
    blank = folder.file(1).read_text(encoding="utf-8")
    assert "def run(x, y):" in blank
    assert "def reference(x, y):" in blank
    assert "aten.gcd.default(x, y)" in blank
    assert 'INPUTS = {"x": "int32[N]", "y": "int32[N]"}' in blank
    with pytest.raises(BadInput, match="it has no kernel yet"):
        await submitted(folder)
    assert folder.attempts() == ()
    assert (await submitted(folder, files.GCD_KERNEL)).verdict == "opened"
    second = folder.file(2).read_text(encoding="utf-8")
    assert second.startswith("# Stage 2 of 3 (optimised) is to bring:")
    assert second.endswith(files.GCD_KERNEL)


async def test_a_default_that_was_not_declared_is_said_to_be_fixed(started: Starting) -> None:
    folder = await started(files.DOUBLED.replace("f(x)", "f(x, scale=2.0)").replace("2.0 * x", "scale * x"))
    assert folder.record().understood.frozen == (
        "scale = 2.0, its default; declare it as an input for another value",
    )


async def test_sizes_that_follow_from_the_smaller_of_two_have_their_work_counted(started: Starting) -> None:
    body = "import torch\n\n" + files.DOUBLED.replace("2.0 * x + 1.0", "torch.diagonal(x).sum()")
    assert "bytes" in (await started(body)).record().understood.work


async def test_every_condition_that_is_not_met_says_what_to_try(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    shut = await submitted(folder, files.CHEATING)
    assert "\nNot met: right. " in shut.summary
    assert "in a session PyTorch does only what the draft has left to it" in shut.next_step
    assert "--allow-torch" not in shut.next_step
    assert shut.unmet
    assert all(condition.advice in shut.next_step for condition in shut.unmet)


async def test_a_second_stage_is_refused_for_what_is_wrong_with_it_and_any_attempt_is_brought_back(
    started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    assert (await submitted(folder, files.DOUBLED_KERNEL)).verdict == "opened"
    bug = await submitted(folder, files.PLANTED_BUG)
    assert list(unmet(bug)) == ["right", "autotuned"]
    assert "wrong" in unmet(bug)["right"]
    assert any("--case" in note for note in bug.notes)
    unknown = await submitted(folder, files.UNKNOWN_NAME)
    assert "load_block" in unmet(unknown)["known to the installed Triton"]
    unloadable = await submitted(folder, f"import no_such_module\n{files.AUTOTUNED}")
    assert "no_such_module" in unmet(unloadable)["right"]
    scattered = await submitted(folder, files.UNCOALESCED)
    assert list(unmet(scattered)) == ["coalesced"]
    assert [session.verdict for session in (bug, unknown, unloadable, scattered)] == ["shut"] * 4
    assert (await submitted(folder, files.AUTOTUNED)).verdict == "opened"
    assert [one.opened for one in folder.attempts()] == [True, *[False] * 4, True]
    kept = folder.kernel(folder.attempts()[1]).read_text(encoding="utf-8")
    assert kept == files.PLANTED_BUG
    folder.file(1).write_text("# never submitted\n", encoding="utf-8")
    restored = restore(folder, 1)
    assert (restored.stage, folder.attempts()[-1].restored) == (2, 1)
    assert folder.file(1).read_text(encoding="utf-8") == files.DOUBLED_KERNEL
    assert (folder.path / "stage1_correct.before_restore.py").read_text("utf-8") == "# never submitted\n"
    assert len(folder.attempts()) == 7
    with pytest.raises(BadInput, match="no attempt 9"):
        restore(folder, 9)


async def test_a_target_that_changed_is_refused(started: Starting, submitted: Submitting) -> None:
    folder = await started(files.DOUBLED)
    target = folder.record().setting.target.path
    target.write_text(target.read_text(encoding="utf-8").replace("1.0", "3.0"), encoding="utf-8")
    with pytest.raises(BadInput, match="has changed since the session started"):
        await submitted(folder)
    assert folder.attempts() == ()


async def test_one_submission_runs_at_a_time(started: Starting, submitted: Submitting) -> None:
    folder = await started(files.DOUBLED)
    with folder.locked(), pytest.raises(BadInput, match="Another call is at work"):
        await submitted(SessionFolder(folder.path))


async def test_sessions_are_listed_and_dropped_but_not_what_somebody_else_put_there(
    started: Starting, tmp_path: Path
) -> None:
    folder = await started(files.DOUBLED)
    (line,) = list_of(sessions_below(tmp_path), tmp_path).sessions
    assert (line.session, line.stage, line.attempts) == (folder.path, 1, 0)
    (folder.path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"notes\.txt"):
        drop(folder)
    (folder.path / "notes.txt").unlink()
    drop(folder)
    assert not folder.path.exists()
    with pytest.raises(BadInput, match="holds no session"):
        open_session(folder.path)


@pytest.mark.parametrize("kills", [1, pytest.param(MANY, marks=pytest.mark.corpora)])
async def test_a_session_survives_whatever_kills_a_submission(
    kills: int, started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    moments = random.Random(kills)
    for _ in range(kills):
        process = submitting(folder)
        time.sleep(moments.uniform(0.2, 5.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        session = session_of(folder)
        assert all(attempt.opened for attempt in session.attempts)
        assert session.file.exists()
    if not is_done(folder):
        assert (await submitted(folder)).verdict in ("opened", "finished")


@pytest.mark.corpora
@pytest.mark.parametrize("kills", [MANY])
async def test_a_killed_fork_server_or_worker_makes_no_stage_wrong(
    kills: int, started: Starting, submitted: Submitting
) -> None:
    folder = await started(files.DOUBLED)
    moments = random.Random(kills)
    for _ in range(kills):
        process = submitting(folder)
        time.sleep(moments.uniform(1.0, 5.0))
        with suppress(psutil.NoSuchProcess):
            if descendants := psutil.Process(process.pid).children(recursive=True):
                moments.choice(descendants).kill()
        process.wait(120)
        for attempt in folder.attempts():
            unmet = {c.name: c.evidence for c in attempt.conditions if c.met == "not met"}
            assert "wrong" not in unmet.get("right", "")
            assert set(unmet) <= {"right"}
    while not is_done(folder):
        await submitted(folder)


def submitting(folder: SessionFolder) -> subprocess.Popen[bytes]:
    """A process that submits the current stage's file, in a group of its own."""
    command = [sys.executable, "-m", "pytorch_to_triton_server", "convert", "submit", str(folder.path)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def is_done(folder: SessionFolder) -> bool:
    """Whether the last gate has opened."""
    return any(attempt.stage == 3 and attempt.opened for attempt in folder.attempts())


ORDERED = """
INPUTS = {"x": "float32[T, 6]"}
DIMS = {"T": [1, 5]}
COMPARE = "unordered(out[0], out[1])"


def f(x):
    values, indices = x.topk(2, sorted=False)
    return indices, values
"""


async def test_the_start_says_what_of_the_results_is_free(started: Starting) -> None:
    folder = await started(ORDERED)
    assert session_of(folder).understood.compared == (
        "unordered(out[0], out[1], dim=-1), as declared",
        "topk: any of equal values, in any order, line 11",
    )
    assert 'COMPARE = ["unordered(out[0], out[1], dim=-1)"]' in folder.file(1).read_text(encoding="utf-8")


async def test_a_comparison_of_what_is_no_result_is_refused_at_the_start(started: Starting) -> None:
    with pytest.raises(BadInput, match=r"out\.values is no result: there are out\[0\], out\[1\]"):
        await started(ORDERED.replace("out[1])", "out.values)"))
