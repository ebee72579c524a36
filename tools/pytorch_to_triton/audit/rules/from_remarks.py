"""Rules that name what `inspect` remarks on compiled kernels."""

from collections.abc import Iterator
from pathlib import Path

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.examples import ROW, declared, jit
from pytorch_to_triton.audit.fault import Fault, SourceLine
from pytorch_to_triton.audit.rule import compiled_rule

_FEW_BYTES = 32
"""Spills of up to this size do not matter."""
_WITH_TENSOR_CORES = ("f16", "bf16", "i8", "f8E4M3FN", "f8E5M2")
_BY_LIMIT = {
    "registers": "Use smaller blocks or more num_warps, so that each thread holds less.",
    "shared memory": "Use smaller blocks or fewer num_stages.",
    "warps": "Use fewer num_warps.",
    "blocks": "Use more num_warps or larger blocks.",
}


_TILE = (ROW, "at = i[:, None] * n + i[None, :]")


def _copy(offsets: str = "n + i", x: str = "x", stride: int = 16) -> str:
    kernel = jit(ROW, f"tl.store(out_ptr + i, tl.load(x_ptr + {offsets}))")
    return declared(kernel, f"kernel[(1,)]({x}, out, {stride}, B=1024)", x="float32[N]", N=4096)


def _square(dtype: str, block: int, precision: str = "", arch: str = "") -> str:
    kernel = jit(*_TILE, "x = tl.load(x_ptr + at)", f"tl.store(out_ptr + at, tl.dot(x, x{precision}))")
    return arch + declared(kernel, f"kernel[(1,)](x, out, {block}, B={block})", x=f"{dtype}[M, M]", M=32)


def _loop(steps: str, range_: str, stages: int, dtype: str, block: int = 32) -> str:
    zeros, loop = "sums = tl.zeros((B, B), tl.float32)", f"for k in {range_}:"
    kernel = jit(
        *_TILE, zeros, loop, *(f"    {step}" for step in steps.split("; ")), "tl.store(out_ptr + at, sums)"
    )
    launch = f"kernel[(1,)](x, out, 64, B={block}, num_stages={stages})"
    return declared(kernel, launch, out="torch.empty(64, 64, device=x.device)", x=f"{dtype}[M, M]", M=64)


def _dots(range_: str = "range(0, n, B)", stages: int = 3) -> str:
    return _loop("x = tl.load(x_ptr + at + k); sums = tl.dot(x, x, sums)", range_, stages, "float16")


def _sums(dtype: str = "float32", range_: str = "range(0, n, B)") -> str:
    return _loop("sums = sums + tl.load(x_ptr + at + k)", range_, 3, dtype)


def _tiles(stages: int) -> str:
    loads = "x = tl.load(x_ptr + at + k); y = tl.load(x_ptr + at + k * n)"
    return _loop(f"{loads}; sums = tl.dot(x, y, sums)", "range(0, n, B)", stages, "float16", block=64)


def _row(options: str, dtype: str = "float16", tuner: str = "") -> str:
    load = "x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)"
    store = "tl.store(out_ptr + i, (x / tl.sum(x)).to(out_ptr.dtype.element_ty), mask=i < n)"
    kernel = tuner + jit(ROW, load, store)
    return declared(kernel, f"kernel[(1,)](x, out, 4096{options})", x=f"{dtype}[N]", N=4096)


def _fixed(options: str, dtype: str = "float16") -> str:
    return _row(f", B=4096, {options}", dtype)


def _tuned(options: str) -> str:
    configurations = ", ".join(f'triton.Config({{"B": 4096}}, {one})' for one in ("num_warps=8", options))
    return _row("", tuner=f'@triton.autotune([{configurations}], key=["n"])')


_STAGED = "tl.range(0, n, B, num_stages=3)"
_AMD, _IEEE = 'ARCH = "gfx942"', ', input_precision="ieee"'


@compiled_rule(
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


@compiled_rule(
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


@compiled_rule(
    "low",
    "performance",
    bad=(_dots(stages=1), _dots("tl.range(0, n, B, num_stages=1)"), _sums(), _sums("float16")),
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


@compiled_rule(
    "low",
    "performance",
    bad=(_fixed("num_warps=1", "float32"),),
    good=(_fixed("num_warps=4", "float32"), _fixed("num_warps=8", "float32")),
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


@compiled_rule(
    "medium",
    "performance",
    bad=(_fixed("num_warps=1, maxnreg=32"), _fixed("num_warps=2, maxnreg=32")),
    good=(_fixed("num_warps=8"), _fixed("num_warps=4")),
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


@compiled_rule(
    "critical",
    "correctness",
    bad=(_tiles(stages=16),),
    good=(_tiles(stages=3),),
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


@compiled_rule(
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


_SKIPPED = ("OutOfResources", "CompileTimeAssertionFailure", "PTXASError")
"""The autotuner skips a configuration that fails so."""


@compiled_rule(
    "critical",
    "correctness",
    bad=(_copy("i + tl.arange(0, 2 * B)"), _copy("tl.relu(i)")),
    good=(_copy("tl.maximum(i, 0)"),),
)
def compiler_refuses(code: CompiledCode) -> Iterator[Fault]:
    """Triton's compiler refuses a kernel.

    No launch of it runs: the first one raises the compiler's error.

    Fix: change the line that the compiler names; its message says what is wrong there.
    """
    failure = code.compiled.failure
    if failure is None or (code.is_trial and failure.type in _SKIPPED):
        return
    file = Path(failure.file) if failure.file else None
    text = " ".join(failure.message.split())
    yield Fault(
        SourceLine(failure.line or code.compiled.line, file),
        f"{code.compiled.name} does not compile, so none of its launches run: {text}",
        "Change this line: the compiler cannot compile what it uses.",
        proof=f"Compiled for {code.where}: {failure.type}: {text}",
    )
