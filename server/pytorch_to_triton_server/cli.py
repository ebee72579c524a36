"""The catalogue as commands.

With `--json` stdout is always one JSON object: the result, or `{"error": {"kind", "message", "hint"}}`.
"""

import gc
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton_server.catalogue import GROUPS, TOOLS
from pytorch_to_triton_server.tool import Tool, ToolCall

if TYPE_CHECKING:
    from typer import Typer
    from typer.core import TyperGroup

    from pytorch_to_triton.jobs.client import WorkerClient
    from pytorch_to_triton.schema.value import Value

NAME = "pytorch-to-triton"
WHOLE = "all"
"""The command that a group stands for where its tool has the group's name."""
USAGE = 2
DEFECT = 5
INTERRUPTED = 130
EXIT_STATUS = (
    "Exit status: 0 yes; 1 no (a wrong or slower kernel, findings, a stage that did not pass); "
    "2 a mistake in the call, the file or its declaration; 3 the machine does not have what is needed; "
    "4 the function cannot be converted; 5 a defect in this program; 130 interrupted."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `arguments` without the program's name. Returns the exit status."""
    import typer

    given = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in given
    usage_error: Any = typer.BadParameter.__base__  # of whichever click typer uses
    try:
        ended = build_app()(given, prog_name=NAME, standalone_mode=not as_json)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except usage_error as error:
        message = error.format_message()
        hint = f"{NAME} COMMAND --help lists the arguments of a command."
        print_error("usage", message, hint, as_json=True)
        return USAGE
    return ended if isinstance(ended, int) else 0


def build_app() -> "Typer":
    """One command a tool, and `serve`."""
    import typer

    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        epilog=EXIT_STATUS,
    )

    @app.callback()
    def about(
        *,
        version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    ) -> None:
        """Turn PyTorch functions into Triton kernels, and prove that they are correct."""
        if version:
            print_version()

    @app.command()
    def serve(
        *,
        http: Annotated[
            bool, typer.Option("--http", help="Streamable HTTP on 127.0.0.1, not stdio.")
        ] = False,
        port: Annotated[int, typer.Option(help="The port of --http.", min=1, max=65535)] = 8000,
    ) -> None:
        """Serve the tools to an assistant over MCP."""
        # mcp makes thousands of classes as it loads: without the collector it starts a tenth faster.
        gc.disable()
        from pytorch_to_triton_server import serve

        gc.enable()
        if http:
            serve.serve_http(port)
        else:
            serve.serve_stdio()

    groups = {
        name: typer.Typer(help=about, epilog=EXIT_STATUS, no_args_is_help=True, cls=group_class())
        for name, about in GROUPS.items()
    }
    for tool in TOOLS:
        group, name = command_of(tool)
        groups.get(group, app).command(name, help=help_of(tool), epilog=EXIT_STATUS)(command(tool))
    for name, group_app in groups.items():
        app.add_typer(group_app, name=name)
    return app


def command_of(tool: Tool) -> tuple[str, str]:
    """The group and the name of a tool's command: docs_search is `docs search`, convert is `convert all`."""
    if tool.name in GROUPS:
        return tool.name, WHOLE
    group, _, name = tool.name.rpartition("_")
    return group, name


def group_class() -> "type[TyperGroup]":
    """A group of commands that may be left out where one of them stands for the group: `convert TARGET`."""
    from typer.core import TyperGroup

    class GroupWithDefault(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            known = {*self.commands, *ctx.help_option_names}
            if WHOLE in self.commands and args and args[0] not in known:
                args = [WHOLE, *args]
            return super().parse_args(ctx, args)

    return GroupWithDefault


def help_of(tool: Tool) -> str:
    """Its docstring with one line a paragraph: typer would keep the source's line breaks."""
    paragraphs = (inspect.getdoc(tool.function) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def command(tool: Tool) -> Callable[..., None]:
    """The command of a tool: a required parameter is positional, any other an option; and `--json`."""
    import typer

    def run(*, json: bool, timings: bool, **given: Any) -> None:
        raise typer.Exit(perform(tool, given, as_json=json, timings=timings))

    with_timings = Annotated[
        bool,
        typer.Option("--timings", help="List the call's processes and their times on stderr."),
    ]
    as_json = Annotated[bool, typer.Option("--json", help="Print only the result, as JSON.")]
    parameters = [
        *(option(parameter) for parameter in tool.parameters),
        inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, annotation=as_json, default=False),
        inspect.Parameter("timings", inspect.Parameter.KEYWORD_ONLY, annotation=with_timings, default=False),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def option(parameter: inspect.Parameter) -> inspect.Parameter:
    """A tool's parameter as typer reads it; a tuple becomes an option that may be repeated."""
    import typer

    kind, field = get_args(parameter.annotation)
    if parameter.default is parameter.empty:
        meant: Any = Annotated[kind, typer.Argument(help=field.description)]
        return parameter.replace(annotation=meant, kind=inspect.Parameter.KEYWORD_ONLY)
    repeated = get_origin(kind) is tuple
    meant = Annotated[
        list[str] if repeated else kind,
        typer.Option(f"--{parameter.name.replace('_', '-')}", help=field.description),
    ]
    default = list(parameter.default) if repeated else parameter.default
    return parameter.replace(annotation=meant, default=default, kind=inspect.Parameter.KEYWORD_ONLY)


def perform(tool: Tool, given: dict[str, Any], *, as_json: bool, timings: bool) -> int:
    """Call a tool and print its result on stdout, or its error on stderr. Returns the exit status."""
    import anyio

    try:
        result = anyio.run(call, tool, tool.checked(given), timings)
    except Refusal as refusal:
        print_error(refusal.kind, refusal.message, refusal.hint, as_json=as_json)
        return refusal.exit_code
    except KeyboardInterrupt:
        print_error("interrupted", "The command was interrupted.", "Run it again.", as_json=as_json)
        return INTERRUPTED
    except Exception as error:
        traceback.print_exc()
        message = f"{tool.name} failed: {type(error).__name__}: {error}"
        hint = "This is a defect in pytorch-to-triton; please report it with the traceback on stderr."
        print_error("defect", message, hint, as_json=as_json)
        return DEFECT
    if as_json:
        print(result.model_dump_json(indent=2))
    else:
        show(result)
    return 0 if tool.is_yes(result) else 1


async def call(tool: Tool, arguments: dict[str, Any], timings: bool) -> "Value":  # noqa: FBT001
    """The tool's result, with a client of its own and progress on stderr."""
    from pytorch_to_triton.jobs.client import open_client
    from pytorch_to_triton.jobs.no_answer import cache_errors_refused
    from pytorch_to_triton_server.show import progress_on_stderr

    with progress_on_stderr() as listener, cache_errors_refused():
        async with open_client() as worker:
            try:
                result: Value = await tool.function(ToolCall(worker, listener), **arguments)
            finally:
                if timings:
                    print_timings(worker)
    return result


def show(result: "Value") -> None:
    """For a person."""
    from pytorch_to_triton_server import show

    show.show(result)


def print_timings(worker: "WorkerClient") -> None:
    """How long each process of the worker took."""
    from pytorch_to_triton.jobs.process_time import table_of

    print("   began  seconds  process", file=sys.stderr)
    for began, seconds, process in table_of(worker.process_times):
        print(f"{began:>8}  {seconds:>7}  {process}", file=sys.stderr)


def print_error(kind: str, message: str, hint: str, *, as_json: bool) -> None:
    """On stderr for a person, and with --json on stdout for a program."""
    print(f"error: {message}\n{hint}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": message, "hint": hint}}, indent=2))


def print_version() -> None:
    from importlib.metadata import version

    print(version(NAME))
