"""How long a launch takes at least: its memory traffic against its instructions, on a GPU's data sheet."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from operator import itemgetter

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.architectures import Architecture
from pytorch_to_triton.hardware.datasheets import DataSheet, datasheet
from pytorch_to_triton.inspect.executed_sections import Executed
from pytorch_to_triton.schema.compiled import (
    Bound,
    CompiledKernel,
    Estimate,
    InstructionKind,
    Occupancy,
)

LAUNCH_US = 5.0
"""What any launch takes, roughly."""


def sheet_of(names: Sequence[str | None], gpu: Architecture) -> DataSheet | None:
    """The data sheet of the first name that means one GPU of this architecture, else that of its part."""
    for name in (*names, gpu.part.partition(",")[0]):
        try:
            sheet = datasheet(name or "")
        except BadInput:
            continue
        if sheet.arch == gpu.name:
            return sheet
    return None


@dataclass(frozen=True)
class Launch:
    """A compiled kernel on a GPU, of which one launch is estimated."""

    kernel: CompiledKernel
    occupancy: Occupancy
    executed: Sequence[Executed]
    gpu: Architecture
    sheet: DataSheet | None

    @property
    def programs(self) -> int:
        return prod(self.kernel.grid or (1,)) * self.kernel.num_ctas

    @property
    def are_turns_known(self) -> bool:
        return bool(self.executed) and all(each.ran for each in self.executed)

    def issued(self) -> Counter[InstructionKind]:
        """How many instructions each warp issues, by kind; rounded to whole ones."""
        total = Counter[InstructionKind]()
        for each in self.executed:
            total.update({k: round(count * each.times(k)) for k, count in each.section.counts.items()})
        return total


def estimate(launch: Launch) -> Estimate:
    """What takes longest, and how long, if nothing waits for anything else."""
    us = {bound: round(each, 3) for bound, each in microseconds(launch)}
    resident = launch.occupancy.blocks * launch.gpu.sms
    binds = max(us.items(), key=itemgetter(1))[0] if len(us) > 1 else None
    return Estimate(
        gpu=launch.sheet.name if launch.sheet else "",
        waves=round(launch.programs / resident, 3) if resident else None,
        least_bytes=least_bytes(launch),
        us=us,
        binds=binds,
        sentence=sentence_of(launch, us, binds),
    )


def least_bytes(launch: Launch) -> int:
    """Of the launch's tensors, and of a table that is looked up in not more than what is loaded."""
    passed = launch.kernel.tensor_bytes or 0
    bits = [
        each.times("memory") * each.section.bits for each in launch.executed if each.section.bits is not None
    ]
    if not launch.are_turns_known or len(bits) < len(launch.executed):
        return passed
    threads = launch.programs * launch.kernel.num_warps * launch.gpu.warp_size
    return min(passed, int(sum(bits) * threads / 8))


def microseconds(launch: Launch) -> Iterator[tuple[Bound, float]]:
    """Of memory, and of instructions where all that is needed is known."""
    gpu, sheet = launch.gpu, launch.sheet
    if sheet is None:
        return
    yield "memory", least_bytes(launch) / sheet.gbytes_per_s / 1e3
    products = products_us(launch, sheet)
    if not gpu.float32_lanes or not gpu.special_lanes or not launch.are_turns_known or products is None:
        return
    issued = launch.issued()
    clocks_per_us = sheet.tflops["float32"] * 1e6 / (2 * gpu.float32_lanes * gpu.sms)
    warps = ceil(launch.programs / gpu.sms) * launch.kernel.num_warps
    yield "issue", warps * issued.total() / gpu.schedulers / clocks_per_us
    if special := issued["special_functions"] * gpu.warp_size / gpu.special_lanes:
        yield "special_functions", warps * special / clocks_per_us
    if products:
        yield "tensor_cores", products


def products_us(launch: Launch, sheet: DataSheet) -> float | None:
    """Of matrix products at the sheet's rates; None where a shape or a rate is not known."""
    warps = ceil(launch.programs / launch.gpu.sms) * launch.gpu.sms * launch.kernel.num_warps
    total = 0.0
    for each in launch.executed:
        if each.section.flops is None or not each.section.flops.keys() <= sheet.tflops.keys():
            return None
        us = sum(count / sheet.tflops[operands] / 1e6 for operands, count in each.section.flops.items())
        total += each.times("tensor_cores") * us * warps
    return total


def sentence_of(launch: Launch, us: dict[Bound, float], binds: Bound | None) -> str:
    """`estimated for H200: memory 94 us, instructions 120 us: bound by special functions`."""
    if launch.sheet is None:
        return f"not estimated: there is no data sheet for {launch.gpu.part}"
    memory = f"estimated for {launch.sheet.name}: memory {us['memory']:.3g} us"
    if binds is None:
        return f"{memory}; instructions not timed: {why_untimed(launch)}"
    instructions = max(us[bound] for bound in us if bound != "memory")
    short = max(us.values()) < LAUNCH_US
    bound = "a launch takes as long" if short else f"bound by {binds.replace('_', ' ')}"
    return f"{memory}, instructions {instructions:.3g} us: {bound}"


def why_untimed(launch: Launch) -> str:
    if launch.gpu.backend == "hip":
        return "they are counted for NVIDIA's GPUs alone"
    if not launch.are_turns_known:
        return "how often its loops turn is not known"
    return "the rate of its matrix products is not known"
