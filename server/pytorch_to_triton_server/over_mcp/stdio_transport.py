"""The SDK's stdio, with an answer to each line that the SDK takes for no message, or for a notification.

A client would otherwise wait until it times out: a lone surrogate (`\\ud800`), which several languages write,
or an id that is no whole number is enough.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pytorch_to_triton_server.over_mcp.fit import plain

Item = SessionMessage | Exception
_LONGEST_NUMBER = 400
"""Digits; a longer number is read as infinite."""
_NO_MESSAGE = "This is not a JSON-RPC 2.0 message."
_NO_ID = "This is a request without an id, or with one that is neither text nor a whole number."


@asynccontextmanager
async def stdio() -> AsyncIterator[tuple[ObjectReceiveStream[Item], Any]]:
    """Streams to read from and to write to, like those of the SDK's `stdio_server`."""
    async with stdio_server() as (lines, write), anyio.create_task_group() as group:
        sender, receiver = anyio.create_memory_object_stream[Item](0)

        async def forward() -> None:
            async with sender:
                async for item in lines:
                    read = read_again(item) if isinstance(item, ValidationError) else with_id(item)
                    answered = isinstance(read, SessionMessage) and isinstance(read.message, JSONRPCError)
                    await (write if answered else sender).send(read)

        group.start_soon(forward)
        yield receiver, write
        group.cancel_scope.cancel()


def with_id(item: Item) -> Item:
    """A message as it is; the error to answer a request with whose id the SDK dropped."""
    message = item.message if isinstance(item, SessionMessage) else None
    if isinstance(message, JSONRPCNotification) and not message.method.startswith("notifications/"):
        return _error(None, INVALID_REQUEST, _NO_ID)
    return item


def read_again(refused: ValidationError) -> SessionMessage:
    """The message that a line was meant to be, or the error to answer it with."""
    faults = refused.errors()
    if faults[0]["type"] != "json_invalid":
        return _error(_id_of(_line_of(faults)), INVALID_REQUEST, _NO_MESSAGE)
    try:
        value = plain(json.loads(faults[0]["input"], parse_int=_number))
    except (ValueError, RecursionError) as error:
        return _error(None, PARSE_ERROR, f"This is not readable JSON: {error}.")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValidationError:
        return _error(_id_of(value), INVALID_REQUEST, _NO_MESSAGE)


def _line_of(faults: list[ErrorDetails]) -> object:
    """The whole line as JSON: what lacks a field of one of the kinds of messages; None where nothing does."""
    kind_and_field = 2
    missing = (f["input"] for f in faults if f["type"] == "missing" and len(f["loc"]) == kind_and_field)
    return next(missing, None)


def _id_of(line: object) -> int | str | None:
    """The id to answer with. A response's is not: the client may wait for an answer of the same id."""
    if not isinstance(line, dict) or ("method" not in line and line.keys() & {"result", "error"}):
        return None
    found = line.get("id")
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _error(number: int | str | None, code: int, message: str) -> SessionMessage:
    data = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=data))


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)
