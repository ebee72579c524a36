"""What our own machinery loses is tried again, and never counted for or against a candidate."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.judge import candidate_failed
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.target_worker import LostAnswer, TargetWorker
from pytorch_to_triton.validate.validate import validate
from pytorch_to_triton.worker.wire import validation

from .kernel_files import double_file
from .listeners import WhileRunning

pytestmark = pytest.mark.anyio
DIES = """
import os, signal, time

def work(report, victim):
    loaded = {"name": "f", "description": None, "device": "CPU", "free_bytes": None}
    report.item({"is": "ReferenceLoadedItem", **loaded})
    for request in report.requests():
        os.kill({"itself": os.getpid(), "fork server": os.getppid()}[victim], signal.SIGKILL)
        time.sleep(60)
"""
REQUEST = validation.ForgetRequest(name="N=3", id="0")
CASE = Case(name="N=3", group="odd", dims={"N": 3}, arguments=())


@pytest.fixture(scope="module")
def others() -> list[psutil.Process]:
    """What other tests have started: it is not to be killed."""
    return psutil.Process().children()


@pytest.fixture(scope="module")
async def own_client(
    anyio_backend: str, others: list[psutil.Process], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WorkerClient]:
    """A client whose fork servers may be killed."""
    async with open_client(RunFolders(tmp_path_factory.mktemp("runs"))) as worker:
        yield worker


@pytest.mark.parametrize("victim", ["fork server", "jobs"])
async def test_a_fork_server_or_a_job_that_is_killed_in_mid_validation_changes_no_verdict(
    victim: str,
    own_client: WorkerClient,
    others: list[psutil.Process],
    interpreter: Runtime,
    tmp_path: Path,
) -> None:
    killed: list[psutil.Process] = []

    def kill_once() -> None:
        servers = [server for server in psutil.Process().children() if server not in others]
        jobs = [job for server in servers for job in server.children()]
        if not killed:
            killed.extend(servers if victim == "fork server" else jobs)
            for process in killed:
                process.kill()

    request = ValidationRequest(
        candidate=Target(path=double_file(tmp_path)), seed=7, cases=("N=4", "N=9", "N=5")
    )
    verdict = await validate(own_client, request, interpreter, WhileRunning(kill_once))
    assert killed
    assert verdict.verdict == "passed", verdict.summary
    assert [case.status for case in verdict.cases] == ["passed"] * 3


@pytest.mark.parametrize(
    ("victim", "status", "crashes"), [("itself", "crashed", 1), ("fork server", "lost", 0)]
)
async def test_what_is_killed_each_time_is_a_crash_and_what_is_lost_twice_is_none(
    victim: str, status: str, crashes: int, own_client: WorkerClient, tmp_path: Path
) -> None:
    file = tmp_path / "dies.py"
    file.write_text(DIES)
    job = Job(kind=str(file), arguments={"victim": victim})
    runtime = Runtime(python=sys.executable, interpreter=True)
    worker = TargetWorker(own_client, runtime, job, Target(path=file), seconds=60.0)
    try:
        with pytest.raises(LostAnswer) as ended:
            await worker.answer(REQUEST)
    finally:
        await worker.close()
    assert candidate_failed(CASE, ended.value.outcome).status == status
    assert len(worker.crashes) == crashes


async def test_an_error_of_the_comparison_itself_is_said_and_blames_nobody(
    own_client: WorkerClient, interpreter: Runtime, tmp_path: Path
) -> None:
    broken = ("    return x * 2\n", "    torch.unravel_index = None\n    return x * 3\n")
    request = ValidationRequest(candidate=Target(path=double_file(tmp_path, broken)), seed=7, cases=("N=4",))
    verdict = await validate(own_client, request, interpreter)
    assert verdict.verdict == "undecided"
    assert "could not be compared (TypeError: 'NoneType' object" in verdict.summary
