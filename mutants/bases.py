"""The right kernels that are mutated: the reference kernels, and drafts of functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_process

from mutants.functions import files
from mutants.mutate import is_chosen
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.sweep.drafting import Origin, origin_of
from reference_benchmarks.kernel_index import kernel_pages

EXAMPLES = ("channel_logsumexp", "gelu_bias", "layer_norm", "rms_norm_residual", "softmax", "swiglu")
"""Files of `examples/` with one function of the same name."""
ROOT = Path(__file__).parents[1]
SECONDS = 300.0


@dataclass(frozen=True)
class Base:
    """A kernel file that computes what its reference computes."""

    name: str
    path: Path
    backward: bool = False
    """Whether it has a gradient."""
    calls: tuple[str, ...] = ()
    """The operators that a draft leaves to PyTorch."""

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


def references(patterns: Sequence[str]) -> list[Base]:
    """The reference kernels, named after their files."""
    bases = (Base(page.file.stem, page.file, page.differentiable) for page in kernel_pages())
    return [base for base in bases if is_chosen(base.name, patterns)]


def functions(folder: Path, patterns: Sequence[str]) -> dict[str, Target]:
    """What is drafted, by the base's name; functions of one line are written into the folder."""
    targets = {f"{name}_draft": Target(path=ROOT / "examples" / f"{name}.py", name=name) for name in EXAMPLES}
    for name, text in files().items():
        path = folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        targets[f"{name}_draft"] = Target(path=path, name=name)
    return {name: target for name, target in targets.items() if is_chosen(name, patterns)}


async def drafted(worker: WorkerClient, runtime: Runtime, name: str, target: Target, folder: Path) -> Base:
    """The last stage of the function's draft, written into the folder; Triton computes all that it can."""
    origin = await origin_of(worker, ConversionRequest(target=target, seconds=SECONDS), runtime)
    text, calls = await anyio.to_process.run_sync(draft_of, origin)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return Base(name, path, calls=calls)


def draft_of(origin: Origin) -> tuple[str, tuple[str, ...]]:
    module = origin.drafted(3, PURE)
    return module.text, tuple(module.calls)
