"""An assistant that knows nothing but what the tools say takes a function to a finished kernel."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

pytestmark = pytest.mark.anyio
SOFTMAX = """
import torch


def softmax(x):
    return torch.softmax(x, dim=-1)
"""
MOST_TOKENS = 25_000
CHARACTERS_A_TOKEN = 3.5
"""Of JSON with code in it; less than most tokenizers need."""
_NAMED = re.compile(r"\b(convert_\w+|validate|job)\b")


class Assistant:
    """Calls tools, and counts what comes back."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.characters = 0
        self.called: list[str] = []

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers, waited for as it says."""
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert result.structured_content is not None
        self.called.append(tool)
        self.characters += len(json.dumps(result.structured_content))
        if result.structured_content.get("status") == "running":
            return await self.call("job", job_id=result.structured_content["job_id"])
        return result.structured_content


def tool_named_in(text: str) -> str:
    """The tool that a next step names first."""
    found = _NAMED.search(text)
    assert found is not None, text
    return found[1]


@pytest.mark.corpora
async def test_a_softmax_is_finished_by_following_the_next_steps(client: Client, tmp_path: Path) -> None:
    target = tmp_path / "ops.py"
    target.write_text(SOFTMAX)
    into = tmp_path / "result"
    assistant = Assistant(client)
    answer = await assistant.call(
        "convert_start",
        target=f"{target}:softmax",
        input=["x=float32|bfloat16[M,N]"],
        dim=["M=1,7,64", "N=1,33,1000"],
        into=str(tmp_path / "session"),
        device="interpreter",
    )
    session = str(answer["session"])
    for _ in range(8):
        tool = tool_named_in(answer["next_step"])
        more = {"into": str(into)} if tool == "convert_finish" else {}
        answer = await assistant.call(tool, session=session, **more)
        if tool == "convert_finish":
            break
    assert answer["verdict"] == "finished", answer
    assert answer["tests"]["passed"]
    assert (into / "softmax_triton.py").is_file()
    assert assistant.called.count("convert_submit") == 3
    assert assistant.characters / CHARACTERS_A_TOKEN < MOST_TOKENS
