"""The tools of a conversion in steps: convert start, submit, status, list, restore, finish and drop."""

import secrets
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server import parameters as shared
from pytorch_to_triton_server.names import Boundary, brief, folder_of, path_of, target_of, why_no_file
from pytorch_to_triton_server.tool import ToolCall

if TYPE_CHECKING:
    from pathlib import Path

    from pytorch_to_triton.convert.session.store import SessionFolder, Setting
    from pytorch_to_triton.schema.finished import FinishedConversion
    from pytorch_to_triton.schema.session import ConversionSession, SessionList, SessionStep

SESSIONS = "sessions"
"""The folder below the current one where sessions are put."""
SessionPath = Annotated[str, Field(description="The session's folder")]


async def convert_start(
    call: ToolCall,
    target: shared.Target,
    input: shared.Inputs = (),
    dim: shared.Dims = (),
    at: shared.At = (),
    require: shared.Requirements = (),
    compare: shared.Compare = (),
    init: shared.Init = (),
    example: shared.Example = None,
    into: Annotated[str | None, Field(description="A new folder; default: sessions/NAME")] = None,
    backward: Annotated[
        bool, Field(description="Draft gradients too, and check them in every stage")
    ] = False,
    pure: shared.Pure = False,
    arch: shared.Archs = (),
    device: shared.Device = "auto",
    seed: shared.Seed = None,
    timeout: shared.Timeout = 300.0,
    python: shared.Python = None,
) -> "ConversionSession":
    """Start converting in steps: trace the target, and write a stage-1 file to edit.

    Says what was understood: the graph in words, which kernels the draft has, what stays in PyTorch and why,
    and how much work there is. Where nothing can be drafted, the file has the signature, the inputs and the
    reference, and a kernel for you to write. The session is a folder that keeps every attempt. Executes the
    target's code.
    """

    named = target_of(target, call.boundary).constructed_with(init)
    folder = folder_of(into, call.boundary, SESSIONS)
    from pytorch_to_triton.hardware.architectures import architecture
    from pytorch_to_triton.inputs.declaration import parse_options, parse_points
    from pytorch_to_triton_server.machine import choose_runtime, warm

    options, points = parse_options(input, dim, require, compare), parse_points(at)
    for name in arch:
        architecture(name)
    warm(call.worker, device, python or call.python)
    from pytorch_to_triton.convert.session.start import start  # while the worker starts
    from pytorch_to_triton.convert.session.store import Setting

    setting = Setting(
        target=named,
        options=options,
        example=target_of(example, call.boundary) if example else None,
        points=points,
        seed=secrets.randbits(31) if seed is None else seed,
        seconds=timeout,
        backward=backward,
        pure=pure,
        device=device,
        python=python or call.python,
        archs=tuple(arch),
    )
    runtime = await choose_runtime(call.worker, device, python or call.python)
    return await start(call.worker, setting, folder, runtime)


async def convert_submit(
    call: ToolCall,
    session: SessionPath,
    file: Annotated[str | None, Field(description="What to submit; default: the stage's file")] = None,
    through: Annotated[
        int, Field(ge=1, le=3, description="The last stage whose gate it may open; at least the current one")
    ] = 1,
    accept: Annotated[
        str, Field(description="Why a stage may pass although it is not faster; kept in the record")
    ] = "",
    at: shared.At = (),
    against: shared.Against = (),
) -> "SessionStep":
    """Submit a file to the gate of a session's current stage, or to all gates up to `through`.

    Stage 1 requires that it is right and compiles, without serious findings; stage 2 also that accesses are
    coalesced, kernels autotuned, and that it is no slower than stage 1; stage 3 that it is timed against
    PyTorch. When the gate opens, the next stage's file is written; when it stays shut, each condition that is
    not met says what was seen and what to try. Every attempt is kept; what was right is not run again unless
    it has changed. Executes the file's code.
    """
    from pytorch_to_triton.inputs.declaration import parse_points
    from pytorch_to_triton_server.machine import choose_runtime

    points = parse_points(at)
    folder, setting = _opened_to_run(call, session)
    from pytorch_to_triton.convert.session.store import STAGES  # while the worker starts
    from pytorch_to_triton.convert.session.submit import SubmitRequest, submit

    runtime = await choose_runtime(call.worker, setting.device, setting.python)
    request = SubmitRequest(
        call.boundary.readable(path_of(file)) if file else None,
        STAGES[through - 1],
        accept.strip(),
        tuple(target_of(other, call.boundary) for other in against),
        points,
    )
    return await submit(call.worker, folder, request, runtime, call.listener)


async def convert_status(call: ToolCall, session: SessionPath) -> "ConversionSession":
    """Show a session: what was understood, every attempt with its conditions, and what is next."""
    from pytorch_to_triton.convert.session.answers import session_of

    return session_of(open_within(session, call.boundary))


async def convert_list(
    call: ToolCall,
    below: Annotated[str, Field(description="The folder to look in")] = SESSIONS,
) -> "SessionList":
    """List the sessions in a folder."""
    folder = call.boundary.readable(path_of(below))
    unused = below == SESSIONS and not folder.exists()
    if not folder.is_dir() and not unused:
        raise BadInput(f"{brief(below)} is not a folder.", "Name the folder that holds the sessions.")
    return _listed(call, folder)


async def convert_restore(
    call: ToolCall,
    session: SessionPath,
    attempt: Annotated[int, Field(ge=1, description="The number of an attempt whose gate opened")],
) -> "SessionStep":
    """Go back to an earlier attempt of a session: its file is the stage's file again; later ones are kept."""
    from pytorch_to_triton.convert.session.submit import restore

    return restore(open_within(session, call.boundary), attempt)


async def convert_finish(
    call: ToolCall,
    session: SessionPath,
    into: Annotated[
        str | None, Field(description="The folder for the files; default: converted/NAME")
    ] = None,
    force: shared.Force = False,
    dry_run: Annotated[bool, Field(description="Only say what would be written")] = False,
    against: shared.Against = (),
) -> "FinishedConversion":
    """Write a session's best kernel as a function that replaces PyTorch's, and run its tests.

    NAME_triton.py has the kernels, a function registered with PyTorch, so that it works under torch.compile
    and gradients flow, and PyTorch's own code for what the kernels do not take; for a module also a class
    with the same parameters. Tests, a benchmark and a report lie beside it. It needs only torch and triton.
    """
    from pytorch_to_triton_server.machine import choose_runtime

    folder, setting = _opened_to_run(call, session)
    from pytorch_to_triton.convert.session.finish import FinishRequest, finish  # while the worker starts

    runtime = await choose_runtime(call.worker, setting.device, setting.python)
    request = FinishRequest(
        folder_of(into, call.boundary, "converted"),
        force,
        dry_run,
        tuple(target_of(other, call.boundary) for other in against),
    )
    return await finish(call.worker, folder, request, runtime, call.listener)


async def convert_drop(call: ToolCall, session: SessionPath) -> "SessionList":
    """Remove a session with all its attempts. Refuses if its folder holds anything else."""
    from pytorch_to_triton.convert.session.answers import after_drop
    from pytorch_to_triton.convert.session.store import drop

    folder = open_within(session, call.boundary)
    attempts = drop(folder)
    beside = folder.path.parent
    return after_drop(folder, attempts, _listed(call, beside if call.boundary.holds(beside) else folder.path))


def open_within(text: str, boundary: Boundary) -> "SessionFolder":
    """The session in the folder that was named. Raises BadInput, also where it leads out of the boundary."""
    folder = boundary.writable(path_of(text))
    if not folder.is_dir():
        raise BadInput(
            f"{brief(text)} is not a folder.",
            "`convert list` names the sessions; `convert start` opens one.",
        )
    from pytorch_to_triton.convert.session.store import RECORD, open_session

    boundary.writable(folder / RECORD)
    session = open_session(folder)
    refuse_what_leads_out(session, boundary)
    return session


def refuse_what_leads_out(session: "SessionFolder", boundary: Boundary) -> None:
    """Raises BadInput where a part of a session lies elsewhere, or is a pipe: reading it may never end."""
    for part in session.parts():
        boundary.writable(part)
        if part.exists() and not part.is_file() and not part.is_dir():
            raise BadInput(f"{part} is neither a file nor a folder.", "Move it out of the session.")


def _opened_to_run(call: ToolCall, text: str) -> "tuple[SessionFolder, Setting]":
    """The session in the folder that was named, whose target may be called; its worker is being started."""
    from pytorch_to_triton_server.machine import warm

    session = open_within(text, call.boundary)
    setting = session.record().setting
    target = call.boundary.readable(path_of(str(setting.target.path)))
    if target.exists() and not target.is_file():
        raise BadInput(f"{target} {why_no_file(target)}.", "Start a new session for its target.")
    warm(call.worker, setting.device, setting.python)
    return session, setting


def _listed(call: ToolCall, below: "Path") -> "SessionList":
    """The sessions in a folder, as far as they lie within the boundary."""
    from pytorch_to_triton.convert.session.answers import list_of
    from pytorch_to_triton.convert.session.store import sessions_below

    return list_of(
        sessions_below(below), below, lambda session: refuse_what_leads_out(session, call.boundary)
    )
