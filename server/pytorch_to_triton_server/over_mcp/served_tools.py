"""The tools of the catalogue as MCP's, and the tool for calls that take long."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool as ServedTool
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.over_mcp.answers import Detail, answer_call
from pytorch_to_triton_server.over_mcp.kept_calls import KeptCall
from pytorch_to_triton_server.over_mcp.long_calls import Calling, LongCalls
from pytorch_to_triton_server.over_mcp.output_schemas import output_schema
from pytorch_to_triton_server.over_mcp.roots import boundary_of
from pytorch_to_triton_server.settings import ServerSettings
from pytorch_to_triton_server.tool import Tool

Ctx = Context[LongCalls, Any]
Action = Literal["wait", "status", "list", "cancel"]
_SAME_AS_FIRST = ("path", "file", "function", "target", "kernel")
"""Names that models are seen to use for what a tool is given first."""
DISPENSABLE = ("title", "anyOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_DETAIL = inspect.Parameter(
    "detail",
    inspect.Parameter.KEYWORD_ONLY,
    default="brief",
    annotation=Detail,
)


def serve_tool(tool: Tool, settings: ServerSettings) -> ServedTool:
    """A tool with the arguments of its function, and how much of the result is wanted."""

    async def call(ctx: Ctx, detail: Detail = "brief", **arguments: Any) -> CallToolResult:
        calls = ctx.request_context.lifespan_context
        calling = Calling(tool, await boundary_of(ctx, settings), settings.python, detail)
        result = await calls.wait(calls.start(calling, arguments), ctx.report_progress, cancels=True)
        return answer_call(result, tool.name, detail, images=settings.images)

    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in tool.parameters]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Ctx)
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [context, *keywords, _DETAIL], return_annotation=CallToolResult
    )
    hints = ToolAnnotations(
        read_only_hint=tool.read_only,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent or tool.read_only,
        open_world_hint=tool.open_world,
    )
    made = strict(call, tool.name, tool.title, inspect.getdoc(tool.function) or "", hints)
    made.fn_metadata.output_schema = output_schema(tool.name)
    return made


def job_tool(settings: ServerSettings) -> ServedTool:
    """The tool that waits for a long call, lists those there are, or cancels one."""

    async def job(
        ctx: Ctx,
        job_id: Annotated[
            str | None, Field(description="The job_id that the long call returned; not needed to list")
        ] = None,
        action: Annotated[
            Action,
            Field(description="wait: for up to 45 s; status: as it is now; list: all jobs; cancel: end it"),
        ] = "wait",
    ) -> CallToolResult:
        calls = ctx.request_context.lifespan_context
        if action == "list":
            return answer_call(calls.list_calls(), "job")
        if job_id is None:
            raise BadInput(f"{action} needs a job_id.", 'Call job with action "list" to see the jobs.')
        call = calls.find(job_id)
        if isinstance(call, KeptCall):
            return answer_call(call.kept_result(), call.tool, call.detail, images=settings.images)
        if action == "cancel":
            call.cancel()
        if action != "status":
            await calls.wait(call, ctx.report_progress, cancels=False)
        return answer_call(call.answer(), call.tool.name, call.calling.detail, images=settings.images)

    about = (
        "Wait for a call that returned a job_id, look at it, or cancel it; or list the calls.\n\n"
        "Returns the call's own result, or the job_id again if it is still running. A job goes on if the "
        "client stops waiting for it, and its result is found again by a server that is started later."
    )
    hints = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    made = strict(job, "job", "Wait for a long call", about, hints)
    made.fn_metadata.output_schema = {"type": "object", "required": ["summary", "next_step"]}
    return made


def strict(
    function: Callable[..., Any], name: str, title: str, description: str, hints: ToolAnnotations
) -> ServedTool:
    """An MCP tool that refuses unknown arguments; the SDK would drop them and run with the defaults."""
    tool = ServedTool.from_function(
        function, name=name, title=title, description=description, context_kwarg="ctx", annotations=hints
    )
    arguments: type[BaseModel] = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = compact(arguments.model_json_schema(by_alias=True))
    return tool


def compact(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of arguments without what a model can do without: it reads all of them before its first call.

    An argument's title is its name again; one that may be null, is empty or false by default, or has its
    first choice as default, may as well be left out. What is beyond its bounds is refused.
    """
    properties = {name: compact_field(field) for name, field in schema["properties"].items()}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": properties, **required}


def compact_field(field: dict[str, Any]) -> dict[str, Any]:
    """One argument's schema, as `compact` has it."""
    choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
    merged = {**(choices[0] if choices else {}), **field}
    kept = {key: value for key, value in merged.items() if key not in DISPENSABLE}
    if kept.get("default", True) in (None, "", (), [], False, *kept.get("enum", ())[:1]):
        del kept["default"]
    return kept


def with_own_names(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, the first one under its own name where it was given under another usual one.

    `path` of validate is its `kernel`; of a tool that takes a list, one path may stand alone.
    """
    properties = schema["properties"]
    first = next(iter(properties), None)
    if first is None or first not in schema.get("required", ()):
        return dict(arguments)
    given = dict(arguments)
    meant = [name for name in _SAME_AS_FIRST if name in given and name not in properties]
    if first not in given and len(meant) == 1:
        given = {first: given.pop(meant[0]), **given}
    if properties[first].get("type") == "array" and isinstance(given.get(first), str):
        given[first] = [given[first]]
    return given
