"""Texts in the words of a caller over MCP: arguments and tools by their names, not as a shell spells them."""

import re

from pytorch_to_triton_server.catalogue import TOOLS

_ARGUMENTS = {parameter.name for tool in TOOLS for parameter in tool.parameters}
_OPTION = re.compile(r"--([a-z][a-z-]*[a-z])\b")
_COMMANDS = {tool.name.replace("_", " "): tool.name for tool in TOOLS if "_" in tool.name}
_COMMAND = re.compile(rf"\b({'|'.join(_COMMANDS)})\b")
_TYPED = re.compile(r"pytorch-to-triton [a-z]")
"""A line with a command to be typed stays as it is."""


def in_callers_words(text: str) -> str:
    """`--into` becomes `into`, `convert start` becomes `convert_start`, except in commands to be typed."""
    return "\n".join(line if _TYPED.search(line) else _reword(line) for line in text.split("\n"))


def _reword(line: str) -> str:
    line = _OPTION.sub(_argument, line)
    return _COMMAND.sub(lambda match: _COMMANDS[match[1]], line)


def _argument(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    return name if name in _ARGUMENTS else option[0]
