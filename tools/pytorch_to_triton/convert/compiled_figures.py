"""What the compiler makes of a file's kernels at the sizes that matter, in a line for each GPU and size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from pytorch_to_triton.audit.examine import figures_of
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.hardware.architectures import DEFAULT
from pytorch_to_triton.inputs.declaration import Options
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.inspect.inspect import InspectionRequest, inspect
from pytorch_to_triton.schema.finding import CompiledFigures
from pytorch_to_triton.schema.target import Target


async def compiled_at(work: ConversionWork, file: Path, point: Point) -> str:
    """A stage's kernels as compiled for the usual GPU at these sizes, in a line."""
    request = InspectionRequest(
        candidate=Target(path=file),
        options=Options(dims=point),
        arch=DEFAULT,
        backward=work.request.backward,
        seconds=work.request.seconds,
    )
    where = f"{DEFAULT} at {point_name(point)}"
    try:
        inspection = await inspect(work.worker, request, work.runtime, work.listener)
    except Refusal as refusal:
        return f"Not compiled for {where}: {refusal.message}"
    if inspection.verdict == "refused":
        return f"Compiled for {where}: {inspection.summary}"
    figures = [row for kernel in inspection.kernels for row in figures_of(kernel, where)]
    return f"Compiled for {'; '.join(figure_lines(figures))}."


def figure_lines(figures: Sequence[CompiledFigures]) -> tuple[str, ...]:
    """`sm_90 at N=4096: f_kernel 40 registers, 0 B spilled, 32 B shared, loads 128 bit, stores 128 bit`: a
    line for each GPU and size, over the configurations of a kernel from the least to the most."""
    rows: defaultdict[str, defaultdict[str, list[CompiledFigures]]] = defaultdict(lambda: defaultdict(list))
    for row in figures:
        rows[row.where.partition(", ")[0]][row.kernel].append(row)
    return tuple(
        f"{where}: {'; '.join(figure_text(name, found) for name, found in kernels.items())}"
        for where, kernels in rows.items()
    )


def figure_text(kernel: str, rows: Sequence[CompiledFigures]) -> str:
    loads = [row.widest_load_bits for row in rows if row.widest_load_bits is not None]
    stores = [row.widest_store_bits for row in rows if row.widest_store_bits is not None]
    return ", ".join(
        [
            f"{kernel} {least_to_most([row.registers for row in rows])} registers",
            f"{least_to_most([row.spill_bytes for row in rows])} B spilled",
            f"{least_to_most([row.shared_bytes for row in rows])} B shared",
            *([f"loads {least_to_most(loads)} bit"] if loads else []),
            *([f"stores {least_to_most(stores)} bit"] if stores else []),
        ]
    )


def least_to_most(values: Sequence[int]) -> str:
    """`40`, or `32 to 96`."""
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least} to {most}"
