"""The SDK's stdio, with an answer to each message that its JSON parser refuses.

A client would otherwise wait until it times out: a lone surrogate (`\\ud800`), which several languages write,
is enough.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from pytorch_to_triton_server.over_mcp.fit import plain

Item = SessionMessage | Exception
_LONGEST_NUMBER = 400
"""Digits; a longer number is read as infinite."""


@asynccontextmanager
async def stdio() -> AsyncIterator[tuple[ObjectReceiveStream[Item], Any]]:
    """Streams to read from and to write to, like those of the SDK's `stdio_server`."""
    async with stdio_server() as (lines, write), anyio.create_task_group() as group:
        sender, receiver = anyio.create_memory_object_stream[Item](0)

        async def forward() -> None:
            async with sender:
                async for item in lines:
                    read = read_again(item) if isinstance(item, ValidationError) else item
                    answered = isinstance(read, SessionMessage) and isinstance(read.message, JSONRPCError)
                    await (write if answered else sender).send(read)

        group.start_soon(forward)
        yield receiver, write
        group.cancel_scope.cancel()


def read_again(refused: ValidationError) -> Item:
    """The message that a line was meant to be, or the error to answer it with."""
    fault = refused.errors()[0]
    if fault["type"] != "json_invalid":
        return refused
    try:
        value = plain(json.loads(fault["input"], parse_int=_number))
    except (ValueError, RecursionError) as error:
        return _error(None, PARSE_ERROR, f"This is not readable JSON: {error}.")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValidationError:
        number = value.get("id") if isinstance(value, dict) else None
        known = number if isinstance(number, int | str) else None
        return _error(known, INVALID_REQUEST, "This is not a JSON-RPC 2.0 message.")


def _error(number: int | str | None, code: int, message: str) -> SessionMessage:
    data = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=data))


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)
