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
    Tool(validate, "Validate a Triton kernel", lambda result: result.verdict == "passed", idempotent=True),
    Tool(
        convert,
        "Convert PyTorch to Triton",
        lambda result: result.verdict == "converted",
        destructive=True,
        when_interrupted="Nothing was written, and convert starts anew. convert start and convert submit "
        "keep finished stages.",
    ),
    Tool(convert_session.convert_start, "Start a conversion in steps"),
    Tool(
        convert_session.convert_submit,
        "Submit a stage of a conversion",
        lambda result: result.verdict != "shut",
    ),
    Tool(convert_session.convert_status, "Look at a conversion in steps", read_only=True),
    Tool(convert_session.convert_list, "List conversions in steps", read_only=True),
    Tool(convert_session.convert_restore, "Go back to an earlier attempt", destructive=True, idempotent=True),
    Tool(
        convert_session.convert_finish,
        "Write the finished kernel",
        lambda result: result.verdict != "failed",
        destructive=True,
        idempotent=True,
    ),
    Tool(convert_session.convert_drop, "Remove a conversion in steps", destructive=True),
    Tool(
        benchmark,
        "Benchmark a Triton kernel",
        lambda result: result.verdict in ("faster", "estimated"),
        destructive=True,
    ),
    Tool(inspect, "Inspect compiled kernels", lambda result: result.verdict == "compiled", idempotent=True),
    Tool(audit, "Audit Triton code", lambda result: result.verdict != "faulty", destructive=True),
    Tool(device, "What kernels run on here", read_only=True),
    Tool(docs.docs_search, "Search the documentation", lambda result: bool(result.hits), read_only=True),
    Tool(docs.docs_read, "Read the documentation", read_only=True),
    Tool(
        docs.docs_fetch,
        "Fetch public documentation",
        lambda result: not result.failed,
        idempotent=True,
        open_world=True,
    ),
    Tool(docs.docs_status, "List the available documentation", read_only=True),
)
GROUPS = {
    "docs": "Search and read the documentation of the installed Triton, and the guides.",
    "convert": "Turn a PyTorch function or module into a Triton kernel file: all at once with "
    "`convert TARGET` (`convert all --help` lists its options), or step by step with start, submit and "
    "status.",
}
"""The help of each group of commands: tools whose names begin with the same word."""
