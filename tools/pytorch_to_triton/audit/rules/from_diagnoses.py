"""Rules that name what a validation found wrong: one row a diagnosis (analysis/diagnosis.py)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytorch_to_triton.audit.analysis.diagnosis import Diagnosis, Occurrence
from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.examples import declared, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Rule, RuleCheck, about
from pytorch_to_triton.schema.finding import Category, Severity


@dataclass(frozen=True)
class _Row:
    """A rule on one diagnosis, which has its name."""

    name: Diagnosis
    title: str
    why: str
    fix: str
    message: str
    """With {who} (the kernel, or what was called), {call} (what was called), {what} (the code of the most
    telling evidence), {of} (` of out[0]`, or nothing) and {outputs}, all that it is about."""
    bad: str
    """A file of which it is reported."""
    severity: Severity = "critical"
    category: Category = "correctness"
    messages: Mapping[str, str] = field(default_factory=dict)
    """Other messages, by the code of the most telling evidence."""
    fixes: Mapping[str, str] = field(default_factory=dict)
    """Other fixes, likewise."""
    follows_verdict: bool = False
    """The verdict's own suggestion is better than `fix`, where it has one."""
    has_pointer: bool = False
    """What it is about is a pointer of the kernel."""

    def check(self, measured: MeasuredTarget) -> Iterator[Fault]:
        for at, occurrence in measured.occurrences(self.name):
            what = occurrence.telling.what
            yield Fault(
                at,
                self.messages.get(what, self.message).format(**_words(measured, occurrence)),
                (occurrence.telling.suggestion if self.follows_verdict else "")
                or self.fixes.get(what, self.fix),
                pointer=occurrence.outputs if self.has_pointer else "",
                proof=occurrence.proof,
            )

    @property
    def rule(self) -> Rule:
        check = RuleCheck(MeasuredTarget, self.check, (self.bad,))
        return Rule(self.name, about(self.title, self.why, self.fix), self.severity, self.category, (check,))


def _words(measured: MeasuredTarget, occurrence: Occurrence) -> dict[str, str]:
    return {
        "who": measured.who,
        "call": measured.called,
        "what": occurrence.telling.what.replace("_", " "),
        "of": f" of {occurrence.outputs}" if occurrence.outputs else "",
        "outputs": occurrence.outputs or "every tensor",
    }


_KERNEL = """{imports}
INPUTS = {{"x": "float32[N]"}}
DIMS = {{"N": [40]}}
CASES = {cases}

def reference(x):
    return {reference}

@triton.jit
def kernel(x_ptr, out_ptr, n{parameter}, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask={load})
    {step}

def run(x):
    {head}
    out = {out}
    kernel[({grid},)](x, out, x.numel(){argument}, BLOCK={block})
    return {result}
"""
_FAR = 'CASES = ("M=3 N=8", "M=3 N=8 x rows far apart")\n\ndef reference(x):\n    return x * 2\n' + declared(
    jit(
        "row, i = tl.program_id(0), tl.arange(0, B)",
        "tl.store(out_ptr + row * n + i, tl.load(x_ptr + row * stride + i) * 2)",
        takes="x_ptr, out_ptr, stride, n, B: tl.constexpr",
    ),
    "kernel[(3,)](x, out, x.stride(0), 8, B=8)",
    out="torch.empty(x.shape, device=x.device)",
    x="float32[M, N]",
    M=3,
    N=8,
)


def _kernel(value: str = "x * 2", store: str = "i < n", **changed: str) -> str:
    """A kernel that doubles its input, or does what was changed."""
    block = changed.get("block", "16")
    usual = {
        "imports": "",
        "cases": '("N=40",)',
        "reference": "x * 2",
        "parameter": "",
        "load": "i < n",
        "step": f"tl.store(out_ptr + i, {value}, mask={store})",
        "head": "x = x",
        "out": "torch.empty_like(x)",
        "grid": f"triton.cdiv(x.numel(), {block})",
        "argument": "",
        "block": block,
        "result": "out",
    }
    return _KERNEL.format(**usual | changed)


_SHORT_GRID = "x.numel() // 16"
_ROWS = (
    _Row(
        name="crashes",
        title="A call raises, does not return, or ends its process.",
        why="The reference returns at the same inputs.",
        fix="Fix what the error names, or exclude such inputs with REQUIRES.",
        message="{who} raises where the reference returns.",
        messages={
            "crashed": "{who} ends the process where the reference returns.",
            "timed_out": "{who} does not return where the reference does.",
        },
        follows_verdict=True,
        bad=_kernel(head="assert x.numel() % 16 == 0"),
    ),
    _Row(
        name="false_promise",
        title="A hint promises the compiler what does not hold.",
        why="The compiler believes tl.multiple_of, tl.max_contiguous, tl.max_constancy and tl.assume: it "
        "accesses several elements at once, at addresses that are misaligned or not theirs.",
        fix="Remove the hint, or have run pad or refuse the sizes and strides at which it does not hold.",
        message="A hint does not hold in a run: what the compiler makes of it is wrong.",
        follows_verdict=True,
        bad=_kernel("x * 2 + tl.multiple_of(n - 1, 16) * 0"),
    ),
    _Row(
        name="input_changed",
        title="A call writes to a tensor that it is given.",
        why="The reference does not. The caller goes on with other values than it passed, and gradients "
        "that are computed from them are wrong.",
        fix="Store to a new tensor, torch.empty_like(x); x.contiguous() and x.view(...) may return x itself.",
        message="{who} writes to {outputs}, which the reference does not change.",
        bad=_kernel(out="x"),
    ),
    _Row(
        name="layout_ignored",
        title="Results are wrong for tensors that are not contiguous.",
        why="The kernel computes addresses as if neighboring elements were adjacent in memory; views such "
        "as x.t() or x[:, ::2] have other strides, which PyTorch's operators respect.",
        fix="Pass the strides of every axis to the kernel, or call .contiguous() before the launch.",
        message="{who} is right for contiguous tensors only: it ignores strides.",
        bad=_kernel(out="torch.empty(x.shape, device=x.device)", cases='("N=40", "N=40 x sliced")'),
    ),
    _Row(
        name="left_to_pytorch",
        severity="medium",
        category="performance",
        title="PyTorch does the work, or part of it, in place of a Triton kernel.",
        why="Each operator beside the kernel reads and writes whole tensors again; where no kernel runs at "
        "all, there is nothing to audit.",
        fix="Compute it in the kernel, or name what is meant to stay in PyTorch with --allow-torch.",
        message="{call} lets PyTorch compute beside a kernel or in place of one.",
        follows_verdict=True,
        bad=_kernel(result="x + x"),
    ),
    _Row(
        name="low_precision_results",
        severity="medium",
        category="numerical stability",
        title="Results are only as precise as a shorter dtype.",
        why="An intermediate result, an accumulator or an operand is rounded on its way; errors are many "
        "times those of PyTorch at the same dtypes.",
        fix="Compute and accumulate in float32, and round once, at the store.",
        message="{who} loses precision in {outputs}: its error exceeds PyTorch's at the same dtypes.",
        bad=_kernel("x.to(tl.float16) * 2"),
    ),
    _Row(
        name="missing_barrier",
        title="A program reads back what other threads of its own stored, with no barrier between.",
        why="The threads of a program run in no order: one may load an element before another has stored it. "
        "With one warp, or by luck, it works.",
        fix="Put tl.debug_barrier() between the store and the load, or keep the values in registers.",
        message="A program reads elements{of} that other threads of it stored, with no barrier between.",
        follows_verdict=True,
        has_pointer=True,
        bad=_kernel(
            step="tl.store(out_ptr + n + i, x * 2, mask=i < n)\n"
            "    x = tl.load(out_ptr + n + (n - 1 - i), mask=i < n)\n"
            "    tl.store(out_ptr + i, x, mask=i < n)",
            reference="x.flip(0) * 2",
            out="torch.empty(2 * x.numel(), device=x.device)",
            block="64",
            result="out[:40]",
        ),
    ),
    _Row(
        name="misbehaves",
        category="best practices",
        title="A call does more than a kernel's wrapper should.",
        why="It changes settings of the whole process, replaces functions of others, reads files, opens "
        "connections, or leaves something running. Callers cannot foresee that, and no measurement of it can "
        "be relied on.",
        fix="Use the arguments only; set what must be set around the call and restore it.",
        message="A call of {call} affects more than its tensors: {what}.",
        follows_verdict=True,
        bad=_kernel(head='torch.set_float32_matmul_precision("medium")'),
    ),
    _Row(
        name="not_reproducible",
        severity="medium",
        title="The same call gives other bits in a second run.",
        why="No kernel adds with atomics, which would explain it: something depends on time, on chance, or "
        "on which program comes first.",
        fix="Take seeds as arguments, and look for programs that read what another one writes.",
        message="{who} returns other bits in a second run on the same values.",
        follows_verdict=True,
        bad=_kernel(
            "x * 2 + tl.rand(seed, i) * 1e-6",
            imports="import random",
            parameter=", seed",
            argument=", random.randrange(10**6)",
        ),
    ),
    _Row(
        name="offset_overflow",
        title="Offsets are computed in 32 bits, and a large tensor needs more.",
        why="Beyond 2**31 elements the offset becomes negative: the kernel reads and writes elsewhere, most "
        "often with an illegal memory access.",
        fix="Compute them in int64, as in tl.program_id(0).to(tl.int64) * stride.",
        message="Offsets{of} beyond 2**31 elements do not fit the 32 bits in which they are computed.",
        bad=_FAR,
    ),
    _Row(
        name="out_of_bounds",
        title="A kernel reads or writes memory outside of its tensors.",
        why="It reads whatever lies there, and what it writes destroys other tensors' values; far enough "
        "outside, the GPU stops with an illegal memory access.",
        fix="Mask the access with the length of the tensor along every axis that the block covers.",
        message="A load reaches outside of {outputs}: it reads whatever lies there, and far enough outside "
        "the GPU stops the program.",
        messages={
            "store_outside": "A store reaches outside of {outputs}: it overwrites what lies there, and far "
            "enough outside the GPU stops the program.",
            "overrun": "A store went past {outputs}: other values were overwritten, and far enough outside "
            "the GPU stops the program.",
        },
        follows_verdict=True,
        has_pointer=True,
        bad=_kernel(load="None"),
    ),
    _Row(
        name="race",
        title="Programs of one launch conflict over an element.",
        why="They run in no order: one may read an element before or after another writes it, or both write "
        "different values to it. The result changes from run to run.",
        fix="Let one program own each element of the output, or accumulate with tl.atomic_add into zeros.",
        message="Programs of one launch share elements{of} that one of them writes: results depend on their "
        "order.",
        follows_verdict=True,
        bad=_kernel(
            reference="x.sum()",
            load="i < n, other=0.0",
            step="tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x))",
            out="torch.zeros((), device=x.device)",
        ),
    ),
    _Row(
        name="results_overwritten",
        title="A later call changes the results of the call before.",
        why="The output lies in a buffer that is used again: whoever keeps the first result finds the second "
        "one in it.",
        fix="Allocate the output in each call; PyTorch's allocator makes that cheap.",
        message="{who} returns memory that the next call overwrites.",
        follows_verdict=True,
        bad=_kernel(
            imports="BUFFERS = {}",
            cases='("N=40 called again",)',
            out="BUFFERS.setdefault(x.shape, torch.empty_like(x))",
        ),
    ),
    _Row(
        name="size_refused",
        severity="medium",
        title="A call raises at sizes beside the declared ones: empty tensors, or larger ones.",
        why="PyTorch accepts them, so whoever uses the kernel in its place will meet the error one day: at "
        "an empty batch, or with a longer row.",
        fix="Return early where there is nothing to do, loop over tiles, or bound the sizes with REQUIRES.",
        message="{who} raises at sizes that the reference accepts.",
        follows_verdict=True,
        bad=_kernel(head="assert x.numel() > 0", cases='("N=40", "N=0")'),
    ),
    _Row(
        name="tail_wrong",
        title="The end of the output is wrong: the part that no whole block covers.",
        why="It does not show at sizes that the block divides.",
        fix="Round the grid up with triton.cdiv, and compare offsets with the true length in every mask.",
        message="{who} gets the last, partial block of {outputs} wrong.",
        bad=_kernel(out="torch.zeros_like(x)", grid=_SHORT_GRID),
    ),
    _Row(
        name="uncompilable_python",
        title="A kernel uses Python that Triton's interpreter runs and its compiler refuses.",
        why="It works under TRITON_INTERPRET=1 and fails on any GPU.",
        fix="Write it with triton.language, in functions that are decorated with @triton.jit.",
        message="{who} runs under the interpreter alone: no GPU compiler accepts what it uses.",
        follows_verdict=True,
        bad=_kernel("twice(x)", imports="def twice(x):\n    return x + x\n"),
    ),
    _Row(
        name="undefined_values",
        title="Results depend on what uninitialized memory held.",
        why="torch.empty gives memory as it was left. A kernel that reads it before it writes it returns "
        "something else from run to run.",
        fix="Write every element before it is read; start what is accumulated into with torch.zeros.",
        message="{who} returns values that depend on memory that was never written.",
        follows_verdict=True,
        bad=_kernel("tl.where(tl.load(out_ptr + i, mask=i < n) < 0, 0.0, x * 2)"),
    ),
    _Row(
        name="unstable_results",
        severity="high",
        category="numerical stability",
        title="Results are wrong for values that are large, small, infinite or otherwise special.",
        why="Random values of ordinary size, which most tests use, do not show it. In training such values "
        "come up, and one NaN spreads through the whole model.",
        fix="Use a form of the formula that is stable for such values, in branches and masked lanes too.",
        message="{who} is right for values of ordinary size, and wrong for special ones.",
        fixes={
            "not_propagated": "Propagate NaN and infinities as PyTorch does: "
            "propagate_nan=tl.PropagateNan.ALL.",
            "infinite": "Subtract the maximum before exp, and divide before squaring.",
            "nan_only": "Subtract the maximum before exp, and keep 0 / 0 and inf - inf out of masked lanes.",
            "low_precision": "Subtract the mean before squaring, and accumulate in float32.",
        },
        bad=_kernel(
            reference="torch.softmax(x, 0)",
            cases='("N=40", "N=40 large")',
            load='i < n, other=float("-inf")',
            step="y = tl.exp(x)\n    tl.store(out_ptr + i, y / tl.sum(y), mask=i < n)",
            block="64",
        ),
    ),
    _Row(
        name="unwritten_output",
        title="No program writes some elements of the output.",
        why="They hold what was in memory before: garbage that may look right in a test.",
        fix="Cover the whole output with the grid, triton.cdiv(n, BLOCK), and mask by its length alone; "
        "start what is added to with zeros.",
        message="{who} leaves elements of {outputs} unwritten: they keep what was there.",
        bad=_kernel(grid=_SHORT_GRID),
    ),
    _Row(
        name="wrong_results",
        title="A kernel does not compute what its reference computes.",
        why="Its results differ by more than the rounding error that the problem allows, in places and at "
        "sizes that no other rule explains.",
        fix="Follow the formula from the first wrong element on; validate names the likely cause.",
        message="{who} does not compute what the reference does: {outputs} is wrong beyond rounding.",
        messages={"fails_gradcheck": "{who} computes other gradients than the reference does."},
        follows_verdict=True,
        bad=_kernel("x * 3"),
    ),
)
RULES = tuple(row.rule for row in _ROWS)
