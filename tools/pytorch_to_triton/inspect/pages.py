"""What the compiler made of a kernel: a line of figures, and its texts in pages of a readable length."""

import re
from collections import Counter

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.architectures import Architecture
from pytorch_to_triton.schema.compiled import InspectedKernel, Instructions, TextKind, TextPage

PAGE_LINES = 200
BACKENDS: dict[TextKind, str] = {"ptx": "cuda", "sass": "cuda", "amdgcn": "hip"}
"""Of texts that not every GPU has."""
DEBUGGING = re.compile(r"^\s*\.section\s+\.debug_\w+\s*\{[^{}]*\}\n?", re.MULTILINE)
"""A section of PTX that only debuggers read."""
SHOWN_KINDS = 3
MANY = {"load": "loads", "store": "stores", "async_copy": "async copies"}


def refuse_foreign(kind: TextKind, gpu: Architecture) -> None:
    """Raises BadInput for a text that kernels for this GPU do not have."""
    if BACKENDS.get(kind, gpu.backend) != gpu.backend:
        assembly = "ptx or sass" if gpu.backend == "cuda" else "amdgcn"
        raise BadInput(
            f"{gpu.name} has no {kind}.", f"Its assembly is {assembly}; ttir, ttgir and llir exist for all."
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


def line_of(kernel: InspectedKernel) -> str:
    """`softmax_kernel num_warps=4 num_stages=3: 40 registers, 0 B spilled, 32 B shared, ...`."""
    name = f"{kernel.label} {configuration_of(kernel)}"
    used, occupancy, instructions = kernel.compiled.resources, kernel.occupancy, kernel.instructions
    if used is None or occupancy is None or instructions is None:
        return f"{name}: the compiler refuses it"
    figures = (
        f"{used.registers} registers",
        f"{used.spill_store_bytes} B spilled",
        f"{used.shared_bytes} B shared",
        f"{100 * occupancy.share:.3g} % occupancy ({' and '.join(occupancy.binds)})",
        *(f"{many} {text}" for kind, many in MANY.items() if (text := widths(instructions, kind))),
        *(f"{m.name} {m.operands} x {m.count}" for m in instructions.matrix),
    )
    counted = f"; {issued(kernel)} instructions, {kinds(kernel)}" if kernel.sections else ""
    estimated = f"; {kernel.estimate.sentence}" if kernel.estimate else ""
    return f"{name}: {', '.join(figures)}{counted}{estimated}"


def issued(kernel: InspectedKernel) -> str:
    """What a warp issues outside of loops and in each: `37 + 8 x 342`, `? x 342` of unknown turns."""
    parts = []
    for section in kernel.sections:
        turns = "?" if section.turns is None else f"{section.turns:.4g}"
        count = sum(section.counts.values())
        parts.append(f"{turns} x {count:,}" if section.depth else f"{count:,}")
    return " + ".join(parts)


def kinds(kernel: InspectedKernel) -> str:
    """`63 % floating point, 12 % integers, 8 % special functions`: the kinds of most instructions.

    Of those that run, or, where turns are not known, of those in the text.
    """
    total = Counter[str]()
    is_known = all(section.turns is not None for section in kernel.sections)
    for section in kernel.sections:
        times = section.turns * (section.share or 0) if is_known and section.turns is not None else 1
        total.update({kind: round(1000 * times * count) for kind, count in section.counts.items()})
    return ", ".join(
        f"{100 * count / total.total():.0f} % {kind.replace('_', ' ')}"
        for kind, count in total.most_common(SHOWN_KINDS)
    )


def configuration_of(kernel: InspectedKernel) -> str:
    """What it was compiled with, and what of that was asked for in place of what its launch gives."""
    compiled = kernel.compiled
    launched = compiled.configuration or f"num_warps={compiled.num_warps} num_stages={compiled.num_stages}"
    instead = " ".join(f"{name}={value}" for name, value in compiled.what_if.items())
    return f"{launched}, what if {instead}" if instead else launched


def widths(instructions: Instructions, kind: str) -> str:
    """`128 bit x 8, 32 bit x 2`, the widest first."""
    accesses = sorted((a for a in instructions.accesses if a.kind == kind), key=lambda access: -access.bits)
    return ", ".join(f"{access.bits} bit x {access.count}" for access in accesses)
