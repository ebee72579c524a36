"""A call that outlasts a request becomes a job, which can be waited for and cancelled."""

from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client, MCPError

from pytorch_to_triton_server.serve import build_server

pytestmark = pytest.mark.anyio


def told_by(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    told: dict[str, Any] = result.structured_content
    return told


async def pid_in(marker: Path) -> int:
    with anyio.fail_after(60):
        while not (marker.exists() and marker.read_text()):
            await anyio.sleep(0.01)
    return int(marker.read_text())


async def until_gone(pid: int) -> None:
    with anyio.fail_after(20):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            await anyio.sleep(0.01)


async def test_a_long_call_answers_with_a_handle_that_gives_its_result_later(right_kernel: Path) -> None:
    async with Client(build_server(patience=0.1)) as client:
        started = told_by(await client.call_tool("validate", {"kernel": str(right_kernel)}))
        assert started["status"] == "running"
        assert started["job_id"] in started["next_step"]
        told = started
        while told.get("status") == "running":
            told = told_by(await client.call_tool("job", {"job_id": started["job_id"]}))
        assert told["verdict"] == "passed"
        again = told_by(await client.call_tool("job", {"job_id": started["job_id"]}))
        assert again == told


async def test_a_refusal_of_a_long_call_is_told_to_whoever_waits(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("def run(:")
    async with Client(build_server(patience=0.1)) as client:
        started = told_by(await client.call_tool("validate", {"kernel": str(file)}))
        result = await client.call_tool("job", {"job_id": started["job_id"]})
        while not result.is_error:
            result = await client.call_tool("job", {"job_id": started["job_id"]})
        assert "invalid syntax" in result.model_dump()["content"][0]["text"]


async def test_cancelling_a_job_kills_its_process_and_the_server_goes_on(
    spinning_kernel: Path, marker: Path
) -> None:
    async with Client(build_server(patience=0.1)) as client:
        started = told_by(await client.call_tool("validate", {"kernel": str(spinning_kernel)}))
        pid = await pid_in(marker)
        told = told_by(await client.call_tool("job", {"job_id": started["job_id"], "action": "cancel"}))
        while told["status"] == "running":
            told = told_by(await client.call_tool("job", {"job_id": started["job_id"]}))
        assert told["status"] == "cancelled"
        await until_gone(pid)
        unknown = await client.call_tool("job", {"job_id": "0"})
        assert unknown.is_error


async def test_cancelling_the_request_kills_the_job(spinning_kernel: Path, marker: Path) -> None:
    async with Client(build_server()) as client, anyio.create_task_group() as group:

        async def call() -> None:
            with pytest.raises(MCPError):
                await client.call_tool("validate", {"kernel": str(spinning_kernel)}, read_timeout_seconds=15)

        group.start_soon(call)
        await until_gone(await pid_in(marker))
