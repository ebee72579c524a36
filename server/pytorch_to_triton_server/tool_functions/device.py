"""The tool that reports the machine: device."""

from typing import TYPE_CHECKING

from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton_server.machine import Machine


async def device(call: ToolCall) -> "Machine":
    """Show what this machine has: Python, torch, Triton, GPUs, and what `auto` chooses."""
    from pytorch_to_triton_server.machine import describe_machine

    return await describe_machine(call.worker, call.python)
