"""The stage-1 file where nothing can be drafted: all that is known, and a kernel to be written."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from pytorch_to_triton.draft.file.lines import WIDTH
from pytorch_to_triton.draft.file.module import declarations
from pytorch_to_triton.draft.file.part import snake
from pytorch_to_triton.draft.file.reference import Reference
from pytorch_to_triton.schema.session import Understanding

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
