"""As much of MCP as a server speaks that is not there yet: the handshake in both eras, and one tool."""

from __future__ import annotations

import json
from typing import Any

from pytorch_to_triton_launcher import checkout
from pytorch_to_triton_launcher.status import (
    DEFINITION,
    LONGEST_WAIT,
    TOOL,
    Status,
    as_call_error,
    as_call_result,
)

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION = -32022
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": False},
    "completions": {},
}
"""What the real server will have: a client asks for no more than it was told of at the start."""
CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
"""What a client of the modern era asks to be told, and how it is told."""
INSTRUCTIONS = (
    "Turns PyTorch functions into Triton kernels and checks that kernels are right. Its Python environment "
    f"is being set up, which takes minutes the first time; {TOOL} tells how far that is, and the other "
    "tools appear when it is done. Paths are relative to the folder in which the server runs."
)
_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}


def parsed(line: bytes) -> Any:
    """A message; None for what is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def is_modern(message: dict[str, Any]) -> bool:
    """Whether a request carries its protocol version itself, as those without a handshake do."""
    return VERSION_KEY in _meta(message)


def error(number: Any, code: int, text: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error."""
    described = {"code": code, "message": text}
    return {
        "jsonrpc": "2.0",
        "id": number,
        "error": described if data is None else {**described, "data": data},
    }


def answer(message: dict[str, Any], status: Status) -> dict[str, Any]:
    """The answer to a request that asks for nothing to come later."""
    number, method = message.get("id"), message["method"]
    modern = is_modern(message)
    if modern and _meta(message)[VERSION_KEY] not in MODERN_VERSIONS:
        known = {"supported": list(MODERN_VERSIONS), "requested": _meta(message)[VERSION_KEY]}
        return error(number, UNSUPPORTED_VERSION, "This protocol version is not supported.", known)
    if method == "tools/call" and not isinstance(_parameters(message).get("name"), str):
        return error(number, INVALID_PARAMS, "tools/call wants the name of a tool.")
    result = _result(message, method, status)
    if result is None:
        return error(
            number, METHOD_NOT_FOUND, f"{method} is not there before the set-up is done: see {TOOL}."
        )
    if modern:
        result = {**result, "resultType": "complete", "_meta": {SERVER_KEY: _server()}}
    return {"jsonrpc": "2.0", "id": number, "result": result}


def may_ask_status(line: bytes) -> bool:
    """Whether a line is worth parsing for a call of the launcher's own tool."""
    return TOOL.encode() in line


def asks_status(message: dict[str, Any]) -> bool:
    """Whether a request calls the launcher's own tool."""
    return message.get("method") == "tools/call" and _parameters(message).get("name") == TOOL


def wait_of(message: dict[str, Any]) -> float:
    """For how many seconds a request may be held back until the set-up has ended."""
    arguments = _parameters(message).get("arguments") if asks_status(message) else None
    seconds = arguments.get("wait_seconds") if isinstance(arguments, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return 0.0
    return min(max(float(seconds), 0.0), LONGEST_WAIT)


def acknowledged(message: dict[str, Any]) -> dict[str, Any]:
    """The first message on the stream of changes that a modern client opens."""
    wanted = _parameters(message).get("notifications")
    honored = {name: True for name in CHANGES if isinstance(wanted, dict) and wanted.get(name) is True}
    return _notification(
        "notifications/subscriptions/acknowledged", {"notifications": honored}, message.get("id")
    )


def changes(subscriptions: list[dict[str, Any]], *, unasked: bool) -> list[dict[str, Any]]:
    """That the lists have changed: to each stream what it asked for, else to an older client everything."""
    told = []
    for message in subscriptions:
        honored = acknowledged(message)["params"]["notifications"]
        told += [_notification(CHANGES[name], {}, message.get("id")) for name in honored]
    if unasked:
        told += [{"jsonrpc": "2.0", "method": method} for method in CHANGES.values()]
    return told


def _result(message: dict[str, Any], method: str, status: Status) -> dict[str, Any] | None:
    if method == "initialize":
        asked = _parameters(message).get("protocolVersion")
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {"protocolVersion": version, "serverInfo": _server(), **_introduction()}
    if method == "server/discover":
        return {"supportedVersions": list(MODERN_VERSIONS), **_introduction(), **_UNCACHED}
    if method == "tools/call":
        return _called(_parameters(message)["name"], status)
    return {
        "ping": {},
        "logging/setLevel": {},
        "tools/list": {"tools": [DEFINITION], **_UNCACHED},
        "prompts/list": {"prompts": [], **_UNCACHED},
        "resources/list": {"resources": [], **_UNCACHED},
        "resources/templates/list": {"resourceTemplates": [], **_UNCACHED},
    }.get(method)


def _called(tool: str, status: Status) -> dict[str, Any]:
    now = status.now()
    if tool == TOOL:
        return as_call_result(now)
    return as_call_error(f"{tool[:80]} is not there yet. {now['summary']}\n{now['next_step']}")


def _introduction() -> dict[str, Any]:
    return {"capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}


def _server() -> dict[str, str]:
    return {"name": checkout.NAME, "title": "PyTorch to Triton", "version": checkout.version()}


def _notification(method: str, parameters: dict[str, Any], subscription: Any) -> dict[str, Any]:
    tagged = {**parameters, "_meta": {SUBSCRIPTION_KEY: subscription}}
    return {"jsonrpc": "2.0", "method": method, "params": tagged}


def _parameters(message: dict[str, Any]) -> dict[str, Any]:
    found = message.get("params")
    return found if isinstance(found, dict) else {}


def _meta(message: dict[str, Any]) -> dict[str, Any]:
    found = _parameters(message).get("_meta")
    return found if isinstance(found, dict) else {}
