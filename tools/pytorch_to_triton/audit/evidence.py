"""What a rule may ask for beside source: what the compiler made of a kernel, and what runs showed."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytorch_to_triton.audit.analysis.diagnosis import Diagnoses, Diagnosis, Occurrence
from pytorch_to_triton.audit.fault import Fault, Node, SourceLine
from pytorch_to_triton.audit.source import SourceFile, SourceKernel
from pytorch_to_triton.benchmark.figures import size_of
from pytorch_to_triton.hardware.architectures import Architecture
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.compiled import CompiledKernel, InspectedKernel, Remark, RemarkKind, TextKind
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import RedFlag
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.triton_api.name_scope import Definition


@dataclass(frozen=True, eq=False)
class CompiledCode:
    """One kernel in one specialisation as it was compiled for one GPU, or refused."""

    inspected: InspectedKernel
    gpu: Architecture
    file: SourceFile | None
    """The kernel's file; None where it is not among the audited ones."""
    at: str = ""
    """The sizes of its call, where they were named."""

    @property
    def path(self) -> Path:
        return self.compiled.file

    @property
    def compiled(self) -> CompiledKernel:
        return self.inspected.compiled

    @property
    def kernel(self) -> SourceKernel | None:
        """Its source."""
        kernels = self.file.kernels if self.file else ()
        return next((k for k in kernels if k.name == self.compiled.name), None)

    @property
    def where(self) -> str:
        """`sm_90`, `sm_90 at N=4096` where sizes were named; after a comma an autotuner's configuration."""
        place = f"{self.gpu.name} at {self.at}" if self.at else self.gpu.name
        return ", ".join(filter(None, (place, self.compiled.configuration)))

    @property
    def is_trial(self) -> bool:
        """It is one of an autotuner's configurations, which need not be the one that is used."""
        return self.compiled.configuration is not None

    def remarks(self, *kinds: RemarkKind) -> Iterator[tuple[SourceLine, Remark]]:
        """The remarks of `inspect` of these kinds, each at its first line, else at the kernel's `def`."""
        for remark in self.inspected.remarks:
            if remark.kind in kinds:
                yield SourceLine(min(remark.lines, default=self.compiled.line)), remark

    def faults(self, kind: RemarkKind, message: str, suggestion: str) -> Iterator[Fault]:
        """A fault for each remark of a kind; the message may hold {kernel} and {precision}."""
        for at, remark in self.remarks(kind):
            text = message.format(kernel=self.compiled.name, precision=remark.precision)
            yield Fault(at, text, suggestion, proof=self.proof(remark))

    def proof(self, remark: Remark) -> str:
        """A remark with the GPU and the lines that it is about."""
        further = ", ".join(map(str, remark.lines))
        lines = f" Lines {further}." if len(remark.lines) > 1 else ""
        return f"Compiled for {self.where}: {remark.message}{lines}"

    @property
    def knows_alignment(self) -> bool:
        """No access is narrow for an address or a size that may be no multiple of 16."""
        return not any(self.remarks("alignment_unknown"))

    def gathers_at(self, line: int) -> bool:
        """Whether the addresses on a line are made from what was loaded: whose places only the data know."""
        kernel = self.kernel
        return kernel is not None and any(
            "load" in kernel.made_by(access.address)
            for access in kernel.accesses
            if access.call.lineno <= line <= (access.call.end_lineno or line)
        )

    def text(self, kind: TextKind) -> str:
        """What the compiler wrote; empty where it did not get there."""
        path = self.compiled.texts.get(kind)
        return path.read_text(encoding="utf-8") if path else ""


@dataclass(frozen=True, eq=False)
class RanTarget:
    """A target that was run."""

    target: Target
    file: SourceFile
    """The target's own."""

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def ran(self) -> Collection[str]:
        """The names of the kernels that ran."""
        return {kernel.name for kernel in self.file.kernels if kernel.is_launched}

    @cached_property
    def place(self) -> Node | SourceLine:
        """Where a finding belongs that no line is known of: the one kernel that ran, else what was called."""
        kernels = [kernel.node for kernel in self.file.kernels if kernel.name in self.ran]
        if len(kernels) == len(self.ran) == 1:
            return kernels[0]
        called = [
            node for node in self.file.tree.body if isinstance(node, Definition) and node.name == self.called
        ]
        return called[-1] if called else SourceLine(1)

    @property
    def called(self) -> str:
        """The name of what was called."""
        return self.target.name or "run"

    @property
    def who(self) -> str:
        """The name of what stands at `place`."""
        return self.place.name if isinstance(self.place, Definition) else self.called


@dataclass(frozen=True, eq=False)
class MeasuredTarget(RanTarget):
    """One that was run on many cases and compared with its reference."""

    verdict: Verdict

    @property
    def ran(self) -> Collection[str]:
        return self.verdict.behavior.kernels

    def occurrences(self, diagnosis: Diagnosis) -> Iterator[tuple[Node | SourceLine, Occurrence]]:
        """Those of one diagnosis, each with its place."""
        for occurrence in self._diagnoses.occurrences(diagnosis):
            yield occurrence.at or begins(self.place), occurrence

    @cached_property
    def _diagnoses(self) -> Diagnoses:
        return Diagnoses(self.verdict)


@dataclass(frozen=True, eq=False)
class TimedTarget(RanTarget):
    """One that was timed on a GPU beside PyTorch."""

    result: Benchmark

    def flagged(self, *kinds: str) -> list[tuple[str, RedFlag]]:
        """The red flags of these kinds, each with the size that it is of."""
        return [(size_of(t), flag) for t in self.result.tables for flag in t.flags if flag.kind in kinds]


Evidence = SourceFile | SourceKernel | CompiledCode | MeasuredTarget | TimedTarget


def pieces(evidence: Evidence, needs: type[Evidence]) -> Sequence[Evidence]:
    """What of some evidence a rule that `needs` this kind looks at."""
    if needs is SourceKernel and isinstance(evidence, SourceFile):
        return evidence.kernels
    return (evidence,) if isinstance(evidence, needs) else ()


def begins(place: Node | SourceLine) -> SourceLine:
    """The place as the line that begins what is at fault."""
    return SourceLine(place.lineno, col_offset=place.col_offset, own=False)
