"""Rules that name what `inspect` remarks on compiled kernels: one row a rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Rule, RuleCheck, about
from pytorch_to_triton.schema.compiled import Remark, RemarkKind
from pytorch_to_triton.schema.finding import Category, Severity


@dataclass(frozen=True)
class _Label:
    """How a rule words one remark."""

    message: str
    fix: str = ""
    """Empty: the row's."""
    severity: Severity | None = None
    """None: the row's."""


@dataclass(frozen=True)
class _Row:
    """A rule on remarks of some kinds."""

    name: str
    severity: Severity
    category: Category
    title: str
    why: str
    fix: str
    remarks: tuple[RemarkKind, ...]
    label: Callable[[CompiledCode, Remark], _Label | None]
    """None where the rule does not apply."""
    bad: tuple[str, ...]
    good: tuple[str, ...]

    def check(self, code: CompiledCode) -> Iterator[Fault]:
        """A fault for each remark that the rule applies to."""
        for at, remark in code.remarks(*self.remarks):
            if label := self.label(code, remark):
                fix, proof = label.fix or self.fix, code.proof(remark)
                yield Fault(at, label.message, fix, proof=proof, severity=label.severity)

    @property
    def rule(self) -> Rule:
        check = RuleCheck(CompiledCode, self.check, self.bad, self.good)
        return Rule(self.name, about(self.title, self.why, self.fix), self.severity, self.category, (check,))


_FEW_BYTES = 32
"""Spills of up to this size do not matter."""
_WITH_TENSOR_CORES = ("f16", "bf16", "i8", "f8E4M3FN", "f8E5M2")
_BY_LIMIT = {
    "registers": "Use smaller blocks or more num_warps, so that each thread holds less.",
    "shared memory": "Use smaller blocks or fewer num_stages.",
    "warps": "Use fewer num_warps.",
    "blocks": "Use more num_warps or larger blocks.",
}


def _unaligned(code: CompiledCode, remark: Remark) -> _Label:
    return _Label(
        f"{code.compiled.name} was compiled for arguments that are not multiples of 16, which makes some of "
        "its accesses narrow."
    )


def _without_tensor_cores(code: CompiledCode, remark: Remark) -> _Label | None:
    if remark.precision == "f32 ieee":
        return _Label(
            f"{code.compiled.name} multiplies float32 exactly, which {code.gpu.name} does without tensor "
            "cores.",
            'Try input_precision="bf16x6" or "tf32x3", which are about as precise on tensor cores.',
            severity="info",
        )
    if remark.precision not in _WITH_TENSOR_CORES:
        return None
    return _Label(
        f"{code.compiled.name} computes this tl.dot without tensor cores, although {code.gpu.name} has them "
        f"for {remark.precision}."
    )


def _waiting_loop(code: CompiledCode, remark: Remark) -> _Label | None:
    where = f"this loop in {code.compiled.name}"
    if not remark.figures["dots"]:
        return _Label(
            f"Each iteration of {where} waits for its loads.",
            "Try tl.range(..., num_stages=3) and measure.",
            severity="info",
        )
    if code.is_trial:
        return None
    return _Label(
        f"Each iteration of {where} waits for the operands of its tl.dot: nothing is prefetched.",
        "Launch with num_stages of 2 to 5, or write tl.range(..., num_stages=3).",
    )


def _low_occupancy(code: CompiledCode, remark: Remark) -> _Label | None:
    """Kernels on tensor cores are left out."""
    instructions, occupancy = code.inspected.instructions, code.inspected.occupancy
    if code.is_trial or instructions is None or instructions.matrix or occupancy is None:
        return None
    return _Label(
        f"{code.compiled.name} keeps {occupancy.warps} of {occupancy.most_warps} warps on an SM (limited by "
        f"{' and '.join(occupancy.binds)}): little else runs while these wait for memory.",
        _BY_LIMIT[occupancy.binds[0]],
    )


def _spills(code: CompiledCode, remark: Remark) -> _Label | None:
    resources = code.compiled.resources
    if code.is_trial or resources is None or resources.spill_store_bytes <= _FEW_BYTES:
        return None
    return _Label(
        f"A thread of {code.compiled.name} needs more registers than it has: {resources.spill_store_bytes} "
        "bytes go to local memory and back, which is as slow as global memory."
    )


def _over_limit(code: CompiledCode, remark: Remark) -> _Label | None:
    resources, most = code.compiled.resources, code.gpu.shared_bytes_per_block
    if code.is_trial or resources is None:
        return None
    return _Label(
        f"{code.compiled.name} cannot be launched on {code.gpu.name}: a block needs "
        f"{resources.shared_bytes:,} bytes of shared memory, and the limit is {most:,}.",
        f"Use smaller blocks or fewer num_stages than {code.compiled.num_stages}.",
    )


def _wasteful(code: CompiledCode, remark: Remark) -> _Label | None:
    if not code.is_trial:
        return None
    what = "spills registers" if remark.kind == "spills" else "needs more shared memory than there is"
    return _Label(
        f"The configuration {code.compiled.configuration} of {code.compiled.name} {what}: the autotuner "
        "compiles it for nothing."
    )


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
RULES = tuple(
    row.rule
    for row in (
        _Row(
            name="alignment_unknown",
            severity="info",
            category="memory access",
            title="The compiler cannot assume that addresses are multiples of 16, and makes narrow accesses.",
            why="Triton looks at each argument of a launch: where an address or a size is not a multiple of "
            "16, the code that it compiles assumes no alignment.",
            fix="Pad rows to a multiple of 16 elements, or use tl.multiple_of where it is true.",
            remarks=("alignment_unknown",),
            label=_unaligned,
            bad=(_copy(x="x[1:]"), _copy(stride=1001)),
            good=(_copy(), _copy("i", stride=1001)),
        ),
        _Row(
            name="dot_without_tensor_cores",
            severity="medium",
            category="performance",
            title="A tl.dot is computed without tensor cores.",
            why="It then runs at a tenth of the speed or less: where a block is too small for tensor cores, "
            "and where float32 operands are multiplied exactly.",
            fix="Make the blocks at least 16 by 16 (32 along K for 8-bit types).",
            remarks=("dot_without_tensor_cores",),
            label=_without_tensor_cores,
            bad=(
                _square("float16", 4, arch=_AMD),
                _square("bfloat16", 8, arch=_AMD),
                _square("float32", 32, _IEEE),
            ),
            good=(_square("float16", 16), _square("float32", 32), _square("float16", 32, _IEEE)),
        ),
        _Row(
            name="loop_without_async_copies",
            severity="low",
            category="performance",
            title="Each iteration of a loop waits for its own loads.",
            why="Tensor cores and other units idle while operands come from global memory; prefetching the "
            "next blocks hides that. Triton prefetches for loops with tl.dot by itself, and for others only "
            "where it is asked to.",
            fix="Launch loops with tl.dot with 2 to 5 num_stages; try tl.range(..., num_stages=3) in others.",
            remarks=("loop_without_async_copies",),
            label=_waiting_loop,
            bad=(
                _dots(stages=1),
                _dots("tl.range(0, M, BLOCK, num_stages=1)"),
                _sums(),
                _sums("float16"),
            ),
            good=(_dots(), _dots(_STAGED, stages=1), _sums(range_=_STAGED)),
        ),
        _Row(
            name="low_occupancy",
            severity="low",
            category="performance",
            title="Less than a quarter of an SM's warps are resident.",
            why="While these few wait for memory, nothing else runs. Kernels on tensor cores can live with "
            "that, since each of their warps has much to compute; others seldom can.",
            fix="Let a thread hold less (smaller blocks, more warps), or a block use less shared memory.",
            remarks=("low_occupancy",),
            label=_low_occupancy,
            bad=(_row("num_warps=1", "float32"),),
            good=(_row("num_warps=4", "float32"), _row("num_warps=8", "float32")),
        ),
        _Row(
            name="register_spills",
            severity="medium",
            category="performance",
            title="The values that a thread holds do not fit into its registers.",
            why="The rest is written to local memory, which is as slow as global memory, and read back.",
            fix="Use smaller blocks, or more num_warps for the same blocks.",
            remarks=("spills",),
            label=_spills,
            bad=(_row("num_warps=1, maxnreg=32"), _row("num_warps=2, maxnreg=32")),
            good=(_row("num_warps=8"), _row("num_warps=4")),
        ),
        _Row(
            name="shared_memory_over_limit",
            severity="critical",
            category="correctness",
            title="A block needs more shared memory than the GPU has for it.",
            why="The kernel compiles but cannot be launched: Triton raises OutOfResources.",
            fix="Use smaller blocks or fewer num_stages.",
            remarks=("too_much_shared_memory",),
            label=_over_limit,
            bad=(_TILES.format(stages=16), _TILES.format(stages=20)),
            good=(_TILES.format(stages=3),),
        ),
        _Row(
            name="wasteful_configuration",
            severity="info",
            category="performance",
            title="One of the autotuner's configurations spills registers or cannot be launched.",
            why="The autotuner compiles it at every new key, and seldom or never chooses it.",
            fix="Remove the configuration, or let prune_configs_by drop it at such sizes.",
            remarks=("too_much_shared_memory", "spills"),
            label=_wasteful,
            bad=(_tuned("num_warps=1, maxnreg=32"),),
            good=(_tuned("num_warps=16"),),
        ),
    )
)
