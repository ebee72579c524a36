"""Which folders a call over MCP may name: the server's own option, else what the client says it works in."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ListRootsRequest, ListRootsResult

from pytorch_to_triton_server.names import Boundary
from pytorch_to_triton_server.settings import ServerSettings

_SECONDS = 5.0


async def boundary_of(ctx: Context[Any, Any], settings: ServerSettings) -> Boundary:
    """The folders of --allow-dir; else the client's roots; else the current one."""
    return Boundary.around(settings.allowed or await client_roots(ctx) or (Path.cwd(),))


async def client_roots(ctx: Context[Any, Any]) -> tuple[Path, ...]:
    """The folders that a client names as its roots; empty where it names none, or does not answer."""
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return ()
    try:
        with anyio.fail_after(_SECONDS):
            # Newer protocols have no roots: the SDK's own method warns of that.
            session = ctx.request_context.session
            roots = (await session.send_request(ListRootsRequest(), ListRootsResult)).roots
    except (MCPError, TimeoutError):
        return ()
    return tuple(Path(unquote(urlparse(str(root.uri)).path)) for root in roots if is_file(str(root.uri)))


def is_file(uri: str) -> bool:
    """Whether a URI names a folder of this machine."""
    parts = urlparse(uri)
    return parts.scheme == "file" and parts.netloc in ("", "localhost")
