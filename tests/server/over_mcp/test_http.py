"""Over HTTP the server answers who sends the token, from this machine, and nobody else."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.serve import chosen_token

pytestmark = pytest.mark.anyio
TOKEN = "a-token-of-more-than-twenty-characters"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
SECONDS_TO_START = 180.0


@contextmanager
def serving(cache: Path, **environment: str) -> Iterator[tuple[str, list[str]]]:
    """A real server's address, and what it printed as it started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytorch_to_triton_server", "serve", "--http", "--port", str(port)],
        env=os.environ | {"PYTORCH_TO_TRITON_CACHE": str(cache)} | environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = f"http://127.0.0.1:{port}/mcp"
        yield address, printed_at_start(process, address)
    finally:
        process.terminate()
        process.communicate(timeout=120)


def printed_at_start(process: subprocess.Popen[str], address: str) -> list[str]:
    """The two lines of a server that answers; where it does not, the test fails with its stderr."""
    assert process.stderr is not None
    limit = Timer(SECONDS_TO_START, process.kill)
    limit.start()
    printed = [process.stderr.readline().strip() for _ in range(2)]
    as_usual = printed[0].startswith("Serving on ") and printed[1].startswith("Authorization: Bearer ")
    answers = as_usual and answers_while_it_runs(process, address)
    limit.cancel()
    if not answers:
        process.terminate()
        pytest.fail("\n".join(["The server did not start:", *printed, process.stderr.read()]))
    return printed


def answers_while_it_runs(process: subprocess.Popen[str], address: str) -> bool:
    while process.poll() is None:
        # It says where it serves before it listens there.
        with suppress(httpx.TransportError), httpx.Client(transport=httpx.HTTPTransport(retries=3)) as client:
            client.get(address)
            return True
    return False


def status_of(address: str, **headers: str) -> int:
    return httpx.post(address, json=INITIALIZE, headers=ACCEPT | headers).status_code


async def test_only_requests_with_the_token_and_of_this_machine_are_answered(cache: Path) -> None:
    with serving(cache, PYTORCH_TO_TRITON_TOKEN=TOKEN) as (address, printed):
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert printed == [f"Serving on {address}", f"Authorization: Bearer {TOKEN}"]
        assert status_of(address) == 401
        assert status_of(address, Authorization="Bearer wrong") == 401
        assert status_of(address, **bearer, Host="evil.example") == 421
        assert status_of(address, **bearer, Origin="https://evil.example") == 403
        assert status_of(address, **bearer) == 200
        async with (
            create_mcp_http_client(headers=bearer) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            result = await client.call_tool("docs_read", {"name": "guides/masks"})
            assert not result.is_error, result.content


def test_without_a_token_set_each_start_makes_another_and_one_that_is_easily_guessed_is_refused() -> None:
    tokens = {chosen_token({}) for _ in range(2)}
    assert len(tokens) == 2
    assert min(map(len, tokens)) > 40
    for token in ("", "short", "with spaces in between it is no token"):
        with pytest.raises(BadInput, match="PYTORCH_TO_TRITON_TOKEN is not a usable token"):
            chosen_token({"PYTORCH_TO_TRITON_TOKEN": token})
