"""The index of the reference kernels, references/kernels.md.

What a kernel shows is in the docstring of its file: the first sentence, `Technique:` and `Topics:`.
`python -m reference_benchmarks.kernel_index` writes the index.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton import places

PAGE = "kernels.md"
TOPICS = {
    "tiles": "what one program computes",
    "grids": "how many programs there are, and in which order they run",
    "masks": "sizes that no block divides",
    "coalescing": "neighbouring threads read neighbouring addresses",
    "meta-parameters": "what is fixed when a kernel is compiled",
    "autotune": "configurations that are measured at the first call",
    "fusion and precision": "several operations in one kernel, in float32 until the end",
    "pipelining and persistence": "loads that run ahead, programs that stay",
    "reductions": "sums, maxima and scans, in one program and across several",
    "descriptors": "tensor descriptors, which TMA copies by",
    "libdevice": "functions that Triton's language itself lacks",
    "debugging": "assertions in a kernel, and how to switch them on",
    "profiling": "what a kernel tells a profiler of its work",
    "device limits": "multiprocessors, registers and shared memory, asked for and kept to",
    "dynamic shapes": "any size, without compiling again for each",
    "backward": "gradients by kernels",
}
"""Each with what is meant."""
_HEAD = """\
# The reference kernels

One file each in `reference_kernels/`, to read and to take from (`docs read kernels/NAME` shows one): the
formula, the shapes, `reference` in plain PyTorch, the kernels, `run`, and the registration that torch.compile
and autograd go by. All of them take any strides and compute in float32. This page is written from the files,
by `python -m reference_benchmarks.kernel_index`.

| kernel | computes | technique | gradient |
|---|---|---|---|"""
_FIELD = re.compile(r"^([A-Z][a-z]+): (.+?)(?=\n[A-Z][a-z]+: |\n\n|\Z)", re.DOTALL | re.MULTILINE)
"""It goes on to the next one, or to the end of its paragraph."""


@dataclass(frozen=True)
class KernelPage:
    """What the docstring of a reference kernel's file says; what it lacks is empty."""

    file: Path
    computes: str
    """Its first sentence, formula included."""
    technique: str
    topics: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def differentiable(self) -> bool:
        """Whether it has kernels for its gradient."""
        return "backward" in self.topics


def kernel_pages() -> list[KernelPage]:
    """Each file of reference_kernels/, by name."""
    return [page_of(file) for file in sorted(places.shipped("reference_kernels").glob("*.py"))]


def page_of(file: Path) -> KernelPage:
    """One file, which is read and not run."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    fields = dict(_FIELD.findall(text))
    technique, topics = (" ".join(fields.get(name, "").split()) for name in ("Technique", "Topics"))
    computes = " ".join(text.partition("\n\n")[0].split())
    return KernelPage(file, computes, technique, tuple(filter(None, topics.removesuffix(".").split(", "))))


def index(pages: Sequence[KernelPage]) -> str:
    """One row a kernel, then which kernels show each topic."""
    lines = [_HEAD]
    for page in pages:
        gradient = "yes" if page.differentiable else ""
        lines.append(f"| `{page.name}` | {_cell(page.computes)} | {_cell(page.technique)} | {gradient} |")
    lines += ["", "## By topic", "", "| topic | meaning | kernels |", "|---|---|---|"]
    for topic, meaning in TOPICS.items():
        shown = ", ".join(f"`{page.name}`" for page in pages if topic in page.topics)
        lines.append(f"| {topic} | {meaning} | {shown} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text in one cell of a table; formulas keep their stars."""
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    (places.shipped("references") / PAGE).write_text(index(kernel_pages()), encoding="utf-8")
