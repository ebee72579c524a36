"""Whatever a job does, the client says what happened, and the next job works."""

import json
import math
import os
import subprocess
import sys
import venv
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.worker.wire import Failure
from tests.jobs.processes import LONG_SECONDS, Ask, honest, hostile, is_gone

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ask_light(
    tmp_path: Path, compiled: Runtime, empty_libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Ask]:
    """Asks a client of its own, whose fork servers import nothing: they start at once."""
    monkeypatch.setenv("PYTHONPATH", str(empty_libraries))
    async with open_client(RunFolders(tmp_path)) as light:
        yield partial(light.ask, runtime=compiled, seconds=LONG_SECONDS)


class Recorder:
    """Remembers what it was reported, and lets a test wait for the first item."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, Any]] = []
        self.first_item = anyio.Event()

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.reported.append(("progress", (done, total, message)))

    async def item(self, result: dict[str, Any]) -> None:
        self.reported.append(("item", result))
        self.first_item.set()


async def until_gone(pid: int) -> None:
    with anyio.fail_after(120):
        while not is_gone(pid):
            await anyio.sleep(0.01)


async def test_a_job_is_answered(ask: Ask) -> None:
    outcome = await ask(honest("double", number=21))
    assert outcome.status == "answered"
    assert outcome.answer == {"number": 42, "folder": str(outcome.folder)}
    assert json.loads((outcome.folder / "outcome.json").read_text())["status"] == "answered"


async def test_a_forked_child_can_compute_on_all_cores_and_trace(ask: Ask) -> None:
    outcome = await ask(honest("multiply", size=512))
    assert outcome.answer == {"sum": 512.0**3}
    outcome = await ask(honest("export"))
    assert outcome.answer is not None, outcome.log
    assert outcome.answer["nodes"] >= 3


async def test_however_a_job_ends_it_is_told_and_the_next_one_works(ask: Ask) -> None:
    for job, status, detail in (
        (hostile("be_killed"), "crashed", "SIGKILL"),
        (hostile("leave_quietly"), "crashed", "exit code 3"),
        (hostile("leave_loudly"), "raised", "SystemExit: no more"),
        (hostile("answer_nan"), "raised", "ValueError"),
        (Job(kind="no_such_job"), "raised", "ModuleNotFoundError"),
    ):
        outcome = await ask(job)
        assert outcome.status == status
        assert detail in outcome.detail
    after = await ask(honest("double", number=1), seconds=math.inf)
    assert after.status == "answered"


async def test_an_abort_is_a_crash_that_keeps_items_and_shows_where(ask: Ask) -> None:
    outcome = await ask(hostile("abort"))
    assert (outcome.status, outcome.during) == ("crashed", "abort")
    assert "SIGABRT" in outcome.detail
    assert "hostile.py" in outcome.log
    assert [item["folder"] for item in outcome.items] == [str(outcome.folder)]


@pytest.mark.parametrize("how", ["write_an_answer_of_its_own", "close_every_descriptor"])
async def test_what_a_job_does_to_its_descriptors_is_no_answer(ask: Ask, how: str) -> None:
    outcome = await ask(hostile(how))
    assert (outcome.status, outcome.answer, outcome.during) == ("crashed", None, how)
    assert len(outcome.items) == 1
    after = await ask(honest("double", number=1))
    assert after.status == "answered"


@pytest.mark.parametrize("how", ["spin_in_python", "spin_in_native_code"])
async def test_a_job_without_end_times_out_and_is_gone(ask: Ask, how: str) -> None:
    outcome = await ask(hostile(how), seconds=0.5)
    assert (outcome.status, outcome.during) == ("timed_out", how)
    assert "0.5 s" in outcome.detail
    assert is_gone(outcome.items[0]["pid"])


async def test_what_a_job_started_ends_with_it(ask: Ask) -> None:
    outcome = await ask(hostile("leave_a_child"))
    assert outcome.answer is not None
    await until_gone(outcome.answer["child"])


async def test_an_exception_names_the_users_line_or_that_of_its_cause_and_no_other_frames(ask: Ask) -> None:
    outcome = await ask(hostile("divide_inside_torch"))
    failure = outcome.failure
    assert outcome.status == "raised"
    assert failure is not None
    assert (failure.type, failure.message) == ("ZeroDivisionError", "division by zero")
    assert failure.during == "divide_inside_torch"
    assert "the line that a person wants to see" in line_of(failure)
    assert "nn/modules" not in failure.traceback
    assert "forkserver" not in failure.traceback
    assert outcome.detail == "ZeroDivisionError: division by zero"
    failure = (await ask(hostile("chain"))).failure
    assert failure is not None
    assert failure.type == "RuntimeError"
    assert "the line that a person wants to see" in line_of(failure)
    assert "ZeroDivisionError" in failure.traceback


def line_of(failure: Failure) -> str:
    assert failure.file is not None
    assert failure.line is not None
    return Path(failure.file).read_text().splitlines()[failure.line - 1]


async def test_a_watch_is_reported_everything_in_order(ask: Ask) -> None:
    listener = Recorder()
    outcome = await ask(honest("report_on_the_way"), listener=listener)
    assert listener.reported == [
        reported
        for count in range(3)
        for reported in (("item", {"count": count}), ("progress", (count + 1, 3, f"counted {count}")))
    ]
    assert outcome.items == ({"count": 0}, {"count": 1}, {"count": 2})
    assert outcome.during == "counting"


async def test_a_watch_that_fails_ends_the_job(ask: Ask) -> None:
    class Failing(Recorder):
        async def item(self, result: dict[str, Any]) -> None:
            self.reported.append(("item", result))
            raise LookupError("the watch is at fault")

    listener = Failing()
    with pytest.raises(LookupError):
        await ask(hostile("spin_in_python"), listener=listener)
    assert is_gone(listener.reported[0][1]["pid"])


async def test_what_a_job_prints_goes_to_its_log_only_of_which_the_end_is_kept(
    ask: Ask, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = await ask(honest("chatter"))
    assert outcome.log.splitlines() == ["from print", "from the file descriptor", "from a child"]
    assert capfd.readouterr() == ("", "")
    outcome = await ask(honest("talk_at_length"))
    assert outcome.log.splitlines()[-1] == "the end"
    assert "the beginning" not in outcome.log


async def test_two_jobs_run_at_the_same_time(ask: Ask, tmp_path: Path) -> None:
    pipe = str(tmp_path / "meeting")
    os.mkfifo(pipe)
    outcomes: list[Outcome] = []

    async def meet(flags: int) -> None:
        job = honest("meet", pipe=pipe, flags=flags)
        outcomes.append(await ask(job))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meet, os.O_RDONLY)
        tasks.start_soon(meet, os.O_WRONLY)
    assert [outcome.status for outcome in outcomes] == ["answered", "answered"]


async def test_cancelling_kills_the_job_and_its_children(ask: Ask) -> None:
    listener = Recorder()
    async with anyio.create_task_group() as tasks:

        async def spin() -> None:
            await ask(hostile("spin_with_a_child"), listener=listener)

        tasks.start_soon(spin)
        await listener.first_item.wait()
        seen = listener.reported[0][1]
        job = psutil.Process(seen["pid"])
        while not (children := job.children()):
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert is_gone(job.pid)
    await until_gone(children[0].pid)
    assert json.loads(Path(seen["folder"], "outcome.json").read_text())["status"] == "cancelled"


async def test_a_job_that_goes_with_its_fork_server_is_lost_and_the_next_has_a_fresh_one(
    ask_light: Ask,
) -> None:
    listener = Recorder()
    outcomes: list[Outcome] = []

    async def spin() -> None:
        job = hostile("spin_in_python")
        outcomes.append(await ask_light(job, listener=listener))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(spin)
        await listener.first_item.wait()
        seen = listener.reported[0][1]
        psutil.Process(seen["fork_server"]).kill()
    assert outcomes[0].status == "lost"
    assert "forked from" in outcomes[0].detail
    await until_gone(seen["pid"])
    after = await ask_light(honest("parentage"))
    assert after.answer is not None
    assert after.answer["fork_server"] != seen["fork_server"]


async def test_versions_report_the_runtime_whatever_the_environment_says(
    worker: WorkerClient, compiled: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        async with open_client(RunFolders(tmp_path)) as fresh_door:
            seen = await versions(fresh_door, compiled)
    assert not seen.interpreter
    assert seen.python == ".".join(map(str, sys.version_info[:3]))
    interpreted = await versions(worker, Runtime(python=sys.executable, interpreter=True))
    assert interpreted == seen.model_copy(update={"interpreter": True, "devices": (), "assemblers": ()})


async def test_a_python_without_torch_or_that_does_not_exist_is_refused_and_its_words_are_shown(
    worker: WorkerClient, tmp_path: Path
) -> None:
    venv.create(tmp_path, symlinks=True)
    bare = Runtime(python=str(tmp_path / "bin" / "python"), interpreter=True)
    with pytest.raises(MissingRequirement, match="No module named 'torch'") as refusal:
        await versions(worker, bare)
    assert "Traceback" in refusal.value.hint
    nowhere = Runtime(python=str(tmp_path / "python"), interpreter=True)
    with pytest.raises(MissingRequirement, match="No such file") as refusal:
        await versions(worker, nowhere)
    assert "torch and triton" in refusal.value.hint


def test_bootstrap_without_a_run_folder_says_how_to_use_it(tmp_path: Path) -> None:
    command = [sys.executable, "-P", str(places.WORKER / "bootstrap.py"), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "RUN_FOLDER" in ended.stderr


async def test_a_job_that_takes_more_memory_than_it_may_is_stopped_and_the_next_one_works(
    ask_light: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_MEMORY_GIB", "1.5")
    outcome = await ask_light(hostile("take_memory"))
    assert outcome.status == "crashed"
    assert "over the limit of 1.5 GiB" in outcome.detail
    assert "PYTORCH_TO_TRITON_MEMORY_GIB" in outcome.detail
    again = await ask_light(honest("double", number=4))
    assert again.status == "answered", again.detail


SECRETS = (
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "ANTHROPIC_API_KEY",
    "SSH_AUTH_SOCK",
    "PGPASSWORD",
    "MY_KEY",
)
KEPT = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "HF_HOME", "MY_SETTING")


async def test_a_job_does_not_get_the_secrets_of_the_environment(
    ask_light: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*SECRETS, *KEPT):
        monkeypatch.setenv(name, "")
    outcome = await ask_light(hostile("show_environment"))
    assert outcome.answer is not None
    assert set(KEPT) <= outcome.answer.keys()
    assert not set(SECRETS) & outcome.answer.keys()
