"""Opening a session: the target is traced and understood, and a stage-1 file lies ready to be edited."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.convert.convert import (
    ConversionRequest,
    declared,
    own_modules,
    refuse_unused_init,
    source_of,
    traced_target,
)
from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.blank import blank
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, Setting, new_folder
from pytorch_to_triton.convert.session.understanding import understanding_of, untraced
from pytorch_to_triton.draft.file.module import Drafted, Source, draft
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import Reference, function_reference
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.inputs.declaration import Declaration, parse_options
from pytorch_to_triton.inputs.input_spec import ConstantSpec, ListSpec, TensorSpec
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import ConversionSession, Stage, Understanding
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.targets.example_call import Proposal, proposed
from pytorch_to_triton.targets.memory_limit import refuse_too_large
from pytorch_to_triton.targets.problem import resolve_problem


@dataclass(frozen=True)
class SessionTarget:
    """A target with all that its stages are made from."""

    setting: Setting
    description: Description
    declaration: Declaration
    traced: Traced | None
    source: Source | None
    """What drafted files say about it; None where it was not traced."""
    why: str = ""
    """Why it was not traced."""

    def drafted(self, stage: Stage) -> Drafted:
        """A stage's draft. Raises NotConvertible."""
        if self.traced is None or self.source is None:
            raise NotConvertible(self.why, "Write the kernel by hand.")
        ways = PURE if self.setting.pure or stage == 1 else None
        return draft(self.traced.graph, self.source, stage, None, ways)


def request_of(setting: Setting) -> ConversionRequest:
    """The same as a conversion in one go would have it."""
    return ConversionRequest(
        target=setting.target,
        options=parse_options(setting.inputs, setting.dims, setting.requires),
        seed=setting.seed,
        seconds=setting.seconds,
        backward=setting.backward,
        pure=setting.pure,
    )


async def prepared(worker: WorkerClient, setting: Setting, runtime: Runtime) -> SessionTarget:
    """Describe and trace the target. What cannot be traced is no refusal: a kernel can be written for it.

    Raises BadInput where the target does not run or its inputs cannot be used.
    """
    request = request_of(setting)
    description = await describe(worker, setting.target, "reference", runtime, seconds=setting.seconds)
    refuse_unused_init(setting.target, description)
    problem = await resolve_problem(
        worker, description, None, request.options, runtime, seconds=setting.seconds
    )
    declaration = problem.declaration
    await refuse_too_large(worker, declaration, runtime)
    try:
        traced = await traced_target(worker, request, declaration, runtime)
        source = source_of(setting.target, description, declaration, traced)
    except NotConvertible as refusal:
        return SessionTarget(
            setting, description, declaration, None, None, f"{refusal.message} {refusal.hint}"
        )
    return SessionTarget(setting, description, declaration, traced, source)


async def start(
    worker: WorkerClient,
    setting: Setting,
    into: Path | None,
    runtime: Runtime,
    *,
    example: Target | None = None,
) -> ConversionSession:
    """Open a session in a new folder; its inputs come from a call that `example` makes, where one is named.

    Raises BadInput as `prepared` does, for a folder in use, and where the example does not call the target.
    """
    notes: tuple[str, ...] = ()
    if example is not None:
        proposal = await proposed(worker, setting.target, example, runtime, seconds=setting.seconds)
        setting, notes = with_proposal(setting, proposal), proposal.guesses
    found = await prepared(worker, setting, runtime)
    try:
        drafted: Drafted | None = found.drafted(1)
        why = ""
    except NotConvertible as refusal:
        drafted, why = None, refusal.message
    understood = (
        understanding_of(
            found.description, found.declaration, found.traced, drafted, why, backward=setting.backward
        )
        if found.traced
        else untraced(found.description, found.declaration, why)
    )
    text = drafted.text if drafted else blank_of(found, understood)
    folder = SessionFolder(new_folder(into, snake(understood.function)))
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
    given = {option.partition("=")[0].strip() for option in (*setting.inputs, *setting.dims)}

    def others(options: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(option for option in options if option.partition("=")[0] not in given)

    target = setting.target if setting.target.init else setting.target.constructed_with(proposal.init)
    return setting.model_copy(
        update={
            "target": target,
            "inputs": (*others(inputs), *setting.inputs),
            "dims": (*others(dims), *setting.dims),
        }
    )


def blank_of(found: SessionTarget, understood: Understanding) -> str:
    """The file to be written by hand."""
    declaration = found.declaration
    tensors = [n for n, spec in declaration.inputs.items() if isinstance(spec, TensorSpec | ListSpec)]
    state = [tensor.name for tensor in found.description.state]
    parameters = [p.name for p in found.description.parameters if not p.variadic]
    given = declared(declaration, found.traced) if found.traced else declared_by_hand(found)
    reference = reference_in(found)
    return blank(understood, reference, [*parameters, *state], [*tensors, *state], given)


def declared_by_hand(found: SessionTarget) -> dict[str, object]:
    """INPUTS, DIMS and REQUIRES of a target that was not traced."""
    declaration = found.declaration
    return {
        "INPUTS": {
            name: [str(item) for item in spec.items] if isinstance(spec, ListSpec) else plain(spec)
            for name, spec in declaration.inputs.items()
        },
        "DIMS": {name: list(sizes) for name, sizes in declaration.dims.items()},
        "REQUIRES": list(declaration.requires),
    }


def plain(spec: TensorSpec | ConstantSpec) -> object:
    """A tensor's declaration as text, a constant as it is."""
    if isinstance(spec, TensorSpec):
        return str(spec)
    return list(spec.value) if isinstance(spec.value, tuple) else spec.value


def reference_in(found: SessionTarget) -> Reference | None:
    """The target's source as the file's own reference, where that is possible."""
    if found.source is not None:
        return found.source.reference
    if found.description.kind in ("module", "model_file"):
        return None
    path = found.setting.target.path
    try:
        return function_reference(path.read_text(encoding="utf-8"), found.description.name, own_modules(path))
    except NotConvertible:
        return None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
