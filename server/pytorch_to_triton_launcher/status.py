"""What `setup_status` answers: the only tool there is until the environment is ready."""

from __future__ import annotations

import json
import time
from typing import Any

from pytorch_to_triton_launcher.environment import own_python_hint
from pytorch_to_triton_launcher.making import Making
from pytorch_to_triton_launcher.problem import Problem

TOOL = "setup_status"
LONGEST_WAIT = 45.0
"""Seconds; clients give up after 60."""
DEFINITION: dict[str, Any] = {
    "name": TOOL,
    "title": "How far the set-up is",
    "description": (
        "Say how far the set-up of the tools' Python environment is. It is made once, in minutes; then the "
        "other tools take this one's place. Returns the stage, the last line of the log and the log's path."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "wait_seconds": {
                "type": "number",
                "minimum": 0,
                "maximum": LONGEST_WAIT,
                "default": 0,
                "description": "How long to wait for the set-up to end before answering",
            }
        },
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "next_step": {"type": "string"},
            "status": {"enum": ["running", "ready", "failed"]},
            "stage": {"type": "string"},
            "seconds": {"type": "number"},
            "last_log_line": {"type": "string"},
            "log": {"type": ["string", "null"]},
        },
        "required": ["summary", "next_step", "status", "stage", "seconds", "last_log_line", "log"],
    },
    "annotations": {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}


class Status:
    """The set-up as a client sees it; `problem` is set if it failed, `is_ready` once the tools are there."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._began = time.monotonic()
        self.problem: Problem | None = None
        self.is_ready = False

    def now(self) -> dict[str, Any]:
        """The fields of the tool's output."""
        progress = self._making.progress
        seconds = round(time.monotonic() - self._began, 1)
        status, summary, next_step = self._told(progress.stage, seconds)
        return {
            "summary": summary,
            "next_step": next_step,
            "status": status,
            "stage": progress.stage,
            "seconds": seconds,
            "last_log_line": progress.last_line()[:500],
            "log": str(progress.log) if progress.log else None,
        }

    def _told(self, stage: str, seconds: float) -> tuple[str, str, str]:
        if self.problem is not None:
            return "failed", self.problem.message, f"{self.problem.hint} Then restart this MCP server."
        if self.is_ready:
            return "ready", f"The environment is ready, after {seconds:.0f} s.", "List the tools again."
        summary = f"The set-up has been running for {seconds:.0f} s: {stage}. The tools are not there yet."
        return (
            "running",
            summary,
            f"Call {TOOL} with wait_seconds {LONGEST_WAIT:.0f} until the status is ready; the other tools "
            f"appear then. {own_python_hint()}",
        )


def as_call_result(fields: dict[str, Any]) -> dict[str, Any]:
    """A tool's result in the protocol's form."""
    text = json.dumps(fields, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": fields, "isError": False}


def as_call_error(text: str) -> dict[str, Any]:
    """A tool's error in the protocol's form."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
