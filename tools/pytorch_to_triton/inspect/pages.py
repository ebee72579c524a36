"""A compiler's text in pages of a readable length."""

import re

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.architectures import Architecture
from pytorch_to_triton.schema.compiled import InspectedKernel, TextKind, TextPage

PAGE_LINES = 200
BACKENDS: dict[TextKind, str] = {"ptx": "cuda", "sass": "cuda", "amdgcn": "hip"}
"""Of texts that not every GPU has."""
DEBUGGING = re.compile(r"^\s*\.section\s+\.debug_\w+\s*\{[^{}]*\}\n?", re.MULTILINE)
"""A section of PTX that only debuggers read."""


def refuse_foreign(kind: TextKind, gpu: Architecture) -> None:
    """Raises BadInput for a text that kernels for this GPU do not have."""
    if BACKENDS.get(kind, gpu.backend) != gpu.backend:
        own = "ptx or sass" if gpu.backend == "cuda" else "amdgcn"
        raise BadInput(
            f"{gpu.name} has no {kind}.", f"Its assembly is {own}; ttir, ttgir and llir exist for all."
        )


def page_of(kernel: InspectedKernel, kind: TextKind, number: int) -> TextPage:
    """Page `number`, from 1, of a kernel's text. Raises BadInput where there is no such text or page."""
    path = kernel.compiled.texts.get(kind)
    if path is None:
        why = kernel.remarks[0].message if kernel.compiled.failure else "Triton did not keep it."
        raise BadInput(
            f"There is no {kind} of {kernel.label}. {why}",
            "Fix the kernel first; where Triton keeps no texts, unset TRITON_STORE_BINARY_ONLY.",
        )
    text = path.read_text(encoding="utf-8")
    lines = (DEBUGGING.sub("", text) if kind == "ptx" else text).splitlines()
    pages = max(-(-len(lines) // PAGE_LINES), 1)
    if not 1 <= number <= pages:
        raise BadInput(
            f"The {kind} of {kernel.label} has {pages} page{'s' if pages > 1 else ''}, not {number}.",
            f"Ask for a page from 1 to {pages}." if pages > 1 else "Ask for page 1.",
        )
    first = (number - 1) * PAGE_LINES
    return TextPage(
        kernel=kernel.label,
        kind=kind,
        page=number,
        pages=pages,
        first_line=first + 1,
        text="\n".join(lines[first : first + PAGE_LINES]),
        whole=path,
    )
