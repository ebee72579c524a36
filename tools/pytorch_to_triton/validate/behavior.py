"""From what a candidate was seen doing to what it may not do. Pure: observations in, violations out."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.schema.verdict import Behavior, StridedAccess, Violation, ViolationKind
from pytorch_to_triton.validate.observation import MemoryFault, Observation, Overrun, Traces

ANY = "any"
"""The policy that leaves PyTorch's operators, and whether a kernel was launched, out of the verdict."""
ALLOWED = frozenset(
    {
        # allocation and fill
        "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "zeros",
        "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
        "fill_", "fill", "zero_", "zero", "scalar_tensor", "lift_fresh", "lift_fresh_copy", "lift",
        "arange", "resize_", "set_",
        # views
        "view", "view_as", "reshape", "_reshape_alias", "_unsafe_view", "as_strided", "expand", "permute",
        "transpose", "t", "squeeze", "unsqueeze", "select", "slice", "split", "split_with_sizes", "chunk",
        "unbind", "narrow", "diagonal", "alias", "detach", "detach_", "unfold", "view_as_real",
        "view_as_complex", "real", "imag", "movedim", "flatten", "squeeze_", "unsqueeze_", "t_",
        "transpose_", "as_strided_",
        # cast, copy, clone
        "_to_copy", "to", "clone", "copy_", "copy", "contiguous", "_local_scalar_dense", "item",
        "_pin_memory", "is_pinned", "record_stream", "set_data",
        "promote_types", "result_type", "can_cast",
        # questions about a tensor that read no element
        "size", "stride", "dim", "numel", "storage_offset", "is_contiguous", "sym_size", "sym_stride",
        "sym_numel", "sym_storage_offset", "_version", "is_same_size", "_has_compatible_shallow_copy_type",
    }
)  # fmt: skip
"""What a wrapper does around its kernels: `aten` operators that allocate, fill, view, cast and copy."""
ITEM = "aten._local_scalar_dense"
ITEMS = 16
"""A wrapper may read so many numbers, say lengths, in one call."""
SHOWN = 4
"""So many operators are named in a sentence."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True)
class Policy:
    """Which operators of PyTorch a candidate may call beside ALLOWED, by name: `mm` or `aten.mm`; or ANY."""

    allow_torch: frozenset[str] = frozenset()

    @property
    def allows_any(self) -> bool:
        return ANY in self.allow_torch

    def refused(self, operators: Collection[str]) -> list[str]:
        """Those of the given operators that this policy does not allow, in their order."""
        allowed = {packet(name) for name in self.allow_torch} | ALLOWED
        return [] if self.allows_any else [name for name in operators if packet(name) not in allowed]


def packet(operator: str) -> str:
    """`aten.mm.default`, `aten.mm` and `mm` are one operator to a policy; others keep their namespace."""
    if operator.startswith("aten."):
        return operator.removeprefix("aten.").partition(".")[0]
    return operator


def violations_of(case: Case, seen: Observation, policy: Policy) -> tuple[Violation, ...]:
    """What the candidate may not have done in one case."""
    return (
        *(outside(fault) if fault.kind != "race" else race(fault) for fault in seen.faults),
        *(overrun(damage) for damage in seen.overruns),
        *unreliable(seen),
        *foreign_work(case, seen, policy),
    )


def accesses_of(case: Case, seen: Observation) -> tuple[StridedAccess, ...]:
    """Accesses whose lanes lie apart although every tensor of the case is contiguous."""
    if any(tensor.layout != "contiguous" for tensor in tensors_in(case.arguments)):
        return ()
    return tuple(StridedAccess(**block.model_dump()) for block in seen.strided)


def outside(fault: MemoryFault) -> Violation:
    kind: ViolationKind = "load_outside" if fault.kind == "load_outside" else "store_outside"
    verb = "loads from" if kind == "load_outside" else "stores to"
    message = (
        f"{fault.kernel} {verb} memory outside {fault.tensor}, line {fault.line} `{fault.source}`: "
        f"{fault.detail} ({times(fault.count, 'lane')}, first in program {list(fault.program)})."
    )
    suggestion = OVERFLOW if wraps_around(fault) else "Mask the access with the tensor's own length."
    return Violation(
        kind=kind,
        message=message,
        suggestion=suggestion,
        file=fault.file,
        line=fault.line,
        tensor=fault.tensor,
    )


def wraps_around(fault: MemoryFault) -> bool:
    """Whether an access is so far before or behind its tensor that its offset has lost the upper bits."""
    return fault.offset < -(2**30) or fault.offset - fault.elements > 2**30


def overflows(violation: Violation) -> bool:
    """Whether a violation is an access whose offset 32 bits do not hold."""
    return violation.suggestion == OVERFLOW


OVERFLOW = "Compute offsets in int64, as in tl.program_id(0).to(tl.int64) * stride: 32 bits do not hold them."


def race(fault: MemoryFault) -> Violation:
    message = (
        f"{fault.kernel} races on {fault.tensor}[{fault.offset}], line {fault.line} `{fault.source}`: "
        f"{fault.detail}."
    )
    suggestion = "Let one program own each element, or accumulate with tl.atomic_add."
    return Violation(
        kind="race",
        message=message,
        suggestion=suggestion,
        file=fault.file,
        line=fault.line,
        tensor=fault.tensor,
    )


def overrun(damage: Overrun) -> Violation:
    end = f"past the end of {damage.tensor}, which has {damage.size} elements"
    place = end if damage.side == "after" else f"before the start of {damage.tensor}"
    message = f"A store went {place}: {times(damage.elements, 'element')} there, nearest at {damage.offset}."
    suggestion = "Mask the store with the tensor's own length; check the grid and the strides."
    return Violation(kind="overrun", message=message, suggestion=suggestion, tensor=damage.tensor)


def unreliable(seen: Observation) -> Iterator[Violation]:
    """Results that depend on what memory held, on chance, or that do not last; gradients that are none."""
    if seen.hooks:
        yield Violation(
            kind="changes_flags",
            message=(
                f"The candidate leaves {', '.join(seen.hooks)} set, by which its code runs after the call."
            ),
            suggestion="Finish all work before run returns.",
        )
    if seen.gradcheck:
        yield Violation(
            kind="fails_gradcheck",
            message=f"torch.autograd.gradcheck disagrees: {seen.gradcheck}",
            suggestion="Derive the backward pass anew; finite differences of the forward pass contradict it.",
        )
    if seen.overwritten:
        yield Violation(
            kind="overwrites_results",
            message=f"A later call changes {', '.join(seen.overwritten)} of the call before.",
            suggestion="Allocate the output anew in each call.",
        )
    if seen.differs is None or uses_atomics(seen):
        return
    if seen.differs.by_what_memory_held:
        yield Violation(
            kind="reads_uninitialised",
            message=(
                f"{', '.join(seen.differs.paths)} follows what uninitialised memory held before the call."
            ),
            suggestion="Write every element before it is read; start accumulators with torch.zeros.",
        )
    else:
        yield Violation(
            kind="not_reproducible",
            message=f"{', '.join(seen.differs.paths)} differs from run to run, and no kernel uses atomics.",
            suggestion="Look for a race: programs that read or write what another program writes.",
        )


def uses_atomics(seen: Observation) -> bool:
    """Sums of atomics come in another order in each run; whether they are right says the error budget."""
    return any(launch.atomics for launch in seen.launches)


def foreign_work(case: Case, seen: Observation, policy: Policy) -> Iterator[Violation]:
    """What PyTorch did in place of a Triton kernel."""
    foreign = sorted({name for launch in seen.launches for name in launch.python})
    if foreign:
        yield Violation(
            kind="python_in_kernel",
            message=f"A kernel uses {shortened(foreign)}, which no GPU compiler accepts.",
            suggestion="Write it with triton.language, in functions decorated with @triton.jit.",
        )
    if policy.allows_any:
        return
    if refused := policy.refused(seen.operators):
        allow = " ".join(f"--allow-torch {name.removeprefix('aten.')}" for name in refused[:SHOWN])
        yield Violation(
            kind="torch_operator",
            message=f"The candidate calls {shortened(refused)}.",
            suggestion=f"Do it in a Triton kernel; or, where it is meant to stay in PyTorch, {allow}.",
        )
    if (read := seen.operators.get(ITEM, 0)) > ITEMS:
        yield Violation(
            kind="torch_operator",
            message=f"The candidate reads {read} elements one by one, to compute with them in Python.",
            suggestion="Leave the elements on the device and compute in a kernel.",
        )
    tensors = tensors_in(case.arguments)
    idle = not seen.launches
    if not (seen.untouched or (idle and tensors)) or is_empty(case):
        return
    suggestion = "Let a kernel compute it; where PyTorch may do all the work, --allow-torch any."
    if idle:
        message = "No Triton kernel is launched."
        yield Violation(kind="no_triton_kernel", message=message, suggestion=suggestion)
    else:
        kernels = ", ".join(sorted({launch.kernel for launch in seen.launches}))
        outputs = ", ".join(seen.untouched)
        message = f"No kernel that is launched ({kernels}) was given {outputs}, or what it is made of."
        yield Violation(kind="output_without_kernel", message=message, suggestion=suggestion)


def is_empty(case: Case) -> bool:
    """Whether one of its tensors, or of its sizes, is empty: then there may be nothing to launch."""
    return 0 in case.dims.values() or any(tensor.elements == 0 for tensor in tensors_in(case.arguments))


TRESPASSES: dict[str, tuple[ViolationKind, str]] = {
    "native_code": ("native_code", "A kernel file needs no native code; what it does cannot be vouched for."),
    "inspects_the_process": ("inspects_the_process", "Take what is needed as an argument."),
    "starts_processes": ("starts_processes", "Start what is needed outside of the kernel file."),
    "network": ("network", "Fetch what is needed before, and pass it as an input."),
    "touches_files": ("touches_files", "Keep to the inputs; intermediate results belong in tensors."),
    "hides_operators": ("hides_operators", "Leave PyTorch's dispatch modes alone."),
    "sends_signals": ("starts_processes", "Leave other processes alone."),
    "disguises_code": ("tampers", "Leave file names and code objects as Python makes them."),
    "tampers": ("tampers", "Leave what other code relies on as it is."),
}
"""By the kinds of the worker's integrity/conduct.py."""


def violations_of_traces(traces: Iterable[Traces]) -> tuple[Violation, ...]:
    """What the candidate may not have done to its process; each thing once."""
    return tuple(dict.fromkeys(violation for found in traces for violation in each_trace(found)))


def each_trace(traces: Traces) -> Iterator[Violation]:
    for trespass in traces.sandbox_violations:
        kind, suggestion = TRESPASSES[trespass.kind]
        at = f" (line {trespass.line})" if trespass.line else ""
        message = f"The candidate {trespass.what}{at}."
        yield Violation(
            kind=kind, message=message, suggestion=suggestion, file=trespass.file, line=trespass.line
        )
    for patch in traces.patches:
        yield Violation(
            kind="patches",
            message=f"The candidate replaced {patch.name} by {ADDRESS.sub('', patch.now)}.",
            suggestion="Leave what other code relies on as it is.",
        )
    for flag in traces.flags:
        yield Violation(
            kind="changes_flags",
            message=f"The candidate set {flag.name} from {flag.before} to {flag.now} for the whole process.",
            suggestion="Set it around the call and put it back, or leave it to the caller.",
        )
    if traces.leftovers:
        named = [f"{leftover.kind} {leftover.name}" for leftover in traces.leftovers]
        yield Violation(
            kind="leaves_running",
            message=f"Still running after the call: {shortened(named)}.",
            suggestion="Finish all work before run returns.",
        )


def notes_of(observations: Iterable[Observation], policy: Policy) -> tuple[str, ...]:
    """What should be known of a candidate that does nothing wrong."""
    seen = list(observations)
    notes = []
    unsteady = [s for s in seen if s.differs and uses_atomics(s)]
    atomic = sorted({launch.kernel for s in unsteady for launch in s.launches if launch.atomics})
    if atomic:
        notes.append(f"Results differ from run to run in their last bits: {', '.join(atomic)} uses atomics.")
    shared = sorted({(alias.output, alias.of) for s in seen for alias in s.aliases if alias.overlaps})
    notes += [f"{output} lies in the memory of {of}; the reference's does not." for output, of in shared]
    used = conduct_of(seen).operators
    named = [name for name in Policy().refused(used) if not policy.refused([name])]
    if named:
        notes.append(f"Computed by PyTorch, as allowed: {', '.join(named)}.")
    called = {packet(name) for name in used}
    unused = sorted(name for name in policy.allow_torch - {ANY} if packet(name) not in called)
    if unused:
        notes.append(
            f"--allow-torch {', '.join(unused)}: never called; operators are named as aten has them."
        )
    return tuple(notes)


def conduct_of(observations: Iterable[Observation]) -> Behavior:
    """Launches and operators of all cases added up."""
    kernels: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    for seen in observations:
        for launch in seen.launches:
            kernels[launch.kernel] += launch.count
        operators.update(seen.operators)
    return Behavior(kernels=dict(kernels), operators=dict(operators))


def shortened(names: Sequence[str]) -> str:
    """The first few names, and whether there are more."""
    return ", ".join(names[:SHOWN]) + (" and others" if len(names) > SHOWN else "")


def times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def cut(text: str, characters: int) -> str:
    """The text, or its beginning where it is longer."""
    return text if len(text) <= characters else text[:characters] + " ..."
