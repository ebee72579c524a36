"""Each line on stdin is answered, even one that the SDK's JSON parser refuses."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

import psutil
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from pytorch_to_triton_server.over_mcp.stdio_transport import EARLIER_LINES, read_again, with_id
from tests.server.launched import HANDSHAKE, conversation


def message_of(line: str) -> Any:
    with pytest.raises(ValidationError) as refused:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    read = read_again(refused.value)
    assert isinstance(read, SessionMessage)
    return read.message


def answered_as_invalid(line: str, number: int | str | None) -> None:
    """The line's answer is an error of that id, null where None."""
    try:
        read = with_id(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
    except ValidationError as refused:
        read = read_again(refused)
    assert isinstance(read, SessionMessage)
    assert isinstance(read.message, JSONRPCError)
    assert (read.message.id, read.message.error.code) == (number, INVALID_REQUEST)


def request(query: str) -> str:
    """`query` as it stands in JSON."""
    return f'{{"jsonrpc": "2.0", "id": 7, "method": "m", "params": {{"query": {query}}}}}'


def test_a_message_with_a_lone_surrogate_or_a_huge_number_is_read() -> None:
    for query, read in (
        ('"a \\ud800 b"', "a \\ud800 b"),
        ("9" * 5000, "inf"),
        ('"x' + "\\udc00" * 3 + '"', "x" + "\\udc00" * 3),
    ):
        message = message_of(request(query))
        assert isinstance(message, JSONRPCRequest)
        assert (message.id, message.params) == (7, {"query": read})


def test_a_line_that_is_no_message_is_answered_with_an_error_of_its_id() -> None:
    for line in ("{", "", "\ufffd\ufffd{}", request("[" * 50_000 + "]" * 50_000)):
        message = message_of(line)
        assert isinstance(message, JSONRPCError)
        assert (message.id, message.error.code) == (None, PARSE_ERROR)
    message = message_of('{"id": 9, "text": "\\ud800"}')
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.code) == (9, INVALID_REQUEST)


NO_MESSAGES: tuple[tuple[str, int | str | None], ...] = (
    ('"id": 7, "method": "tools/list", "params": []', 7),
    ('"id": "seven", "method": "tools/list", "params": "x"', "seven"),
    ('"id": 7, "method": 5', 7),
    ('"id": 7', 7),
    ('"method": "notifications/initialized", "params": []', None),
    ('"id": true, "method": "tools/list", "params": []', None),
    ('"id": 1, "result": 5', None),
    ('"id": {}, "method": "tools/list"', None),
    ('"id": 1.5, "method": "tools/list"', None),
    ('"id": null, "method": "tools/list"', None),
    ('"id": true, "method": "tools/list"', None),
    ('"method": "tools/list"', None),
)
OF_ANOTHER_PROTOCOL: tuple[tuple[str, int | None], ...] = (
    ('{"id": 7, "method": "tools/list"}', 7),
    ('{"jsonrpc": "1.0", "id": 7, "method": "tools/list"}', 7),
    ('[{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}]', None),
    ("5", None),
    ('"text \\ud800"', None),
    ('{"jsonrpc": "1.0", "id": true, "method": "\\ud800"}', None),
)


def test_json_that_is_no_message_or_of_another_protocol_is_answered_as_an_invalid_request() -> None:
    for fields, number in NO_MESSAGES:
        answered_as_invalid(f'{{"jsonrpc": "2.0", {fields}}}', number)
    for line, number in OF_ANOTHER_PROTOCOL:
        answered_as_invalid(line, number)


def test_a_notification_is_passed_on() -> None:
    message = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
    item = SessionMessage(message)
    assert with_id(item) is item


DEEP = 50_000
MOST_BYTES = 600 << 20


def test_the_server_answers_such_lines_and_keeps_running() -> None:
    lines = (
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
        '"capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}}',
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "validate", '
        '"arguments": {"kernel": "half \\ud800.py"}}}',
        "{",
        '{"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": []}',
        '{"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}',
        request('{"a":' * DEEP + "1" + "}" * DEEP),
        "[" * DEEP,
        '{"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {"name": "' + "x" * 1_000_000 + '"}}',
        "\x00\x01\x02",
        "",
        '{"jsonrpc": "2.0", "id": 3, "method": "tools/list"}',
    )
    command = [sys.executable, "-m", "pytorch_to_triton_server", "serve"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write("\n".join(lines) + "\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(11)]
        assert psutil.Process(server.pid).memory_info().rss < MOST_BYTES
        server.stdin.close()
        assert server.wait(20) == 0
        assert "Traceback" not in server.stderr.read()
    by_id = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    assert "does not exist" in by_id[2]["result"]["content"][0]["text"]
    assert by_id[4]["error"]["code"] == INVALID_REQUEST
    without_id = [answer["error"]["code"] for answer in answers if answer["id"] is None]
    assert without_id == [PARSE_ERROR, INVALID_REQUEST, *[PARSE_ERROR] * 4]
    assert by_id[10]["result"]["isError"]
    assert len(by_id[3]["result"]["tools"]) > 5


def test_what_the_launcher_has_read_comes_first_and_its_handshake_is_not_answered_again() -> None:
    earlier = [
        {"id": 1, "method": "initialize", "params": HANDSHAKE},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "prompts/list"},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in earlier]
    command = [sys.executable, "-m", "pytorch_to_triton_server", "serve"]
    with tempfile.TemporaryFile() as file:
        file.write("\n".join([*lines, "{", ""]).encode())
        file.seek(0)
        variables = {**os.environ, EARLIER_LINES: str(file.fileno())}
        with conversation(command, variables, file.fileno()) as client:
            client.send(id=1, method="ping")
            answers = {answer["id"]: answer for answer in (client.receive() for _ in range(3))}
    assert answers[1]["result"] == {}
    assert answers[2]["result"]["prompts"]
    assert answers[None]["error"]["code"] == PARSE_ERROR
