"""What the compiler made of a kernel, and what that means on its GPU."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from pytorch_to_triton.schema.profile import Profile
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire import Failure

TextKind = Literal["ttir", "ttgir", "llir", "ptx", "amdgcn", "sass"]
"""In the compiler's order; ptx and sass on NVIDIA's GPUs, amdgcn on AMD's."""


class KernelArgument(Value):
    """An argument of a kernel as Triton specialised it."""

    name: str
    type: str
    """Triton's: `*fp32`, `i32`, `tensordesc<fp32[32, 32]>`; `constexpr` also for what Triton made one."""
    value: bool | int | float | str | None
    """None for tensors."""
    divisible_by_16: bool
    """The compiler knows that the address (in bytes) or the number is a multiple of 16."""


class ResourceUsage(Value):
    """What a thread, or a block, of a kernel occupies."""

    registers: int
    """A thread's; on AMD's GPUs VGPRs, with the accumulation registers."""
    scalar_registers: int | None
    """SGPRs of a warp; None on NVIDIA's GPUs."""
    stack_bytes: int
    """A thread's local memory (AMD: scratch), spills included."""
    spill_store_bytes: int
    """Registers of a thread that did not fit, written to local memory."""
    spill_load_bytes: int | None
    """The same read back; None on AMD's GPUs, whose compiler does not report it."""
    shared_bytes: int
    """A block's shared memory (AMD: LDS)."""


class CompiledKernel(Value):
    """One kernel in one specialisation, compiled for one GPU; or refused by the compiler."""

    number: int
    """In the order of the call's launches."""
    name: str
    file: Path
    line: int
    """Of its `def`."""
    configuration: str | None
    """Of an autotuner's trial, `BLOCK_M=64 num_warps=4`; None for other launches."""
    what_if: dict[str, int] = Field(default_factory=dict)
    """Launch options and constexprs that were asked for in place of what its launch gives."""
    arguments: tuple[KernelArgument, ...]
    grid: tuple[int, ...] | None
    """None of a kernel that was compiled and not launched."""
    num_warps: int
    num_stages: int
    num_ctas: int
    tensor_bytes: int | None = None
    """Of all tensors that its launch passes, each once; one that it passes twice is read and written."""
    resources: ResourceUsage | None = None
    """None where the compiler refused."""
    compile_seconds: float | None = None
    """None where Triton had it in its cache."""
    texts: dict[TextKind, Path] = Field(default_factory=dict)
    failure: Failure | None = None
    """The compiler's message, with the kernel's file and line, where it refused."""


class MemoryInstruction(Value):
    """Instructions of one width that read or write global memory."""

    kind: Literal["load", "store", "async_copy"]
    """async_copy: from global to shared memory, without registers in between."""
    bits: int
    """What one thread moves with one instruction; 128 is the widest that most GPUs have."""
    count: int
    """Instructions in the text, not executions."""
    lines: tuple[int, ...]
    """Of the source, as far as the compiler names them."""


class MatrixInstruction(Value):
    """Instructions on tensor cores (AMD: matrix cores) of one kind."""

    name: str
    """`mma.sync`, `wgmma`, `tcgen05.mma`, `mfma`, `wmma`."""
    shape: str
    """m, n and k of one instruction, `64x128x16`; empty where its text does not say."""
    operands: str
    """Types of a and b, `bf16`, or `e4m3 x e5m2`; as the instruction names them."""
    accumulator: str
    """Type of the sums; empty where its text does not say."""
    count: int


class Instructions(Value):
    """What a kernel's assembly contains."""

    accesses: tuple[MemoryInstruction, ...]
    matrix: tuple[MatrixInstruction, ...]
    tma_loads: int
    """Block copies by the tensor memory accelerator, global to shared."""
    tma_stores: int
    atomics: int
    """On global memory."""
    barriers: int
    """That all warps of a block wait at."""
    local_accesses: int
    """Loads and stores of local memory (AMD: scratch) as far as the text shows them; NVIDIA's spills come
    later and are in Resources alone."""


InstructionKind = Literal[
    "floating_point", "integers", "special_functions", "conversions", "memory", "shared_memory",
    "tensor_cores", "barriers", "branches", "other",
]  # fmt: skip
"""special_functions: ex2, lg2, rcp, rsqrt, sin, cos, tanh; memory: global and local; shared_memory: shuffles
too."""


class InstructionCounts(Value):
    """What each warp of a program issues, by kind: outside of loops, or in one turn of a loop."""

    line: int | None = None
    """Of the source: the loop's; None outside of loops, and where it is not known."""
    depth: int
    """0 outside of loops, 2 in a loop that is in another."""
    turns: float | None
    """Of the loop in a program, all of them together, the mean over programs; 1 outside of loops. None where
    the launch's sizes do not say it."""
    share: float | None
    """Of these instructions that a turn runs, as far as the launch's sizes decide; None with `turns`."""
    counts: dict[InstructionKind, int]
    """Instructions in the machine code, both sides of each branch; loops inside of this one are apart."""


Bound = Literal["memory", "issue", "special_functions", "tensor_cores"]


class Estimate(Value):
    """How long a launch takes at least, from the code and the GPU's data sheet; nothing was measured."""

    gpu: str
    """Whose data sheet; empty where there is none."""
    waves: float | None
    """Programs / programs that are resident at a time; None where the kernel cannot be launched."""
    least_bytes: int
    """That are read and written: all of its tensors once, or what its instructions move, if that is less."""
    us: dict[Bound, float]
    """Microseconds for each, if it were all: memory at its full bandwidth, instructions at the rates of the
    busiest SM. Only memory where it is not known how often instructions run; what there is none of is out."""
    binds: Bound | None
    """The longest; None where the instructions have no time."""
    sentence: str


Limit = Literal["registers", "shared memory", "warps", "blocks"]


class Occupancy(Value):
    """How many warps stay on an SM at a time (AMD: waves on a compute unit)."""

    blocks: int
    """0: the kernel cannot be launched."""
    warps: int
    most_warps: int
    share: float
    """warps / most_warps."""
    binds: tuple[Limit, ...]
    """What limits the blocks, several where they tie; `warps` alone where they are used up."""
    blocks_by: dict[Limit, int]
    """Blocks that each resource alone would allow."""


RemarkKind = Literal[
    "refused", "spills", "too_much_shared_memory", "low_occupancy", "narrow_access", "alignment_unknown",
    "dot_without_tensor_cores", "loop_without_async_copies", "low_precision_sum", "tf32_product",
    "float_atomics", "instruction_bound",
]  # fmt: skip


class Remark(Value):
    """Something about a kernel that may slow it down or make it inexact."""

    kind: RemarkKind
    message: str
    """Whole sentences, with the figures."""
    lines: tuple[int, ...] = ()
    """Of the source that it is about."""
    figures: dict[str, int] = Field(default_factory=dict)
    """The numbers in the message, by name: `bits` and `possible` of a narrow access."""
    precision: str = ""
    """Of a product or a sum: `f16`, or `f32 ieee`, as the compiler's text names it."""


class InspectedKernel(Value):
    """A compiled kernel, and what its text says."""

    label: str
    """Its name; `NAME#2` for the second of several with that name."""
    compiled: CompiledKernel
    instructions: Instructions | None
    """None where the compiler refused the kernel."""
    occupancy: Occupancy | None
    sections: tuple[InstructionCounts, ...] = ()
    """What is outside of loops, then each loop; empty on AMD's GPUs."""
    estimate: Estimate | None = None
    remarks: tuple[Remark, ...]


class TextPage(Value):
    """Some lines of a compiler's text."""

    kernel: str
    """Its label."""
    kind: TextKind
    page: int
    pages: int
    first_line: int
    text: str
    """Of PTX without its debugging sections, which come last."""
    whole: Path
    """The file that holds all of it."""


class Inspection(Value):
    """What the compiler made of a target's kernels."""

    summary: str
    """What a person would say."""
    next_step: str
    verdict: Literal["compiled", "refused"]
    """refused: the compiler refuses a kernel, or no kernel was reached."""
    lines: tuple[str, ...]
    """A line a kernel and configuration: what it occupies, how wide it reads and writes."""
    target: str
    arch: str
    dims: dict[str, int]
    provenance: str
    """How every figure came about: `compiled`, by which Triton, for which GPU."""
    kernels: tuple[InspectedKernel, ...]
    notes: tuple[str, ...]
    page: TextPage | None = None
    profile: Profile | None = None
