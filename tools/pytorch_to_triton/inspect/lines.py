"""What the compiler made of a kernel, in a line."""

from pytorch_to_triton.schema.compiled import InspectedKernel, Instructions


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
    return f"{name}: {', '.join(figures)}"


MANY = {"load": "loads", "store": "stores", "async_copy": "async copies"}


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
