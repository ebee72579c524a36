"""Every tool of this project, once: MCP and the command line are two views of this tuple.

A tool is one async function in `tool_functions/`. Its signature, after the first parameter, is both its MCP
schema and its command; its docstring is the help of both. Importing this module loads none of the library
that the tools call.
"""

from pytorch_to_triton_server.tool import Tool
from pytorch_to_triton_server.tool_functions import convert_session, docs
from pytorch_to_triton_server.tool_functions.audit import audit
from pytorch_to_triton_server.tool_functions.benchmark import benchmark
from pytorch_to_triton_server.tool_functions.convert import convert
from pytorch_to_triton_server.tool_functions.device import device
from pytorch_to_triton_server.tool_functions.inspect import inspect
from pytorch_to_triton_server.tool_functions.validate import validate

TOOLS = (
    Tool(
        name="validate",
        title="Validate a Triton kernel",
        function=validate,
        is_yes=lambda verdict: verdict.verdict == "passed",
        idempotent=True,
    ),
    Tool(
        name="convert",
        title="Convert PyTorch to Triton",
        function=convert,
        is_yes=lambda conversion: conversion.verdict == "converted",
        destructive=True,
    ),
    Tool(
        name="convert_start",
        title="Start a conversion in steps",
        function=convert_session.convert_start,
    ),
    Tool(
        name="convert_submit",
        title="Submit a stage of a conversion",
        function=convert_session.convert_submit,
        is_yes=lambda session: session.verdict != "shut",
    ),
    Tool(
        name="convert_status",
        title="Look at a conversion in steps",
        function=convert_session.convert_status,
        read_only=True,
    ),
    Tool(
        name="convert_list",
        title="List conversions in steps",
        function=convert_session.convert_list,
        read_only=True,
    ),
    Tool(
        name="convert_restore",
        title="Go back to an earlier attempt",
        function=convert_session.convert_restore,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        name="convert_finish",
        title="Write the finished kernel",
        function=convert_session.convert_finish,
        is_yes=lambda result: result.verdict != "failed",
        destructive=True,
        idempotent=True,
    ),
    Tool(
        name="convert_drop",
        title="Remove a conversion in steps",
        function=convert_session.convert_drop,
        destructive=True,
    ),
    Tool(
        name="benchmark",
        title="Benchmark a Triton kernel",
        function=benchmark,
        is_yes=lambda result: result.verdict in ("faster", "estimated"),
        destructive=True,
    ),
    Tool(
        name="inspect",
        title="Inspect compiled kernels",
        function=inspect,
        is_yes=lambda inspection: inspection.verdict == "compiled",
        idempotent=True,
    ),
    Tool(
        name="audit",
        title="Audit Triton code",
        function=audit,
        is_yes=lambda report: report.verdict != "faulty",
        destructive=True,
    ),
    Tool(name="device", title="What kernels run on here", function=device, read_only=True),
    Tool(
        name="docs_search",
        title="Search the documentation",
        function=docs.docs_search,
        is_yes=lambda result: bool(result.hits),
        read_only=True,
    ),
    Tool(name="docs_read", title="Read the documentation", function=docs.docs_read, read_only=True),
    Tool(
        name="docs_fetch",
        title="Fetch public documentation",
        function=docs.docs_fetch,
        is_yes=lambda report: not report.failed,
        idempotent=True,
        open_world=True,
    ),
    Tool(
        name="docs_status",
        title="List the available documentation",
        function=docs.docs_status,
        read_only=True,
    ),
)
GROUPS = {
    "docs": "Search and read the documentation of the installed Triton, and the guides.",
    "convert": "Turn a PyTorch function or module into a Triton kernel file: `convert TARGET` all at once "
    "(`convert all --help` lists its options), or in steps, a gate each: start, submit, status.",
}
"""The help of each group of commands: tools whose names begin with the same word."""
