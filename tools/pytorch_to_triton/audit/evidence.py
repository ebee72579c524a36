"""What a rule may ask for beside source: what the compiler made of a kernel, and what runs showed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.audit.source import Function, Kernel, SourceFile
from pytorch_to_triton.gpu.architectures import Architecture
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.compiled import CompiledKernel, InspectedKernel, TextKind
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, Verdict, Violation


@dataclass(frozen=True, eq=False)
class CompiledCode:
    """One kernel in one specialisation as it was compiled for one GPU, or refused."""

    inspected: InspectedKernel
    gpu: Architecture
    file: SourceFile | None
    """The kernel's file; None where it is not among the audited ones."""

    @property
    def path(self) -> Path:
        return self.compiled.file

    @property
    def compiled(self) -> CompiledKernel:
        return self.inspected.compiled

    @property
    def kernel(self) -> Kernel | None:
        """Its source."""
        kernels = self.file.kernels if self.file else ()
        return next((k for k in kernels if k.node.name == self.compiled.name), None)

    @property
    def where(self) -> str:
        """`sm_90`, or `sm_90, BLOCK=64 num_warps=4` of an autotuner's configuration."""
        return ", ".join(filter(None, (self.gpu.name, self.compiled.configuration)))

    def text(self, kind: TextKind) -> str:
        """What the compiler wrote; empty where it did not get there."""
        path = self.compiled.texts.get(kind)
        return path.read_text(encoding="utf-8") if path else ""


@dataclass(frozen=True, eq=False)
class Measured:
    """A target that was run on many cases and compared with its reference."""

    target: Target
    file: SourceFile
    """The target's own."""
    verdict: Verdict

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def entry(self) -> Function | None:
        """The function that was called."""
        name = self.target.name or "run"
        return next((f for f, _ in self.file.functions if f.name == name), None)

    def violations(self, *breaches: str) -> Iterator[tuple[CaseResult | None, Violation]]:
        """Violations of these kinds with the case that showed them; None: the process as a whole."""
        for case in self.verdict.cases:
            yield from ((case, found) for found in case.violations if found.breach in breaches)
        yield from ((None, found) for found in self.verdict.violations if found.breach in breaches)


@dataclass(frozen=True, eq=False)
class Timed:
    """A target that was timed on a GPU beside PyTorch."""

    target: Target
    file: SourceFile
    result: Benchmark

    @property
    def path(self) -> Path:
        return self.file.path


Evidence = SourceFile | Kernel | CompiledCode | Measured | Timed


def pieces(evidence: Evidence, needs: type[Evidence]) -> Sequence[Evidence]:
    """What of some evidence a rule that `needs` this kind looks at."""
    if needs is Kernel and isinstance(evidence, SourceFile):
        return evidence.kernels
    return (evidence,) if isinstance(evidence, needs) else ()
