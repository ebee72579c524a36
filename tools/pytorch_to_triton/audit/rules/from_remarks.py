"""Rules that name what `inspect` remarks on compiled kernels."""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import evidence_rule

_FEW_BYTES = 32
"""Spills of up to this size do not matter."""
_WITH_TENSOR_CORES = ("f16", "bf16", "i8", "f8E4M3FN", "f8E5M2")
_BY_LIMIT = {
    "registers": "Use smaller blocks or more num_warps, so that each thread holds less.",
    "shared memory": "Use smaller blocks or fewer num_stages.",
    "warps": "Use fewer num_warps.",
    "blocks": "Use more num_warps or larger blocks.",
}


_COPY = """
INPUTS = {{"x": "float32[N]"}}
DIMS = {{"N": [4096]}}

@triton.jit
def kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + {offsets}))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)]({x}, out, {stride}, BLOCK=1024)
    return out
"""
_SQUARE = """
INPUTS = {{"x": "{dtype}[M, M]"}}
DIMS = {{"M": [32]}}
{arch}
@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.dot(x, x{precision}))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK={block})
    return out
"""
_LOOP = """
INPUTS = {{"x": "{dtype}[M, M]"}}
DIMS = {{"M": [64]}}

@triton.jit
def kernel(x_ptr, out_ptr, M, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * M + i[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in {range}:
        x = tl.load(x_ptr + at + start)
        sums = {sums}
    tl.store(out_ptr + at, sums)

def run(x):
    out = torch.empty(64, 64, device=x.device)
    kernel[(1,)](x, out, 64, BLOCK=32, num_stages={stages})
    return out
"""
_STAGED = "tl.range(0, M, BLOCK, num_stages=3)"
_ROW = """
INPUTS = {{"x": "{dtype}[N]"}}
DIMS = {{"N": [4096]}}
{autotune}
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x / tl.sum(x)).to(out_ptr.dtype.element_ty), mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, 4096{options})
    return out
"""
_TILES = """
INPUTS = {{"x": "float16[M, M]"}}
DIMS = {{"M": [64]}}

@triton.jit
def kernel(x_ptr, out_ptr, M, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, M, BLOCK):
        left = tl.load(x_ptr + i[:, None] * M + start + i[None, :])
        right = tl.load(x_ptr + (start + i[:, None]) * M + i[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out_ptr + i[:, None] * M + i[None, :], sums.to(tl.float16))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, 64, BLOCK=64, num_stages={stages})
    return out
"""


def _copy(offsets: str = "stride + i", x: str = "x", stride: int = 16) -> str:
    return _COPY.format(offsets=offsets, x=x, stride=stride)


def _square(dtype: str, block: int, precision: str = "", arch: str = "") -> str:
    return _SQUARE.format(dtype=dtype, block=block, precision=precision, arch=arch)


def _dots(range_: str = "range(0, M, BLOCK)", stages: int = 3) -> str:
    return _LOOP.format(dtype="float16", range=range_, sums="tl.dot(x, x, sums)", stages=stages)


def _sums(dtype: str = "float32", range_: str = "range(0, M, BLOCK)") -> str:
    return _LOOP.format(dtype=dtype, range=range_, sums="sums + x", stages=3)


def _row(options: str, dtype: str = "float16") -> str:
    return _ROW.format(dtype=dtype, autotune="", options=f", BLOCK=4096, {options}")


def _tuned(options: str) -> str:
    configurations = ", ".join(f'triton.Config({{"BLOCK": 4096}}, {one})' for one in ("num_warps=8", options))
    return _ROW.format(
        dtype="float16", autotune=f'@triton.autotune([{configurations}], key=["n"])', options=""
    )


_AMD, _IEEE = 'ARCH = "gfx942"', ', input_precision="ieee"'


@evidence_rule(
    CompiledCode,
    "info",
    "memory access",
    bad=(_copy(x="x[1:]"), _copy(stride=1001)),
    good=(_copy(), _copy("i", stride=1001)),
)
def alignment_unknown(code: CompiledCode) -> Iterator[Fault]:
    """The compiler cannot assume that addresses are multiples of 16, and makes narrow accesses.

    Triton looks at each argument of a launch: where an address or a size is not a multiple of 16, the
    code that it compiles assumes no alignment.

    Fix: pad rows to a multiple of 16 elements, or use tl.multiple_of where it is true.
    """
    return code.faults(
        "alignment_unknown",
        "{kernel} was compiled for arguments that are not multiples of 16, which makes some of its accesses "
        "narrow.",
        "Pad rows to a multiple of 16 elements, or use tl.multiple_of where it is true.",
    )


@evidence_rule(
    CompiledCode,
    "medium",
    "performance",
    bad=(
        _square("float16", 4, arch=_AMD),
        _square("bfloat16", 8, arch=_AMD),
        _square("float32", 32, _IEEE),
    ),
    good=(_square("float16", 16), _square("float32", 32), _square("float16", 32, _IEEE)),
)
def dot_without_tensor_cores(code: CompiledCode) -> Iterator[Fault]:
    """A tl.dot is computed without tensor cores.

    It then runs at a tenth of the speed or less: where a block is too small for tensor cores, and where
    float32 operands are multiplied exactly.

    Fix: make the blocks at least 16 by 16 (32 along K for 8-bit types).
    """
    kernel, gpu = code.compiled.name, code.gpu.name
    for at, remark in code.remarks("dot_without_tensor_cores"):
        if remark.precision == "f32 ieee":
            yield Fault(
                at,
                f"{kernel} multiplies float32 exactly, which {gpu} does without tensor cores.",
                'Try input_precision="bf16x6" or "tf32x3", which are about as precise on tensor cores.',
                proof=code.proof(remark),
                severity="info",
            )
        elif remark.precision in _WITH_TENSOR_CORES:
            yield Fault(
                at,
                f"{kernel} computes this tl.dot without tensor cores, although {gpu} has them for "
                f"{remark.precision}.",
                "Make the blocks at least 16 by 16 (32 along K for 8-bit types).",
                proof=code.proof(remark),
            )


@evidence_rule(
    CompiledCode,
    "low",
    "performance",
    bad=(_dots(stages=1), _dots("tl.range(0, M, BLOCK, num_stages=1)"), _sums(), _sums("float16")),
    good=(_dots(), _dots(_STAGED, stages=1), _sums(range_=_STAGED)),
)
def loop_without_async_copies(code: CompiledCode) -> Iterator[Fault]:
    """Each iteration of a loop waits for its own loads.

    Tensor cores and other units idle while operands come from global memory; prefetching the next blocks
    hides that. Triton prefetches for loops with tl.dot by itself, and for others only where it is asked
    to.

    Fix: launch loops with tl.dot with 2 to 5 num_stages; try tl.range(..., num_stages=3) in others.
    """
    where = f"this loop in {code.compiled.name}"
    for at, remark in code.remarks("loop_without_async_copies"):
        if not remark.figures["dots"]:
            yield Fault(
                at,
                f"Each iteration of {where} waits for its loads.",
                "Try tl.range(..., num_stages=3) and measure.",
                proof=code.proof(remark),
                severity="info",
            )
        elif not code.is_trial:
            yield Fault(
                at,
                f"Each iteration of {where} waits for the operands of its tl.dot: nothing is prefetched.",
                "Launch with num_stages of 2 to 5, or write tl.range(..., num_stages=3).",
                proof=code.proof(remark),
            )


@evidence_rule(
    CompiledCode,
    "low",
    "performance",
    bad=(_row("num_warps=1", "float32"),),
    good=(_row("num_warps=4", "float32"), _row("num_warps=8", "float32")),
)
def low_occupancy(code: CompiledCode) -> Iterator[Fault]:
    """Less than a quarter of an SM's warps are resident.

    While these few wait for memory, nothing else runs. Kernels on tensor cores can live with that, since
    each of their warps has much to compute; others seldom can.

    Fix: let a thread hold less (smaller blocks, more warps), or a block use less shared memory.
    """
    instructions, occupancy = code.inspected.instructions, code.inspected.occupancy
    if code.is_trial or instructions is None or instructions.matrix or occupancy is None:
        return
    yield from code.faults(
        "low_occupancy",
        f"{{kernel}} keeps {occupancy.warps} of {occupancy.most_warps} warps on an SM (limited by "
        f"{' and '.join(occupancy.binds)}): little else runs while these wait for memory.",
        _BY_LIMIT[occupancy.binds[0]],
    )


@evidence_rule(
    CompiledCode,
    "medium",
    "performance",
    bad=(_row("num_warps=1, maxnreg=32"), _row("num_warps=2, maxnreg=32")),
    good=(_row("num_warps=8"), _row("num_warps=4")),
)
def register_spills(code: CompiledCode) -> Iterator[Fault]:
    """The values that a thread holds do not fit into its registers.

    The rest is written to local memory, which is as slow as global memory, and read back.

    Fix: use smaller blocks, or more num_warps for the same blocks.
    """
    resources = code.compiled.resources
    if not code.is_trial and resources and resources.spill_store_bytes > _FEW_BYTES:
        yield from code.faults(
            "spills",
            f"A thread of {{kernel}} needs more registers than it has: {resources.spill_store_bytes} bytes "
            "go to local memory and back, which is as slow as global memory.",
            "Use smaller blocks, or more num_warps for the same blocks.",
        )


@evidence_rule(
    CompiledCode,
    "critical",
    "correctness",
    bad=(_TILES.format(stages=16), _TILES.format(stages=20)),
    good=(_TILES.format(stages=3),),
)
def shared_memory_over_limit(code: CompiledCode) -> Iterator[Fault]:
    """A block needs more shared memory than the GPU has for it.

    The kernel compiles but cannot be launched: Triton raises OutOfResources.

    Fix: use smaller blocks or fewer num_stages.
    """
    resources = code.compiled.resources
    if not code.is_trial and resources:
        yield from code.faults(
            "too_much_shared_memory",
            f"{{kernel}} cannot be launched on {code.gpu.name}: a block needs {resources.shared_bytes:,} "
            f"bytes of shared memory, and the limit is {code.gpu.shared_bytes_per_block:,}.",
            f"Use smaller blocks or fewer num_stages than {code.compiled.num_stages}.",
        )


@evidence_rule(
    CompiledCode,
    "info",
    "performance",
    bad=(_tuned("num_warps=1, maxnreg=32"),),
    good=(_tuned("num_warps=16"),),
)
def wasteful_configuration(code: CompiledCode) -> Iterator[Fault]:
    """One of the autotuner's configurations spills registers or cannot be launched.

    The autotuner compiles it at every new key, and seldom or never chooses it.

    Fix: remove the configuration, or let prune_configs_by drop it at such sizes.
    """
    for at, remark in code.remarks("too_much_shared_memory", "spills") if code.is_trial else ():
        what = "spills registers" if remark.kind == "spills" else "needs more shared memory than there is"
        yield Fault(
            at,
            f"The configuration {code.compiled.configuration} of {code.compiled.name} {what}: the autotuner "
            "compiles it for nothing.",
            "Remove the configuration, or let prune_configs_by drop it at such sizes.",
            proof=code.proof(remark),
        )
