"""Opening a session: the target is traced and understood, and a stage-1 file lies ready to be edited."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.convert.resolve import ResolvedTarget, resolve
from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.blank import blank
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, Setting, new_folder
from pytorch_to_triton.convert.session.understanding import understanding_of
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import ConversionSession, Understanding
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.example_call import Proposal, proposed


async def start(
    worker: WorkerClient,
    setting: Setting,
    into: Path | None,
    runtime: Runtime,
    *,
    example: Target | None = None,
) -> ConversionSession:
    """Open a session in a new folder; its inputs come from a call that `example` makes, where one is named.

    Raises BadInput as `resolve` does, for a folder in use, and where the example does not call the target.
    """
    notes: tuple[str, ...] = ()
    if example is not None:
        proposal = await proposed(worker, setting.target, example, runtime, seconds=setting.seconds)
        setting, notes = with_proposal(setting, proposal), proposal.guesses
    target = await resolve(worker, setting.request(), runtime)
    try:
        drafted, why = target.convertible().drafted(1, PURE), ""
    except NotConvertible as refusal:
        # A draft that fails is told by its message alone, what was never traced with what to do about it.
        drafted, why = None, refusal.message if target.origin else f"{refusal.message} {refusal.hint}"
    understood = understanding_of(target, drafted, why)
    text = drafted.text if drafted else blank_of(target, understood)
    # A kernel file's reference is called `reference`, as in every other.
    name = understood.function if setting.target.name else setting.target.path.stem
    folder = SessionFolder(new_folder(into, snake(name)))
    places.write_atomically(folder.file(1), text)
    record = SessionRecord(
        setting=setting,
        target_digest=digest_of_file(setting.target.path),
        understood=understood,
        drafted={1: digest(text)} if drafted else {},
        put={1: digest(text)},
        allowed=tuple(dict.fromkeys(drafted.calls)) if drafted else (),
    )
    folder.write(record)
    return session_of(folder, "started", notes)


def with_proposal(setting: Setting, proposal: Proposal) -> Setting:
    """The setting with what a call suggests; what was given beside it wins, name by name."""
    inputs, dims = proposal.options()
    declared = {option.partition("=")[0].strip() for option in (*setting.inputs, *setting.dims)}

    def others(options: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(option for option in options if option.partition("=")[0] not in declared)

    target = setting.target if setting.target.init else setting.target.constructed_with(proposal.init)
    return setting.model_copy(
        update={
            "target": target,
            "inputs": (*others(inputs), *setting.inputs),
            "dims": (*others(dims), *setting.dims),
        }
    )


def blank_of(target: ResolvedTarget, understood: Understanding) -> str:
    """The file to be written by hand."""
    description, inputs = target.description, target.declaration.inputs
    tensors = [name for name, spec in inputs.items() if isinstance(spec, TensorSpec)]
    state = [tensor.name for tensor in description.state]
    parameters = [p.name for p in description.parameters if not p.variadic]
    return blank(understood, target.reference(), [*parameters, *state], [*tensors, *state], target.declared())


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
