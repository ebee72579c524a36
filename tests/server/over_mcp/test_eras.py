"""A conversion from its start to the finished files, by clients of both eras, in memory and over stdio.

They know nothing but what the tools say: each call is the one that the answer before it names.
"""

import json
import re
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
MOST_CHARACTERS = 87_500
"""Of JSON with code in it: 25,000 tokens, of at least 3.5 characters each."""


def tool_named_in(text: str) -> str:
    """The tool that a next step names first."""
    named = re.search(r"\b(convert_\w+|validate|job)\b", text)
    assert named is not None, text
    return named[1]


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
        answer, steps, characters = started, [""], len(json.dumps(started))
        while steps[-1] != "convert_finish":
            steps.append(tool_named_in(answer["next_step"]))
            more = {"into": str(into)} if steps[-1] == "convert_finish" else {}
            answer = await answer_of(client, steps[-1], session=str(session), **more)
            characters += len(json.dumps(answer))
        assert steps[1:] == [*["convert_submit"] * 3, "convert_finish"]
        assert answer["verdict"] == "finished", answer["tests"]
        assert characters < MOST_CHARACTERS
        listed = await answer_of(client, "convert_list", below=str(tmp_path))
        assert str(session) in json.dumps(listed)
        assert (into / "scaled_silu_triton.py").is_file()
