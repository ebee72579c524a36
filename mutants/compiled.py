"""Mutants of dtypes alone, as the compiler sees them: many a cast is made anyway, some may not be left out.

Only forward calls are compiled, at the sizes of one case. Of other mistakes that would prove nothing: a
branch on what is compiled in may go the other way at other sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.inputs.declaration import Declaration, Options
from pytorch_to_triton.inputs.input_spec import TensorSpec
from pytorch_to_triton.inspect.inspect import InspectionRequest, inspect
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target

OF_DTYPES = frozenset({"cast_dropped", "offset_cast_dropped", "accumulator_narrowed"})
"""The operators whose mutants are compiled."""
ARCHITECTURE = "sm_90"
PLACE = re.compile(r"\s*(\.loc|\.file|\$L__tmp|//)")
"""Starts of lines of PTX that name places of the source."""
SIZE = re.compile(r"(\w+)=(\d+)(?: |$)")


@dataclass(frozen=True)
class Comparison:
    """A kernel file and a mutant of it, compiled for the same calls."""

    worker: WorkerClient
    runtime: Runtime
    base: Path
    mutant: Path
    declaration: Declaration

    async def outcome(self, case: str) -> str:
        """`same`, `different` or `refused`, at the sizes that the case's name starts with, in each dtype.

        `different` also where nothing could be compiled.
        """
        try:
            for options in self.calls(case):
                base = await self.compiled(self.base, options)
                mutant = await self.compiled(self.mutant, options)
                if None not in (base, mutant) and base == mutant:
                    continue
                return "refused" if base is not None and mutant is None else "different"
        except Refusal:
            return "different"
        return "same"

    def calls(self, case: str) -> Iterator[Options]:
        """The case's sizes with the first of all tensors' dtypes, then with the second, and so on."""
        sizes = {name: int(size) for name, size in SIZE.findall(case)}
        tensors = {n: spec for n, spec in self.declaration.inputs.items() if isinstance(spec, TensorSpec)}
        for turn in range(max(len(spec.dtypes) for spec in tensors.values())):
            inputs: Mapping[str, object] = {
                name: str(spec.model_copy(update={"dtypes": (spec.dtypes[min(turn, len(spec.dtypes) - 1)],)}))
                for name, spec in tensors.items()
            }
            yield Options(inputs=inputs, dims={name: [size] for name, size in sizes.items()})

    async def compiled(self, path: Path, options: Options) -> str | None:
        """The PTX of all kernels that the call launches; None where the compiler refuses one.

        Raises a Refusal for a call that launches none.
        """
        request = InspectionRequest(candidate=Target(path=path), options=options, arch=ARCHITECTURE)
        kernels = [k.compiled for k in (await inspect(self.worker, request, self.runtime)).kernels]
        if any(kernel.failure for kernel in kernels):
            return None
        return "\n".join(instructions(kernel.texts["ptx"].read_text(encoding="utf-8")) for kernel in kernels)


def instructions(ptx: str) -> str:
    """The text without places in the source, and without its debugging sections, which come last."""
    lines = ptx.partition(".section")[0].splitlines()
    return "\n".join(line.partition("//")[0].rstrip() for line in lines if not PLACE.match(line))
