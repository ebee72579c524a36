"""A conversion from its start to the finished files, by clients of both eras, in memory and over stdio."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters

from pytorch_to_triton_server.serve import build_server
from pytorch_to_triton_server.settings import ServerSettings

pytestmark = [pytest.mark.anyio, pytest.mark.corpora]
FUNCTION = """
import torch


def scaled_silu(x):
    return torch.nn.functional.silu(x) * 2
"""


async def answer_of(client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
    """What a tool answers in the end; the text says what the structured content says."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content = result.structured_content
    assert content is not None
    assert json.loads(result.model_dump()["content"][0]["text"]) == content
    if content.get("status") == "running":
        return await answer_of(client, "job", job_id=content["job_id"])
    return content


@pytest.mark.parametrize("over", ["memory", "stdio"])
@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_a_conversion_runs_from_its_start_to_the_finished_files(
    server: StdioServerParameters, mode: Literal["legacy", "auto"], version: str, over: str, tmp_path: Path
) -> None:
    target = tmp_path / "ops.py"
    target.write_text(FUNCTION)
    session, into = tmp_path / "session", tmp_path / "result"
    served = build_server(ServerSettings(allowed=(tmp_path,))) if over == "memory" else server
    async with Client(served, mode=mode) as client:
        assert client.protocol_version == version
        started = await answer_of(
            client,
            "convert_start",
            target=f"{target}:scaled_silu",
            input=["x=float32[N]"],
            dim=["N=1,33"],
            into=str(session),
            device="interpreter",
        )
        assert started["stage"] == 1
        submitted = [await answer_of(client, "convert_submit", session=str(session)) for _ in range(3)]
        verdicts = [one["verdict"] for one in submitted]
        assert verdicts == ["opened", "opened", "finished"]
        listed = await answer_of(client, "convert_list", below=str(tmp_path))
        assert str(session) in json.dumps(listed)
        finished = await answer_of(client, "convert_finish", session=str(session), into=str(into))
        assert finished["verdict"] == "finished", finished["tests"]
        assert (into / "scaled_silu_triton.py").is_file()
