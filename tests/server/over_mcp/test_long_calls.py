"""A call that outlasts a request can be waited for and cancelled by its job_id."""

import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import psutil
import pytest
from mcp import Client

from pytorch_to_triton_server.over_mcp.kept_calls import KeptCall

from ..clients import answered, content_of, kept_to, refused, text_of

pytestmark = pytest.mark.anyio
PATIENCE = 120
"""Seconds that only a fault takes, on whatever machine."""


@pytest.fixture(scope="module")
async def impatient(client: Client, kept_open: None) -> AsyncIterator[Client]:
    """A client of one server with hardly any patience."""
    async with kept_to(Path("/"), patience=0.1) as client:
        yield client


async def pid_in(marker: Path) -> int:
    with anyio.fail_after(PATIENCE):
        while not (marker.exists() and marker.read_text()):
            await anyio.sleep(0.01)
    return int(marker.read_text())


async def until_gone(pid: int) -> None:
    with anyio.fail_after(PATIENCE), contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await anyio.sleep(0.01)


async def test_a_long_call_returns_a_job_id_that_gives_its_result_later(
    impatient: Client, right_kernel: Path
) -> None:
    started = await answered(impatient, "validate", kernel=str(right_kernel))
    assert started["status"] == "running"
    assert started["job_id"] in started["next_step"]
    latest = started
    while latest.get("status") == "running":
        latest = await answered(impatient, "job", job_id=started["job_id"])
    assert latest["verdict"] == "passed"
    again = await answered(impatient, "job", job_id=started["job_id"])
    assert again == latest
    jobs = (await answered(impatient, "job", action="list"))["jobs"]
    assert [(one["state"], one["doing"]) for one in jobs if one["job_id"] == started["job_id"]] == [
        ("finished", "")
    ]


async def test_a_refusal_of_a_long_call_reaches_whoever_waits(impatient: Client, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("def run(:")
    result = await impatient.call_tool("validate", {"kernel": str(file)})
    while not result.is_error:
        result = await impatient.call_tool("job", {"job_id": content_of(result)["job_id"]})
    assert "invalid syntax" in text_of(result)


async def test_cancelling_a_long_call_kills_its_process(
    impatient: Client, spinning_kernel: Path, marker: Path
) -> None:
    started = await answered(impatient, "validate", kernel=str(spinning_kernel))
    pid = await pid_in(marker)
    latest = await answered(impatient, "job", job_id=started["job_id"], action="cancel")
    while latest["status"] == "running":
        latest = await answered(impatient, "job", job_id=started["job_id"])
    assert latest["status"] == "cancelled"
    await until_gone(pid)
    async with kept_to(Path("/"), patience=0) as after:
        jobs = (await answered(after, "job", action="list"))["jobs"]
    assert next(job["state"] for job in jobs if job["job_id"] == started["job_id"]) == "cancelled"


async def test_an_unknown_job_id_is_refused(impatient: Client) -> None:
    assert "There is no job '0'" in await refused(impatient, "job", job_id="0")


async def test_cancelling_a_request_kills_its_call(
    client: Client, spinning_kernel: Path, marker: Path
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "validate", {"kernel": str(spinning_kernel)})
        pid = await pid_in(marker)
        group.cancel_scope.cancel()
    await until_gone(pid)


async def test_a_server_started_anew_finds_the_results_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "plain.py").write_text("import triton\n")
    monkeypatch.chdir(tmp_path / "folder")
    async with kept_to(tmp_path, patience=0) as before:
        started = await answered(before, "audit", paths=["plain.py"], evidence="source")
        job_id, latest = started["job_id"], started
        while latest.get("status") == "running":
            latest = await answered(before, "job", job_id=job_id)
    async with kept_to(tmp_path, patience=0) as after:
        assert await answered(after, "job", job_id=job_id) == latest
        (listed,) = (await answered(after, "job", action="list"))["jobs"]
        assert (listed["job_id"], listed["tool"], listed["state"]) == (job_id, "audit", "finished")
        monkeypatch.chdir(tmp_path)
        assert (await after.call_tool("job", {"job_id": job_id})).is_error


async def test_a_call_of_another_server_is_said_to_run_there_or_to_be_lost_with_it(
    impatient: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as beside:
        began = psutil.Process(beside.pid).create_time()
        call = KeptCall.begun("ab12", "validate", "brief").model_copy(
            update={"server": beside.pid, "server_began": began}
        )
        call.write()
        running = await impatient.call_tool("job", {"job_id": "ab12"})
        assert f"runs in another server in this folder, process {beside.pid}" in str(running.content)
    text = await refused(impatient, "job", job_id="ab12")
    assert text == "validate ended with its server, without a result.\nCall validate again."
