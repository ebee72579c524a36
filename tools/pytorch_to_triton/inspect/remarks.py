"""Remarks on a compiled kernel: what may slow it down or make it inexact, with the figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytorch_to_triton.hardware.architectures import KIB, Architecture
from pytorch_to_triton.inspect.estimate import LAUNCH_US
from pytorch_to_triton.inspect.ttgir import BlockAccess, Dot, Loop, ShortSum
from pytorch_to_triton.schema.compiled import (
    CompiledKernel,
    Estimate,
    Instructions,
    Occupancy,
    Remark,
    ResourceUsage,
)

LOW_OCCUPANCY = 0.25
WIDEST_BITS = 128
SHORT_TYPES = ("f16", "bf16")
CLEARLY = 1.2
ADVICE: dict[str, str] = {
    "issue": "Compute once what several elements or turns share, and take cheaper forms of what each needs.",
    "special_functions": "Have fewer: one exponential for each element, a product in place of a quotient.",
}
"""What helps where the instructions bind; products are meant to be bound by tensor cores."""
FEW_TERMS = 16
"""A sum of fewer loses little, and is not reported."""


@dataclass(frozen=True)
class KernelReading:
    """A compiled kernel, and what was read from its texts."""

    kernel: CompiledKernel
    resources: ResourceUsage
    gpu: Architecture
    instructions: Instructions
    occupancy: Occupancy
    blocks: Sequence[BlockAccess]
    loops: Sequence[Loop]
    dots: Sequence[Dot]
    sums: Sequence[ShortSum] = ()
    float_atomics: Sequence[int | None] = ()
    """Lines of additions by atomics."""
    estimate: Estimate | None = None


def remarks_on(reading: KernelReading) -> tuple[Remark, ...]:
    """All that apply, the most important first."""
    narrow = narrow_accesses(reading)
    return (
        *too_much_shared_memory(reading),
        *spills(reading),
        *dots_without_tensor_cores(reading),
        *instruction_bound(reading),
        *low_precision_sums(reading),
        *narrow,
        *(unknown_alignment(reading) if narrow else ()),
        *loops_without_async_copies(reading),
        *low_occupancy(reading),
        *tf32_products(reading),
        *sums_by_atomics(reading),
    )


def refusal(kernel: CompiledKernel) -> Remark:
    """The compiler's own message."""
    assert kernel.failure is not None
    line = kernel.failure.line
    at = f"line {line}: " if line else ""
    return Remark(
        kind="refused",
        message=f"The compiler refuses it: {at}{kernel.failure.message.strip()}",
        lines=(line,) if line else (),
    )


def too_much_shared_memory(reading: KernelReading) -> Iterator[Remark]:
    used, most = reading.resources.shared_bytes, reading.gpu.shared_bytes_per_block
    if used > most:
        yield Remark(
            kind="too_much_shared_memory",
            message=(
                f"A block needs {kib(used)} of shared memory; {reading.gpu.name} has {kib(most)} per block, "
                "so it cannot be launched. Use smaller blocks or fewer num_stages."
            ),
        )


def spills(reading: KernelReading) -> Iterator[Remark]:
    used = reading.resources
    if used.spill_store_bytes:
        read = "" if used.spill_load_bytes is None else f", and reads {used.spill_load_bytes} bytes back"
        yield Remark(
            kind="spills",
            message=(
                f"Each thread uses {used.registers} registers and spills {used.spill_store_bytes} bytes to "
                f"local memory{read}. Smaller blocks or more num_warps give each thread fewer elements."
            ),
        )


def dots_without_tensor_cores(reading: KernelReading) -> Iterator[Remark]:
    if not reading.dots or reading.instructions.matrix:
        return
    first = reading.dots[0]
    exact = first.operands == "f32" and first.precision in ("", "ieee")
    why = (
        'float32 operands with input_precision="ieee" have no tensor core; "tf32", "tf32x3" or "bf16x6" do'
        if exact
        else f"no tensor core takes {first.operands} operands in these blocks"
    )
    count = len(reading.dots)
    yield Remark(
        kind="dot_without_tensor_cores",
        message=f"{plural(count, 'tl.dot')} computed without tensor cores: {why}.",
        lines=lines_of(dot.line for dot in reading.dots),
        precision=f"{first.operands} ieee" if exact else first.operands,
    )


def narrow_accesses(reading: KernelReading) -> tuple[Remark, ...]:
    """Where a thread has neighbouring elements of a block and still moves less than it could at once."""
    threads = reading.kernel.num_warps * reading.gpu.warp_size
    remarks = {}
    for access in reading.blocks:
        possible = min(WIDEST_BITS, access.elements // threads * access.element_bits)
        bits = widest_at(reading.instructions, access)
        if bits is not None and bits < possible:
            verb = "loads" if access.kind == "load" else "stores"
            message = (
                f"Line {access.line} {verb} {bits} bits per thread and instruction; the block of "
                f"{access.elements:,} elements would allow {possible}."
            )
            remarks[access.line, access.kind] = Remark(
                kind="narrow_access",
                message=message,
                lines=(access.line,) if access.line else (),
                figures={"bits": bits, "possible": possible},
            )
    return tuple(remarks.values())


def unknown_alignment(reading: KernelReading) -> Iterator[Remark]:
    """The arguments whose alignment the compiler needs for wide accesses."""
    pointers = [a for a in reading.kernel.arguments if a.type.startswith("*") and not a.divisible_by_16]
    integers = [
        a
        for a in reading.kernel.arguments
        if a.type in ("i32", "i64", "u32", "u64") and not a.divisible_by_16 and isinstance(a.value, int)
    ]
    if not pointers and not integers:
        return
    named = [f"the address {a.name}" for a in pointers] + [f"{a.name} ({a.value})" for a in integers]
    yield Remark(
        kind="alignment_unknown",
        message=(
            f"Not known to be multiples of 16: {', '.join(named)}. Accesses that depend on them stay narrow; "
            "strides that are multiples of 16, or tl.multiple_of where it holds, widen them."
        ),
    )


def loops_without_async_copies(reading: KernelReading) -> Iterator[Remark]:
    if not reading.gpu.has_async_copies:
        return
    for loop in reading.loops:
        if loop.loads and not loop.prefetches and not reading.instructions.tma_loads:
            at = f"The loop at line {loop.line}" if loop.line else "A loop"
            launch = "" if loop.dots else "The launch's num_stages does not apply to a loop without tl.dot; "
            yield Remark(
                kind="loop_without_async_copies",
                message=(
                    f"{at} has {plural(len(loop.loads), 'load')} and no asynchronous copies: each iteration "
                    f"waits for its data. {launch}tl.range(..., num_stages=3) lets Triton prefetch in it; "
                    "measure whether that helps."
                ),
                lines=lines_of((loop.line, *loop.loads)),
                figures={"loads": len(loop.loads), "dots": loop.dots},
            )


def low_precision_sums(reading: KernelReading) -> Iterator[Remark]:
    """Sums whose every addition rounds to a short type."""
    for total in reading.sums:
        if total.terms >= FEW_TERMS:
            yield Remark(
                kind="low_precision_sum",
                message=f"{total.terms:,} terms are added in {total.type}: each addition rounds to it.",
                lines=lines_of((total.line,)),
                precision=total.type,
            )
    for dot in reading.dots:
        if dot.result in SHORT_TYPES:
            yield Remark(
                kind="low_precision_sum",
                message=f"A tl.dot of {dot.operands} operands keeps its sums in {dot.result}.",
                lines=lines_of((dot.line,)),
                precision=dot.result,
            )


def tf32_products(reading: KernelReading) -> Iterator[Remark]:
    lines = [dot.line for dot in reading.dots if dot.operands == "f32" and dot.precision == "tf32"]
    if lines:
        yield Remark(
            kind="tf32_product",
            message=(
                f"{plural(len(lines), 'tl.dot')} of float32 operands in TF32: it uses 10 of the 23 "
                "mantissa bits of each operand."
            ),
            lines=lines_of(lines),
        )


def sums_by_atomics(reading: KernelReading) -> Iterator[Remark]:
    if lines := reading.float_atomics:
        yield Remark(
            kind="float_atomics",
            message=(
                f"{plural(len(lines), 'atomic addition')} of floats: the order of the terms, and with it the "
                "last bits, differs from run to run."
            ),
            lines=lines_of(lines),
        )


def low_occupancy(reading: KernelReading) -> Iterator[Remark]:
    occupancy = reading.occupancy
    if not 0 < occupancy.share < LOW_OCCUPANCY:
        return
    used = {
        "registers": f"{reading.resources.registers} registers per thread",
        "shared memory": f"{kib(reading.resources.shared_bytes)} of shared memory per block",
        "warps": f"{reading.kernel.num_warps} warps per block",
        "blocks": f"blocks of {plural(reading.kernel.num_warps, 'warp')}",
    }
    usual = " That is usual for products on tensor cores." if reading.instructions.matrix else ""
    yield Remark(
        kind="low_occupancy",
        message=(
            f"Occupancy is {100 * occupancy.share:.3g} %: {occupancy.warps} of {occupancy.most_warps} warps "
            f"per SM, {plural(occupancy.blocks, 'block')} at a time, limited by "
            f"{' and '.join(used[limit] for limit in occupancy.binds)}.{usual}"
        ),
    )


def instruction_bound(reading: KernelReading) -> Iterator[Remark]:
    """Where issuing the instructions takes clearly longer than moving the bytes."""
    estimate = reading.estimate
    if estimate is None or estimate.binds is None or estimate.binds not in ADVICE:
        return
    instructions, memory = estimate.us[estimate.binds], estimate.us["memory"]
    if instructions > max(CLEARLY * memory, LAUNCH_US):
        yield Remark(
            kind="instruction_bound",
            message=(
                f"Its instructions take {instructions:.3g} us, its memory traffic {memory:.3g} us (estimated "
                f"for {estimate.gpu}): bound by {estimate.binds.replace('_', ' ')}. {ADVICE[estimate.binds]}"
            ),
        )


def widest_at(instructions: Instructions, access: BlockAccess) -> int | None:
    """Bits of the widest instruction that the assembly has for an access; None where no line shows it."""
    kinds = ("load", "async_copy") if access.kind == "load" else ("store",)
    return max(
        (
            instruction.bits
            for instruction in instructions.accesses
            if instruction.kind in kinds and access.line in instruction.lines
        ),
        default=None,
    )


def kib(size: int) -> str:
    """Bytes as KiB, one digit after the point where there is one."""
    return f"{size / KIB:.1f} KiB".replace(".0 ", " ")


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def lines_of(lines: "Sequence[int | None] | Iterator[int | None]") -> tuple[int, ...]:
    return tuple(sorted({line for line in lines if line is not None}))
