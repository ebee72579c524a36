"""The catalogue over MCP: stdio, or streamable HTTP on this machine only."""

import base64
import inspect
import json
import logging
import signal
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.server.mcpserver.resources import FileResource
from mcp.server.mcpserver.tools import Tool as ServedTool
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.compact import compact
from pytorch_to_triton_server.fit import fitted_text
from pytorch_to_triton_server.long_calls import LongCalls, open_long_calls
from pytorch_to_triton_server.names import brief
from pytorch_to_triton_server.stdio_transport import stdio
from pytorch_to_triton_server.tool import Tool, refusal_of

NAME = "pytorch-to-triton"
HOST = "127.0.0.1"
PATIENCE_SECONDS = 45.0
"""How long one request waits: clients give up after 60 s."""
INSTRUCTIONS = (
    "Turns PyTorch functions into Triton kernels and checks that kernels are right. Paths are relative to "
    "the folder in which the server runs. A call that takes over 45 s returns a job_id for the tool job."
)
PROMPT = """Convert {target} from PyTorch to Triton.

1. `device` shows what kernels run on here.
2. `convert` drafts a kernel in three stages and validates each. Where the file has no INPUTS and DIMS, \
declare the inputs: input ["x=float32[M,N]", "eps=1e-5"], dim ["M=1,7,256", "N=64,1000"].
3. If convert refuses, write the kernel file by hand: `reference` (PyTorch), the `@triton.jit` kernel, \
`run` with the signature of `reference`, INPUTS and DIMS. The resources kernel://NAME are examples.
4. `validate` the kernel file. A failed case shows where the wrong elements are and the likely cause; fix \
it and validate again until the verdict is passed.
5. Report the verdict and what was not tested (`skipped`), and claim no speed that was not measured."""


MOST_OF_AN_ERROR = 6000
"""Characters."""
DISK = "Check that the disk is not full, and that the folder and the cache are writable."
DEFECT = "The server's log has the traceback. Other calls are not affected."


class Cut(BaseModel):
    """What was left out of a long result."""

    left_out: list[str]
    whole: Annotated[str, Field(description="The file with the whole result, as JSON")]


class ToolAnswer(BaseModel):
    """What every tool's result has; the rest depends on the tool."""

    model_config = ConfigDict(extra="allow")

    summary: Annotated[str, Field(description="The result in a sentence or two")]
    next_step: Annotated[str, Field(description="What to do with this result")]
    cut: Annotated[Cut | None, Field(description="What was left out, if the result was too long")] = None


class ToolServer(MCPServer[LongCalls]):
    """An MCP server whose errors say how to correct the call."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[LongCalls, Any] | None = None
    ) -> Any:
        """As the SDK's. Raises ToolError with message and hint for a Refusal and for wrong arguments."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            raise ToolError(fitted_text(await self._why(error, name), MOST_OF_AN_ERROR)) from error

    async def run_stdio_async(self) -> None:
        """As the SDK's, but each message is answered."""
        lowlevel = self._lowlevel_server
        async with stdio() as (read, write):
            await lowlevel.run(read, write, lowlevel.create_initialization_options())

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[LongCalls, Any] | None = None,
    ) -> Any:
        """As the SDK's. Raises MCPError for a prompt or an argument that does not exist."""
        prompts = {prompt.name: prompt for prompt in await self.list_prompts()}
        if name not in prompts:
            raise invalid(f"There is no prompt {brief(name)}. The prompts are {', '.join(prompts)}.")
        known = [argument.name for argument in prompts[name].arguments or ()]
        unknown = [argument for argument in arguments or {} if argument not in known]
        if unknown:
            raise invalid(f"{name} has no argument {brief(unknown[0])}. It takes {', '.join(known)}.")
        return await super().get_prompt(name, arguments, context)

    async def read_resource(self, uri: Any, context: Context[LongCalls, Any] | None = None) -> Any:
        """As the SDK's. Raises ResourceNotFoundError, naming the resources that exist."""
        try:
            return await super().read_resource(uri, context)
        except ResourceNotFoundError as error:
            known = ", ".join(resource.uri for resource in await self.list_resources())
            text = f"There is no resource {brief(str(uri))}. The resources are {known}."
            raise ResourceNotFoundError(fitted_text(text, MOST_OF_AN_ERROR)) from error

    async def _why(self, error: ToolError, name: str) -> str:
        """What the caller did wrong, or which defect of this program ended the call."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        cause = error.__cause__
        if name not in tools:
            return str(BadInput(f"There is no tool {brief(name)}.", f"The tools are {', '.join(tools)}."))
        if isinstance(cause, Refusal):
            return str(cause)
        if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
            return str(refusal_of(cause, name, tools[name].input_schema["properties"]))
        if isinstance(cause, OSError):
            place = f" ({cause.filename})" if cause.filename else ""
            return f"{name} failed: {cause.strerror or cause}{place}.\n{DISK}"
        if isinstance(error, UnexpectedToolError):
            logging.getLogger(__name__).error("%s failed", name, exc_info=cause)
            return f"{name} failed because of a defect in {NAME}: {type(cause).__name__}: {cause}.\n{DEFECT}"
        return str(error)


def invalid(message: str) -> MCPError:
    """The protocol's error for what the caller got wrong."""
    return MCPError(code=INVALID_PARAMS, message=fitted_text(message, MOST_OF_AN_ERROR))


def build_server(patience: float = PATIENCE_SECONDS) -> ToolServer:
    """The server, not yet running; one request waits for `patience` seconds at most."""

    server = ToolServer(
        NAME,
        title="PyTorch to Triton",
        version=version(NAME),
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        lifespan=lambda _: open_long_calls(patience),
        tools=[*(served(tool) for tool in TOOLS), job_tool()],
    )
    server.prompt(name=NAME, title="Convert PyTorch to Triton")(prompt)
    for file in sorted(places.shipped("reference_kernels").glob("*.py")):
        server.add_resource(kernel_resource(file.stem))
    for file in sorted(places.shipped("docs_cache/guides").glob("*.md")):
        server.add_resource(guide_resource(file))
    return server


def serve_stdio() -> None:
    """Serve until stdin closes."""
    # The SDK waits in a read of stdin that nothing can interrupt; the worker's processes end with this one,
    # however it ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    build_server().run("stdio")


def serve_http(port: int) -> None:
    """Serve on http://127.0.0.1:PORT/mcp until SIGINT or SIGTERM."""
    build_server().run("streamable-http", host=HOST, port=port)


def served(tool: Tool) -> ServedTool:
    """A tool of the catalogue, with the arguments of its function and no others."""

    async def call(ctx: Context[LongCalls, Any], **arguments: Any) -> CallToolResult:
        calls = ctx.request_context.lifespan_context
        return answered(await calls.wait(calls.start(tool, arguments), ctx.report_progress), tool.name)

    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in tool.parameters]
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context[LongCalls, Any]
    )
    signature = inspect.Signature(
        [context, *keywords], return_annotation=Annotated[CallToolResult, ToolAnswer]
    )
    call.__signature__ = signature  # type: ignore[attr-defined]
    hints = ToolAnnotations(
        read_only_hint=tool.read_only, destructive_hint=tool.destructive, open_world_hint=tool.open_world
    )
    return strict(call, tool.name, tool.title, inspect.getdoc(tool.function) or "", hints)


def job_tool() -> ServedTool:
    """The tool that waits for a long call, or cancels it."""

    async def job(
        ctx: Context[LongCalls, Any],
        job_id: Annotated[str, Field(description="The job_id that the long call returned")],
        action: Annotated[
            Literal["wait", "cancel"], Field(description="wait: for up to 45 s; cancel: end the call")
        ] = "wait",
    ) -> Annotated[CallToolResult, ToolAnswer]:
        calls = ctx.request_context.lifespan_context
        found = calls.find(job_id)
        if action == "cancel":
            found.cancel()
        return answered(await calls.wait(found, ctx.report_progress), found.tool.name)

    about = (
        "Wait for a call that returned a job_id, or cancel it.\n\n"
        "Returns the call's own result, or the job_id again if it is still running. Cancelling this request "
        "also cancels the call."
    )
    hints = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    return strict(job, "job", "Wait for a long call", about, hints)


def strict(
    function: Callable[..., Any], name: str, title: str, description: str, hints: ToolAnnotations
) -> ServedTool:
    """An MCP tool that refuses unknown arguments; the SDK would drop them and run with the defaults."""
    tool = ServedTool.from_function(
        function, name=name, title=title, description=description, context_kwarg="ctx", annotations=hints
    )
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


def answered(result: BaseModel, tool: str) -> CallToolResult:
    """A result as structured content, and as text for clients that read only text, with its charts."""
    content = compact(result, tool)
    text = TextContent(type="text", text=json.dumps(content, ensure_ascii=False))
    return CallToolResult(content=[text, *pictures_of(result)], structured_content=content)


def pictures_of(result: BaseModel) -> list[ImageContent]:
    """The PNG files that a result names."""
    files: tuple[Path, ...] = getattr(result, "pictures", ())
    return [
        ImageContent(type="image", data=base64.b64encode(file.read_bytes()).decode(), mime_type="image/png")
        for file in files
    ]


def prompt(
    target: Annotated[str, Field(description="path.py:name of a function or nn.Module")] = "the function",
) -> str:
    """How to convert a PyTorch function with these tools."""
    return PROMPT.format(target=target)


def kernel_resource(name: str) -> FileResource:
    """A reference kernel's source."""
    return FileResource(
        uri=f"kernel://{name}",
        name=name,
        description="A validated kernel file: reference, Triton kernel, run, INPUTS and DIMS.",
        mime_type="text/x-python",
        path=places.shipped(f"reference_kernels/{name}.py"),
    )


def guide_resource(file: Path) -> FileResource:
    """A guide, as docs_read reads it."""
    return FileResource(
        uri=f"docs://guides/{file.stem}",
        name=f"guides/{file.stem}",
        description=file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# "),
        mime_type="text/markdown",
        path=file,
    )
