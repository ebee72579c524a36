"""The catalogue as commands.

Exit status: 0 yes, 1 no, 2 the caller's mistake, 3 the environment lacks something, 130 interrupted.
"""

import gc
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton_server.catalogue import GROUPS, TOOLS, Call, Tool

if TYPE_CHECKING:
    from typer import Typer

    from pytorch_to_triton.schema.value import Value

NAME = "pytorch-to-triton"
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `arguments` without the program's name. Returns the exit status."""
    try:
        build_app()(arguments, prog_name=NAME)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def build_app() -> "Typer":
    """One command a tool, and `serve`."""
    import typer

    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def about(
        *,
        version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    ) -> None:
        """Turn PyTorch functions into Triton kernels, and prove them."""
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
        # mcp makes thousands of classes as it loads: not collecting meanwhile saves a tenth of the start.
        gc.disable()
        from pytorch_to_triton_server import serve

        gc.enable()
        if http:
            serve.serve_http(port)
        else:
            serve.serve_stdio()

    groups = {name: typer.Typer(help=about, no_args_is_help=True) for name, about in GROUPS.items()}
    for tool in TOOLS:
        group, _, name = tool.name.rpartition("_")
        groups.get(group, app).command(name, help=help_of(tool))(command(tool))
    for name, group_app in groups.items():
        app.add_typer(group_app, name=name)
    return app


def help_of(tool: Tool) -> str:
    """Its docstring with one line a paragraph: typer would keep the source's line breaks."""
    paragraphs = (inspect.getdoc(tool.function) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def command(tool: Tool) -> Callable[..., None]:
    """The command of a tool: a required parameter is positional, any other an option; and `--json`."""
    import typer

    def run(*, json: bool, **given: Any) -> None:
        raise typer.Exit(perform(tool, given, print_json if json else show))

    as_json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
    parameters = [
        *(option(parameter) for parameter in tool.parameters),
        inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, annotation=as_json, default=False),
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


def perform(tool: Tool, given: dict[str, Any], tell: Callable[["Value"], None]) -> int:
    """Call a tool, tell its result on stdout or its refusal on stderr; the exit status."""
    import anyio

    try:
        result = anyio.run(call, tool, tool.checked(given))
    except Refusal as refusal:
        print(f"error: {refusal.message}\n{refusal.hint}", file=sys.stderr)
        return refusal.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    tell(result)
    return 0 if tool.is_yes(result) else 1


async def call(tool: Tool, arguments: dict[str, Any]) -> "Value":
    """The tool's result, with a door of its own and progress on stderr."""
    from pytorch_to_triton.gpu.door import open_door
    from pytorch_to_triton_server.show import progress_on_stderr

    with progress_on_stderr() as watch:
        async with open_door() as door:
            result: Value = await tool.function(Call(door, watch), **arguments)
    return result


def show(result: "Value") -> None:
    """For a person."""
    from pytorch_to_triton_server import show

    show.show(result)


def print_json(result: "Value") -> None:
    """For a program."""
    print(result.model_dump_json(indent=2))


def print_version() -> None:
    from importlib.metadata import version

    print(version(NAME))
