"""What a validation found, case by case."""

from typing import Literal

from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.value import Value

Decision = Literal["passed", "failed", "undecided"]
CaseStatus = Literal[
    "passed", "failed", "crashed", "timed_out", "raised", "reference_raised", "skipped", "limited",
    "undecided", "lost",
]  # fmt: skip
"""limited: beyond what is declared, the candidate does less than PyTorch. undecided: PyTorch's result and the
float64 truth are too far apart to tell what the candidate should have returned. lost: twice its process ended
with the one that it was forked from, which leaves the verdict open."""
NoResult = Literal[
    "raised", "no_gradient", "reference_withheld", "sandbox_violation", "crashed", "timed_out", "not_run",
    "not_interpreted", "lost",
]  # fmt: skip
"""Why a call, of the candidate or of the reference, has no result. no_gradient: raised, because autograd
tracked none. reference_withheld: raised, because the candidate called the reference. sandbox_violation:
raised, because the candidate did what it may not do. not_run: after too many crashes and time-outs.
not_interpreted: Triton's interpreter lacks what the kernel uses, or is too slow for that many programs."""
Kind = Literal[
    "missing_output", "extra_output", "mutates_input", "type", "dtype", "shape", "device", "transposed",
    "unwritten", "nan_only", "infinite", "not_propagated", "all_zero", "equals_input", "constant",
    "constant_factor", "constant_offset", "low_precision", "values",
]  # fmt: skip
"""What kind of wrong a wrong output is; the first that fits, in this order of preference:
what is returned, then where NaN and infinities are, then what the wrong values look like."""
Where = Literal["everywhere", "tail", "one_index", "every_nth", "range", "diagonal", "scattered"]
ViolationKind = Literal[
    "load_outside", "store_outside", "race", "missing_barrier", "false_promise", "depends_on_order",
    "wrong_without_gradients", "wrong_gradients_apart", "overrun", "reads_uninitialised", "not_reproducible",
    "overwrites_results", "shares_memory", "fails_gradcheck", "torch_operator", "no_triton_kernel",
    "output_without_kernel", "stores_nothing", "python_in_kernel", "does_not_compile", "reads_past_torch",
    "hides_operators", "inputs_changed", "tampers", "patches", "changes_flags", "leaves_running",
    "native_code", "inspects_the_process", "starts_processes", "network", "touches_files",
]  # fmt: skip
"""What a candidate may not do, whatever it returns: first what corrupts memory or cannot be relied on, then
what is not the work of a Triton kernel, then what reaches outside a kernel's business."""


class ElementValues(Value):
    """One element as each side has it; NaN and infinities as text."""

    index: tuple[int, ...]
    candidate: float | str
    pytorch: float | str
    truth: float | str
    """Computed in float64."""


class Mismatch(Value):
    """How an output is wrong."""

    output: str
    """`out`, `out[0]`, `out.logits`, or `x after the call` for an argument that was written to."""
    kind: Kind
    where: Where | None
    """None where the kind is not about single elements."""
    message: str
    """What and where, in a sentence or two."""
    causes: tuple[str, ...]
    """Those that leave no doubt; empty where several causes would look alike."""
    first: ElementValues | None
    """The first failing element."""


class Violation(Value):
    """Something that a candidate did and may not do, however right its results are."""

    kind: ViolationKind
    message: str
    """What happened, in a sentence."""
    suggestion: str
    """How to fix it."""
    file: str | None = None
    line: int | None = None
    tensor: str = ""
    """The kernel's argument whose memory it is about, where that is known."""
    overflow: bool = False
    """The access is so far from its tensor that 32 bits did not hold its offset."""


LimitKind = Literal["exception", "offsets", "dtypes", "dtypes_named"]
"""exception: the candidate raises. offsets: they are 32-bit. dtypes: a mixture of dtypes is refused, or comes
out in another dtype than PyTorch's. dtypes_named: a mixture is refused by an exception that names dtypes."""


class Limit(Value):
    """Up to where a right candidate is right; beyond that, and beyond the declaration, it does less."""

    kind: LimitKind
    subject: str
    """What is limited: `offsets of x`, `empty inputs`."""
    what: str
    """What happens: `are 32-bit from line 12 on`, `raise ValueError at k.py:3: no rows`."""
    up_to: str
    """Where the candidate is right: `right up to 2^31 elements of stride times index`."""
    fix: str
    """How to lift the limit."""
    file: str | None = None
    line: int | None = None
    tensors: tuple[str, ...] = ()
    """The tensors that it is about, where it is about some."""
    cases: tuple[str, ...] = ()
    """Names of the cases that show it."""

    def __str__(self) -> str:
        return f"{self.subject} {self.what} ({self.up_to})"


class OutputFigures(Value):
    """Measured errors of one output, in units of the rounding error that the problem allows (1 is ideal)."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    failing: int
    unjudged: int
    """Elements at which PyTorch's own result is too far from the truth to judge by."""
    unconfirmed: int = 0
    """Those of them, finite on both sides, at which the candidate agrees with neither."""
    confirmed: int = 0
    """Those of them, finite on both sides, at which it agrees with one."""
    candidate_error: float
    """Of the candidate's element that comes closest to its limit, or passes it by the most."""
    pytorch_error: float
    """The largest of PyTorch at the same dtype."""
    allowed_error: float
    """That element's limit."""
    constant: bool = False
    """All of PyTorch's elements have one value."""
    meets_strict: bool = True
    """|candidate - truth| <= 1e-5 (1 + |truth|) for float32, other dtypes see worker/truth/budget.py."""
    meets_loose: bool = True
    """The same with 1e-3. Neither decides: the budget does."""


class StridedAccess(Value):
    """A load or store of a block whose neighbouring lanes lie apart in memory, seen by the interpreter."""

    kernel: str
    file: str
    line: int
    tensor: str
    """The kernel's argument."""
    step_bytes: int
    """From lane to lane, along the axis of the block where they lie nearest."""
    lanes: int


class CaseResult(Value):
    """The result of one case."""

    name: str
    group: Group
    status: CaseStatus
    why: str
    """Empty for a passed case; else what happened, in a sentence or two."""
    reason: NoResult | None = None
    """Why there is no result to compare; None where both sides returned."""
    stopped_by: Violation | None = None
    """The violation of the process that ended the call; it is among the verdict's `violations`."""
    outputs: tuple[OutputFigures, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    violations: tuple[Violation, ...] = ()
    truth: str = ""
    """What the truth was computed in: float64; float32 or `own` where the reference cannot run in float64."""
    accesses: tuple[StridedAccess, ...] = ()
    """Those of tensors as they are declared; none where only a device was looked at."""
    configurations: tuple[str, ...] = ()
    """What its autotuned kernels took: `BLOCK=256 num_warps=4 of add_kernel`."""
    limit: Limit | None = None
    """The limit of the candidate that the case shows, whether or not that counts against it."""


class Skip(Value):
    """Something that was not tried."""

    what: str
    why: str
    declared: bool = False
    """Whether it is a declared size that no case of this run has, because it is too large."""


class Behavior(Value):
    """What the candidate did in all cases together."""

    kernels: dict[str, int]
    """Triton kernels by name, with how often each was launched."""
    operators: dict[str, int]
    """PyTorch operators that its own code called, likewise."""


class Verdict(Value):
    """Whether a candidate computes what its reference computes, on every case that was tried."""

    summary: str
    """The result in a few sentences."""
    next_step: str
    verdict: Decision
    candidate: str
    reference: str
    cases: tuple[CaseResult, ...]
    skipped: tuple[Skip, ...]
    """What was not run although it is declared, or worth trying, with the reason."""
    violations: tuple[Violation, ...] = ()
    """What the candidate did to its process rather than in one case."""
    notes: tuple[str, ...] = ()
    """What should be known, but is not wrong."""
    limits: tuple[Limit, ...] = ()
    """Up to where the candidate is right, beyond what is declared."""
    behavior: Behavior
    never_launched: tuple[str, ...] = ()
    """Kernels of the candidate's file that no case launched: nothing was seen of them."""
    smallest: str | None = None
    """The smallest case found that is wrong in the same way as the one in the summary."""
    replay: str
    """The command that runs the telling case again on the same inputs; of a passed validation, all cases."""
    seed: int
    """Generates the same inputs again."""
    device: str
    provenance: str
    """How the figures were obtained."""
