"""The catalogue as commands, and those that set up."""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from pytorch_to_triton_server.catalogue import GROUPS, TOOLS
from pytorch_to_triton_server.completion.command import completion
from pytorch_to_triton_server.completion.values import completer
from pytorch_to_triton_server.doctor_command import doctor
from pytorch_to_triton_server.help_page import WHOLE, AsJson, DocumentedCommand, DocumentedGroup
from pytorch_to_triton_server.install.command import install
from pytorch_to_triton_server.progress import Interrupted, progress_on_stderr, run_interruptible
from pytorch_to_triton_server.serve_command import serve
from pytorch_to_triton_server.sweep_command import sweep
from pytorch_to_triton_server.terminal import print_result
from pytorch_to_triton_server.tool import Tool, ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.client import WorkerClient
    from pytorch_to_triton.jobs.progress import ProgressListener
    from pytorch_to_triton.schema.value import Value


KEYWORD = inspect.Parameter.KEYWORD_ONLY
SWITCHES = {
    "json": AsJson,
    "timings": Annotated[
        bool, typer.Option("--timings", help="List the call's processes and their times on stderr.")
    ],
}
OF_VALIDATE = {"all": Annotated[bool, typer.Option("--all", help="List every case, not only the mistakes.")]}
"""Of the command whose result is a verdict."""


def build_app() -> typer.Typer:
    """One command a tool, and those that set up."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        cls=DocumentedGroup,
    )

    @app.callback()
    def about(
        context: typer.Context,
        *,
        version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    ) -> None:
        """Turn PyTorch functions into Triton kernels, and prove that they are correct."""
        if version:
            from pytorch_to_triton.places import version as installed

            print(f'{{"version": "{installed()}"}}' if context.obj else installed())

    for function in (sweep, serve, install, doctor, completion):
        app.command(cls=DocumentedCommand)(function)
    groups = {
        name: typer.Typer(help=about, no_args_is_help=True, cls=DocumentedGroup)
        for name, about in GROUPS.items()
    }
    for tool in TOOLS:
        group, name = command_of(tool)
        text = tool.function.__doc__
        groups.get(group, app).command(name, help=text, cls=DocumentedCommand)(command(tool))
    for name, group_app in groups.items():
        app.add_typer(group_app, name=name)
    return app


def command_of(tool: Tool) -> tuple[str, str]:
    """The group and the name of a tool's command: docs_search is `docs search`, convert is `convert all`."""
    if tool.name in GROUPS:
        return tool.name, WHOLE
    group, _, name = tool.name.rpartition("_")
    return group, name


def command(tool: Tool) -> Callable[..., None]:
    """The command of a tool: a required parameter is positional, any other an option; and `--json`."""
    added = {**OF_VALIDATE, **SWITCHES} if tool.name == "validate" else SWITCHES

    def run(*, json: bool, timings: bool, **given: Any) -> None:
        each_case = given.pop("all", False)
        arguments = tool.check_arguments(given)
        with progress_on_stderr() as listener:
            try:
                result = run_interruptible(call, tool, arguments, listener, timings)
            except KeyboardInterrupt as pressed:
                raise Interrupted(listener.line, tool.when_interrupted) from pressed
        print_result(result, partial(show, each_case=each_case), as_json=json)
        raise typer.Exit(0 if tool.is_yes(result) else 1)

    switches = (
        inspect.Parameter(name, KEYWORD, annotation=kind, default=False) for name, kind in added.items()
    )
    parameters = [*(option(tool, parameter) for parameter in tool.parameters), *switches]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def option(tool: Tool, parameter: inspect.Parameter) -> inspect.Parameter:
    """A tool's parameter as typer reads it; a tuple becomes an option that may be repeated.

    Raises TypeError for one without a description.
    """
    match get_args(parameter.annotation):
        case kind, FieldInfo(description=str(about)):
            shared: dict[str, Any] = {"help": about, "autocompletion": completer(parameter.name)}
        case _:
            raise TypeError(
                f"{tool.name}: its parameter {parameter.name} must be annotated as "
                'Annotated[TYPE, Field(description="...")].'
            )
    if parameter.default is parameter.empty:
        return parameter.replace(annotation=Annotated[kind, typer.Argument(**shared)], kind=KEYWORD)
    named = typer.Option(f"--{parameter.name.replace('_', '-')}", **shared)
    if get_origin(kind) is tuple:
        repeated = Annotated[list[str], named]
        return parameter.replace(annotation=repeated, default=list(parameter.default), kind=KEYWORD)
    return parameter.replace(annotation=Annotated[kind, named], kind=KEYWORD)


async def call(
    tool: Tool,
    arguments: dict[str, Any],
    listener: "ProgressListener",
    timings: bool,  # noqa: FBT001
) -> "Value":
    """The tool's result, with a client of its own."""
    from pytorch_to_triton.jobs.client import open_client
    from pytorch_to_triton.jobs.no_answer import cache_errors_refused

    with cache_errors_refused():
        async with open_client() as worker:
            try:
                result: Value = await tool.function(ToolCall(worker, listener), **arguments)
            finally:
                if timings:
                    print_timings(worker)
    return result


def show(result: "Value", *, each_case: bool = False) -> None:
    """For a person; of a verdict only the mistakes, or `each_case`."""
    from pytorch_to_triton_server import show

    show.show(result, each_case=each_case)


def print_timings(worker: "WorkerClient") -> None:
    """How long each process of the worker took."""
    from pytorch_to_triton.jobs.progress import table_of

    print("   began  seconds  process", file=sys.stderr)
    for began, seconds, process in table_of(worker.process_times):
        print(f"{began:>8}  {seconds:>7}  {process}", file=sys.stderr)
