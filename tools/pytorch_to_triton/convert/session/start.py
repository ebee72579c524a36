"""Opening a session: the target is traced and understood, and a stage-1 file lies ready to be edited.

Where nothing can be drafted, that file says all that is known, and has a kernel to be written.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.convert.resolve import ResolvedTarget, resolve
from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, Setting, new_folder
from pytorch_to_triton.convert.session.understanding import understanding_of
from pytorch_to_triton.draft.file.lines import WIDTH
from pytorch_to_triton.draft.file.module import declarations
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import ConversionSession, Understanding
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.example_call import Proposal, proposed

STEPS = 40
"""At most this many are repeated in the file."""


def blank(
    understood: Understanding,
    reference: Reference | None,
    parameters: Sequence[str],
    tensors: Sequence[str],
    declared: Mapping[str, object],
) -> str:
    """A kernel file that says what is to be computed, and raises until somebody has written it.

    `parameters` are those of `run`, of which `tensors` go to the kernel; without a `reference` of its own the
    file is checked against the session's target all the same.
    """
    name = snake(understood.function)
    imports = {"import torch", "import triton", "import triton.language as tl"}
    if reference is not None:
        imports |= set(reference.imports)
    signature = reference.parameters if reference is not None else ", ".join(parameters)
    pointers = "".join(f"    {tensor}_ptr,\n" for tensor in tensors)
    blocks = [
        f'"""{understood.function} in Triton, stage 1 of 3: to be written.\n\n{shapes(understood)}\n"""',
        "\n".join(sorted(imports)),
        declarations(declared),
        *([*reference.definitions] if reference is not None else []),
        f"@triton.jit\ndef {name}_kernel(\n"
        f"{pointers}    out_ptr,\n    n_elements,\n    BLOCK: tl.constexpr,\n):\n"
        '    """Write the kernel here: which part of the result a program computes, and from what."""\n'
        "    pass",
        f"def run({signature}):\n"
        '    """The same as `reference`: allocate the result, launch the kernel, return it."""\n'
        f"{remarks(understood)}"
        f'    raise NotImplementedError("write {name}_kernel and launch it here")',
    ]
    head, body = blocks[:3], blocks[3:]
    return "\n\n".join(block for block in head if block) + "\n\n\n" + "\n\n\n".join(body) + "\n"


def shapes(understood: Understanding) -> str:
    """The inputs, a line each."""
    return "\n".join(f"    {line}" for line in understood.inputs)


def remarks(understood: Understanding) -> str:
    """Why there is no draft, and the graph in words, as comments in `run`."""
    shown = [*understood.steps[:STEPS]]
    if len(understood.steps) > STEPS:
        shown.append(f"and {len(understood.steps) - STEPS} more operators")
    texts = [understood.no_draft, *(["PyTorch computes, in order:"] if shown else []), *shown]
    lines = [line for text in texts for line in textwrap.wrap(text, WIDTH - 6) or [""]]
    return "".join(f"    # {line}\n" for line in lines)


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
