"""Clients of servers, and what their calls are answered with."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import ListRootsResult, PromptReference, ResourceTemplateReference, Root, TextContent
from pydantic import FileUrl

from pytorch_to_triton_server.serve import build_server
from pytorch_to_triton_server.settings import ServerSettings


@asynccontextmanager
async def kept_to(*folders: Path, **settings: Any) -> AsyncIterator[Client]:
    """A client of a server in this process that is given these folders."""
    async with Client(build_server(ServerSettings(allowed=folders, **settings))) as client:
        yield client


@asynccontextmanager
async def with_roots(*addresses: str) -> AsyncIterator[Client]:
    """A client that names its roots to a server that is given no folder."""

    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(address)) for address in addresses])

    async with Client(build_server(), mode="legacy", list_roots_callback=roots) as client:
        yield client


def serving_in(folder: Path, cache: Path) -> StdioServerParameters:
    """A server of its own in a folder."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "pytorch_to_triton_server", "serve"],
        env={"PYTORCH_TO_TRITON_CACHE": str(cache), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        cwd=folder,
    )


async def answered(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a result."""
    return content_of(await client.call_tool(tool, arguments))


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """What an error says, which is no defect."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    assert "defect" not in text_of(result)
    return text_of(result)


def content_of(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


def text_of(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def values(
    client: Client, ref: PromptReference | ResourceTemplateReference, name: str, begun: str = ""
) -> list[str]:
    """What completes an argument."""
    return (await client.complete(ref, {"name": name, "value": begun})).completion.values
