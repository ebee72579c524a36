"""The command `serve`: what it takes, and what of it a server is given."""

from typing import Annotated

import typer

from pytorch_to_triton_server.completion.values import completer


def serve(  # noqa: PLR0913  (a command has as many options as it takes)
    *,
    allow_dir: Annotated[
        list[str] | None,
        typer.Option(
            help="A folder that calls may name; may be repeated. Default: the folders that the client works "
            "in, else the current one.",
            autocompletion=completer("allow_dir"),
        ),
    ] = None,
    toolsets: Annotated[
        str | None,
        typer.Option(
            help="Offer only these tools (with commas): docs,convert,validate,benchmark,inspect,audit,device."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only tools that change nothing and run no user code.")
    ] = False,
    images: Annotated[bool, typer.Option("--images/--no-images", help="Send charts with results.")] = True,
    python: Annotated[
        str | None,
        typer.Option(
            help="A Python that has torch and triton; default: this one.", autocompletion=completer("python")
        ),
    ] = None,
    http: Annotated[
        bool,
        typer.Option(
            "--http",
            help="Serve streamable HTTP on 127.0.0.1, not stdio. Prints the token that clients must send; "
            "PYTORCH_TO_TRITON_TOKEN sets it.",
        ),
    ] = False,
    port: Annotated[int, typer.Option(help="The port of --http.", min=1, max=65535)] = 8000,
) -> None:
    """Serve the tools to an assistant over MCP."""
    import gc

    # mcp makes thousands of classes as it loads: without the collector it starts a tenth faster.
    gc.disable()
    from pytorch_to_triton_server import serve as serving
    from pytorch_to_triton_server.settings import ServerSettings, allowed_folders, chosen_tools

    gc.enable()
    settings = ServerSettings(
        allowed=allowed_folders(allow_dir or []),
        tools=chosen_tools(toolsets, read_only=read_only),
        python=python,
        images=images,
    )
    if http:
        serving.serve_http(settings, port)
    else:
        serving.serve_stdio(settings)
