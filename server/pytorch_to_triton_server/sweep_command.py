"""The command `sweep`: what it takes, and its result for a person."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.completion.values import completer
from pytorch_to_triton_server.help_page import AsJson
from pytorch_to_triton_server.names import DeviceChoice
from pytorch_to_triton_server.progress import Interrupted, progress_on_stderr, run_interruptible
from pytorch_to_triton_server.terminal import print_result

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.progress import ProgressListener
    from pytorch_to_triton.sweep.phases import PhaseName
    from pytorch_to_triton.sweep.report import SweepReport
    from pytorch_to_triton.sweep.sweep import SweepRequest

Again = Literal["all", "failed"]
WHEN_INTERRUPTED = "What is done is kept, and in report.md: the same command goes on from here."


def sweep(  # noqa: PLR0913  (a command has as many options as it takes)
    source: Annotated[
        str,
        typer.Argument(
            help="A folder or file of kernels, functions, nn.Modules or files with Model and get_inputs; "
            "or a .jsonl file of problems and candidates.",
            autocompletion=completer("source"),
        ),
    ],
    *,
    into: Annotated[str, typer.Option(help="The results folder.")] = "benchmarks/sweep",
    candidates: Annotated[
        str | None, typer.Option(help="A folder of kernels that answer the problems of the same names.")
    ] = None,
    phase: Annotated[
        str | None,
        typer.Option(
            help="Of draft, validate, audit, tune and time, with commas; default: draft and validate, and "
            "time on a GPU."
        ),
    ] = None,
    input: Annotated[
        list[str] | None, typer.Option(help="An input of every item: x=float32[M,N]; may be repeated.")
    ] = None,
    dim: Annotated[
        list[str] | None, typer.Option(help="A dimension's sizes: M=1,7,256; may be repeated.")
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help="A condition on the sizes: 'D % 2 == 0'; may be repeated.")
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="A set of sizes to time at: M=8192,N=4096; may be repeated.")
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="With gradients.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Items at once on the CPU; default: one a core.", min=1)
    ] = None,
    device_jobs: Annotated[
        int, typer.Option(help="Items at once on a GPU; one is timed at a time.", min=1)
    ] = 4,
    seconds_per_item: Annotated[
        float, typer.Option(help="How long one phase of one item may take.", min=1)
    ] = 300.0,
    tune_seconds: Annotated[float, typer.Option(help="Of the phase tune, for each size.", min=1)] = 60.0,
    deadline: Annotated[
        float | None, typer.Option(help="End cleanly after so many seconds, to go on another time.", min=1)
    ] = None,
    again: Annotated[
        Again | None, typer.Option(help="Do all once more, or what crashed or ran out of time.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with another sweep: its results folder.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="The address of a Ray cluster that does the work, or auto.")
    ] = None,
    device: Annotated[
        DeviceChoice, typer.Option(help="auto: the GPU, or without one Triton's interpreter.")
    ] = "auto",
    python: Annotated[
        str | None,
        typer.Option(help="Another Python that has torch and triton.", autocompletion=completer("python")),
    ] = None,
    json: AsJson = False,
) -> None:
    """Draft, validate, audit and time many items, and go on after whatever ends it.

    Each item ends in one state: right, wrong, cheating, not drafted, timed out, and so on. A hanging or
    crashing item costs its own time and nothing else. Results are kept as they come, in journal.sqlite; the
    same command does only what is not done, or has changed. Writes report.md, sweep.html, results.jsonl and,
    where pyarrow is installed, results.parquet. Executes the code of all files.
    """
    from pytorch_to_triton.inputs.declaration import parse_options, parse_points
    from pytorch_to_triton.sweep.phases import Treatment
    from pytorch_to_triton.sweep.sweep import SweepRequest

    treatment = Treatment(
        out=Path(into).expanduser().resolve(),
        seconds=seconds_per_item,
        points=parse_points(at or ()),
        tune_seconds=tune_seconds,
    )
    request = SweepRequest(
        source=Path(source).expanduser(),
        treatment=treatment,
        phases=phases_in(phase),
        candidates=Path(candidates).expanduser() if candidates else None,
        options=parse_options(input or (), dim or (), require or ()),
        backward=backward,
        jobs=jobs,
        device_jobs=device_jobs,
        again=again,
        deadline=deadline,
        ray=ray,
        against=Path(against).expanduser() if against else None,
    )
    with progress_on_stderr() as listener:
        try:
            report = run_interruptible(run_sweep, request, device, python, listener)
        except KeyboardInterrupt as pressed:
            raise Interrupted(listener.line, WHEN_INTERRUPTED) from pressed
    print_result(report, show_sweep, as_json=json)
    raise typer.Exit(0 if {"right", "done"} >= report.states.keys() else 1)


def phases_in(text: str | None) -> "tuple[PhaseName, ...]":
    """The phases that the option names. Raises BadInput for one that there is not."""
    from pytorch_to_triton.sweep.phases import PhaseName

    known: tuple[PhaseName, ...] = get_args(PhaseName)
    named = [part.strip() for part in (text or "").split(",") if part.strip()]
    if unknown := [name for name in named if name not in known]:
        raise BadInput(f"There is no phase {unknown[0]}.", f"The phases are {', '.join(known)}.")
    return tuple(name for name in known if name in named)


async def run_sweep(
    request: "SweepRequest", device: DeviceChoice, python: str | None, listener: "ProgressListener"
) -> "SweepReport":
    from pytorch_to_triton.jobs.client import open_client
    from pytorch_to_triton.sweep.sweep import sweep as sweeping
    from pytorch_to_triton_server.machine import choose_runtime

    async with open_client() as worker:
        runtime = await choose_runtime(worker, device, python)
        return await sweeping(worker, request, runtime, listener)


def show_sweep(report: "SweepReport") -> None:
    """What became of the items, how fast the right ones are, and where more stands."""
    from pytorch_to_triton.sweep.files import comparison_lines
    from pytorch_to_triton.sweep.outcome import STATES
    from pytorch_to_triton_server.tables import TerminalTable, console_on_stdout

    console = console_on_stdout()
    console.print(f"{report.summary}\n{report.next_step}\n")
    states = [(state, str(count), STATES[state]) for state, count in report.states.items()]
    console.print(TerminalTable(("state", "items", "what it says"), states))
    if report.speeds:
        heads = ("beside", "timed", "geometric mean", *(f"fast_{p}" for p in report.speeds[0].fast))
        rows = [
            (s.over, str(s.timed), f"{s.geometric_mean:.2f}", *(f"{share:.0%}" for share in s.fast.values()))
            for s in report.speeds
        ]
        console.print()
        console.print(TerminalTable(heads, rows))
    for line in report.not_right:
        console.print(f"\n{line}")
    if report.comparison:
        for line in comparison_lines(report.comparison):
            console.print(line.lstrip("# "))
    console.print("\n" + "\n".join(str(file) for file in report.files))
