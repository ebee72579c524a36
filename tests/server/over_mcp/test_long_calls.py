"""A call that outlasts a request can be waited for and cancelled by its job_id."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client, StdioServerParameters

from pytorch_to_triton_server.serve import build_server
from pytorch_to_triton_server.settings import ServerSettings

pytestmark = pytest.mark.anyio
PATIENCE = 120
"""Seconds that only a fault takes, on whatever machine."""
SERVE_IMPATIENTLY = """
from pathlib import Path
from pytorch_to_triton_server.serve import serve_stdio
from pytorch_to_triton_server.settings import ServerSettings
serve_stdio(ServerSettings(allowed=(Path("/"),), patience=0.1))
"""


@pytest.fixture(scope="module")
async def impatient(client: Client, cache: Path) -> AsyncIterator[Client]:
    """A client of one server with hardly any patience."""
    async with Client(build_server(ServerSettings(allowed=(Path("/"),), patience=0.1))) as client:
        yield client


def started_anew(folder: Path, cache: Path) -> Client:
    """A client of a server process of its own."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", SERVE_IMPATIENTLY],
        env={"PYTORCH_TO_TRITON_CACHE": str(cache), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        cwd=folder,
    )
    return Client(server)


def content_of(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


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
    started = content_of(await impatient.call_tool("validate", {"kernel": str(right_kernel)}))
    assert started["status"] == "running"
    assert started["job_id"] in started["next_step"]
    latest = started
    while latest.get("status") == "running":
        latest = content_of(await impatient.call_tool("job", {"job_id": started["job_id"]}))
    assert latest["verdict"] == "passed"
    again = content_of(await impatient.call_tool("job", {"job_id": started["job_id"]}))
    assert again == latest
    jobs = content_of(await impatient.call_tool("job", {"action": "list"}))["jobs"]
    assert [(one["state"], one["doing"]) for one in jobs if one["job_id"] == started["job_id"]] == [
        ("finished", "")
    ]


async def test_a_refusal_of_a_long_call_reaches_whoever_waits(impatient: Client, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("def run(:")
    result = await impatient.call_tool("validate", {"kernel": str(file)})
    while not result.is_error:
        result = await impatient.call_tool("job", {"job_id": content_of(result)["job_id"]})
    assert "invalid syntax" in result.model_dump()["content"][0]["text"]


async def test_cancelling_a_long_call_kills_its_process(
    impatient: Client, spinning_kernel: Path, marker: Path
) -> None:
    started = content_of(await impatient.call_tool("validate", {"kernel": str(spinning_kernel)}))
    pid = await pid_in(marker)
    latest = content_of(await impatient.call_tool("job", {"job_id": started["job_id"], "action": "cancel"}))
    while latest["status"] == "running":
        latest = content_of(await impatient.call_tool("job", {"job_id": started["job_id"]}))
    assert latest["status"] == "cancelled"
    await until_gone(pid)


async def test_an_unknown_job_id_is_refused(impatient: Client) -> None:
    result = await impatient.call_tool("job", {"job_id": "0"})
    assert result.is_error
    assert "There is no job '0'" in result.model_dump()["content"][0]["text"]


async def test_cancelling_a_request_kills_its_call(
    client: Client, spinning_kernel: Path, marker: Path
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "validate", {"kernel": str(spinning_kernel)})
        pid = await pid_in(marker)
        group.cancel_scope.cancel()
    await until_gone(pid)


async def test_a_server_started_anew_finds_the_results_of_the_one_before(
    client: Client, cache: Path, right_kernel: Path, tmp_path: Path
) -> None:
    async with started_anew(tmp_path, cache) as before:
        started = content_of(await before.call_tool("validate", {"kernel": str(right_kernel)}))
        job_id, latest = started["job_id"], started
        while latest.get("status") == "running":
            latest = content_of(await before.call_tool("job", {"job_id": job_id}))
    async with started_anew(tmp_path, cache) as after:
        assert content_of(await after.call_tool("job", {"job_id": job_id})) == latest
        (listed,) = content_of(await after.call_tool("job", {"action": "list"}))["jobs"]
        assert (listed["job_id"], listed["tool"], listed["state"]) == (job_id, "validate", "finished")
    async with started_anew(tmp_path.parent, cache) as elsewhere:
        assert (await elsewhere.call_tool("job", {"job_id": job_id})).is_error


async def test_a_call_that_ended_with_its_server_is_said_to_be_lost(
    client: Client, cache: Path, spinning_kernel: Path, marker: Path, tmp_path: Path
) -> None:
    async with started_anew(tmp_path, cache) as before:
        started = content_of(await before.call_tool("validate", {"kernel": str(spinning_kernel)}))
        pid = await pid_in(marker)
        async with started_anew(tmp_path, cache) as beside:
            found = await beside.call_tool("job", {"job_id": started["job_id"]})
            assert "runs in another server" in found.model_dump()["content"][0]["text"]
    await until_gone(pid)
    async with started_anew(tmp_path, cache) as after:
        found = await after.call_tool("job", {"job_id": started["job_id"]})
        assert found.is_error
        text = found.model_dump()["content"][0]["text"]
        assert text == "validate ended with its server, without a result.\nCall validate again."
