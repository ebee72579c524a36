"""The reference kernels as pages, and their index, references/kernels.md.

What a kernel shows is in the docstring of its file: the first sentence, `Technique:` and `Topics:`.
`python -m pytorch_to_triton.docs.kernel_pages` writes the index.
"""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.schema.value import Value

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

One file each in `reference_kernels/`, to read and to take from: the formula, the shapes, `reference` in plain
PyTorch, the kernels, `run`, and the registration that torch.compile and autograd go by. All of them take any
strides and compute in float32. This page is written from the files, by
`python -m pytorch_to_triton.docs.kernel_pages`.

| kernel | computes | technique | gradient |
|---|---|---|---|"""
_FIELD = r"^{}: (.+?)(?=\n[A-Z][a-z]+: |\n\n|\Z)"


class KernelPage(Value):
    """What the docstring of a reference kernel's file says."""

    name: str
    file: Path
    computes: str
    """Its first sentence, formula included."""
    technique: str
    topics: tuple[str, ...]

    @property
    def differentiable(self) -> bool:
        """Whether it has kernels for its gradient."""
        return "backward" in self.topics


def main() -> None:
    """Write the index where the project's references lie."""
    (places.shipped("references") / PAGE).write_text(index(kernel_pages()), encoding="utf-8")


def kernel_pages() -> list[KernelPage]:
    """Each file of reference_kernels/, by name."""
    return [page_of(file) for file in sorted(places.shipped("reference_kernels").glob("*.py"))]


def page_of(file: Path) -> KernelPage:
    """One file, which is read and not run. What its docstring lacks is empty."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return KernelPage(
        name=file.stem,
        file=file,
        computes=" ".join(text.partition("\n\n")[0].split()),
        technique=field(text, "Technique"),
        topics=tuple(filter(None, field(text, "Topics").removesuffix(".").split(", "))),
    )


def field(text: str, name: str) -> str:
    """What follows `name:` at the start of a line, up to the next such line or paragraph."""
    match = re.search(_FIELD.format(name), text, re.DOTALL | re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def index(pages: Sequence[KernelPage]) -> str:
    """One row a kernel, then which kernels show each topic."""
    lines = [_HEAD]
    lines += [
        f"| `{page.name}` | {cell(page.computes)} | {cell(page.technique)} | "
        f"{'yes' if page.differentiable else ''} |"
        for page in pages
    ]
    lines += ["", "## By topic", "", "| topic | meaning | kernels |", "|---|---|---|"]
    for topic, meaning in TOPICS.items():
        shown = ", ".join(f"`{page.name}`" for page in pages if topic in page.topics)
        lines.append(f"| {topic} | {meaning} | {shown} |")
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text in one cell of a table; formulas keep their stars."""
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    main()
