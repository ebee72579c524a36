"""The SDK's stdio, with an answer to each line that the SDK takes for no message, or for a notification.

A client would otherwise wait until it times out: a lone surrogate (`\\ud800`), which several languages write,
or an id that is no whole number is enough.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

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
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pytorch_to_triton_server.over_mcp.fit import plain

Item = SessionMessage | Exception
EARLIER_LINES = "PYTORCH_TO_TRITON_EARLIER_LINES"
"""Set by the launcher that became this process: the descriptor of a file with what it read of stdin."""
_LONGEST_NUMBER = 400
"""Digits; a longer number is read as infinite."""
_NO_MESSAGE = "This is not a JSON-RPC 2.0 message."
_NO_ID = "This is a request without an id, or with one that is neither text nor a whole number."


@asynccontextmanager
async def stdio() -> AsyncIterator[tuple[ObjectReceiveStream[Item], Any]]:
    """Streams to read from and to write to, like those of the SDK's `stdio_server`."""
    earlier = [parse_line(line) for line in lines_read_before()]
    async with stdio_server() as (lines, write), anyio.create_task_group() as group:
        sender, receiver = anyio.create_memory_object_stream[Item](0)

        async def take(item: Item) -> None:
            read = read_again(item) if isinstance(item, ValidationError) else with_id(item)
            answered = isinstance(read, SessionMessage) and isinstance(read.message, JSONRPCError)
            await (write if answered else sender).send(read)

        async def forward() -> None:
            async with sender:
                for item in earlier:
                    await take(item)
                async for item in lines:
                    await take(item)

        group.start_soon(forward)
        yield receiver, AnswersAfterHandshake(write, handshake_in(earlier))
        group.cancel_scope.cancel()


@dataclass
class AnswersAfterHandshake:
    """Sends messages on, but for the answer to a handshake that the launcher has answered."""

    stream: Any
    handshake: int | str | None
    """Its id; None where there is none to leave out."""

    async def send(self, item: SessionMessage) -> None:
        """To the client, unless it has had it."""
        if self.handshake is not None and getattr(item.message, "id", None) == self.handshake:
            self.handshake = None
        else:
            await self.stream.send(item)

    async def aclose(self) -> None:
        """As the SDK's streams."""
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def lines_read_before() -> list[bytes]:
    """What the launcher read of stdin before it became this process."""
    descriptor = os.environ.pop(EARLIER_LINES, None)
    if descriptor is None:
        return []
    with open(int(descriptor), "rb") as file:
        return file.readlines()


def parse_line(line: bytes) -> Item:
    """A line as the SDK hands it over."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error


def handshake_in(items: list[Item]) -> int | str | None:
    """The id of the `initialize` among lines that the launcher read: it never leaves one unanswered."""
    messages = [item.message for item in items if isinstance(item, SessionMessage)]
    requests = [message for message in messages if isinstance(message, JSONRPCRequest)]
    return next((request.id for request in requests if request.method == "initialize"), None)


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
    identifier = line.get("id")
    return identifier if isinstance(identifier, int | str) and not isinstance(identifier, bool) else None


def _error(number: int | str | None, code: int, message: str) -> SessionMessage:
    data = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=data))


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)
