"""A job that takes requests answers each, and what becomes of it is a result, never a wait without end."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from pytorch_to_triton import places
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.job_channel import Ended, JobChannel
from pytorch_to_triton.jobs.progress import ProcessTime, phases_of, table_of
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from tests.jobs.processes import JOBS, LONG_SECONDS, Ask, honest

pytestmark = pytest.mark.anyio
JOB = Job(kind=str(JOBS / "talks.py"))


async def asked(channel: JobChannel, name: str, number: int = 0, seconds: float = LONG_SECONDS) -> int:
    return int((await channel.ask({"name": name, "number": number}, seconds=seconds))["twice"])


async def end_of(channel: JobChannel, name: str, number: int = 0, seconds: float = 10.0) -> Outcome:
    with pytest.raises(Ended) as ended:
        await asked(channel, name, number, seconds)
    return ended.value.outcome


@pytest.fixture
async def channel(worker: WorkerClient, compiled: Runtime) -> AsyncIterator[JobChannel]:
    async with worker.open_channel(JOB, compiled) as channel:
        await channel.item(seconds=LONG_SECONDS)
        yield channel


async def test_requests_are_answered_in_their_order(channel: JobChannel) -> None:
    assert [await asked(channel, "double", number) for number in range(5)] == [0, 2, 4, 6, 8]
    outcome = await channel.end(seconds=LONG_SECONDS)
    assert (outcome.status, outcome.answer) == ("answered", {"asked": "enough"})


async def test_a_job_that_dies_of_a_request_has_crashed_and_its_answers_are_kept(channel: JobChannel) -> None:
    await asked(channel, "double", 21)
    outcome = await end_of(channel, "die")
    assert (outcome.status, outcome.detail) == ("crashed", "killed by SIGSEGV")
    assert outcome.items[-1] == {"twice": 42}
    assert outcome.during == "die"


async def test_a_request_that_takes_too_long_and_leaving_early_end_the_job(
    channel: JobChannel, worker: WorkerClient, compiled: Runtime
) -> None:
    outcome = await end_of(channel, "sleep", 1000, seconds=0.3)
    assert (outcome.status, outcome.detail) == ("timed_out", "not done within 0.3 s")
    async with worker.open_channel(JOB, compiled) as channel:
        pid = (await channel.item(seconds=LONG_SECONDS))["ready"]
        with anyio.move_on_after(0.2):
            await asked(channel, "sleep", 1000)
    assert not Path(f"/proc/{pid}").exists()


async def test_an_answer_that_nobody_waits_for_any_more_is_given_to_nobody(channel: JobChannel) -> None:
    for _ in range(2):
        with anyio.move_on_after(0.1) as patience:
            await asked(channel, "sleep", 1)
        assert patience.cancelled_caught
    assert [await asked(channel, "double", number) for number in (4, 5)] == [8, 10]


async def test_the_run_folder_can_be_done_again_by_hand(channel: JobChannel, empty_libraries: Path) -> None:
    await asked(channel, "double", 21)
    await channel.end(seconds=LONG_SECONDS)
    command = [sys.executable, "-P", str(places.WORKER / "bootstrap.py"), str(channel.folder)]
    again = subprocess.run(
        command, env={"PYTHONPATH": str(empty_libraries)}, check=True, timeout=120, capture_output=True
    )
    said = [json.loads(line) for line in again.stdout.splitlines()]
    assert {"is": "ItemMessage", "item": {"twice": 42}} in said
    assert said[-1] == {"is": "AnsweredReply", "answer": {"asked": "enough"}}


async def test_what_a_job_needs_is_imported_once_for_all_that_follow(
    worker: WorkerClient, compiled: Runtime
) -> None:
    needing = JOB.model_copy(update={"needs": ("decimal", "no_such_module_anywhere")})
    for job in (needing, JOB):
        async with worker.open_channel(job, compiled) as channel:
            assert (await channel.item(seconds=LONG_SECONDS))["decimal"] is True


async def test_what_does_not_change_is_asked_once(worker: WorkerClient, compiled: Runtime) -> None:
    worker.process_times.clear()
    first = await worker.ask_once(Job(kind="versions"), compiled, seconds=LONG_SECONDS)
    again = await worker.ask_once(Job(kind="versions"), compiled, seconds=LONG_SECONDS)
    assert first == again
    assert len([one for one in worker.process_times if one.what == "versions"]) <= 1


async def test_of_any_number_of_processes_the_last_ones_are_kept(worker: WorkerClient, ask: Ask) -> None:
    times = worker.process_times
    assert times.maxlen is not None
    times.extend([ProcessTime("earlier", False, 0.0, 0.0)] * times.maxlen)
    for number in range(2):
        await ask(honest("double", number=number))
    assert len(times) == times.maxlen
    assert [one.what == "earlier" for one in times][-3:] == [True, False, False]


def test_what_was_spent_is_a_row_a_process_in_the_order_of_their_beginning() -> None:
    phases = phases_of([("load", 10.0), ("trace", 10.5)], end=12.0)
    rows = table_of([ProcessTime("trace", False, 3.0, 2.0, phases), ProcessTime("imports", True, 0.0, 2.5)])
    assert rows == [
        ("0.0", "2.5", "imports (interpreter)"),
        ("3.0", "2.0", "trace (device): load 0.5, trace 1.5"),
    ]
    assert phases_of([(f"case {n}", float(n)) for n in range(30)], end=30.0) == ()
