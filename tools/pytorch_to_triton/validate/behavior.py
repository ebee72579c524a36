"""From what was observed of a candidate to what it may not do. Pure: observations in, violations out."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.schema.verdict import StridedAccess, Violation, ViolationKind
from pytorch_to_triton.validate.phrases import listed, shortened, times
from pytorch_to_triton.validate.policy import Policy, packet
from pytorch_to_triton.worker.wire.observation import (
    Differs,
    MemoryFault,
    Observation,
    Overrun,
    SandboxViolation,
    SecondRun,
    Traces,
)

FILLS = frozenset(
    f"aten.{name}"
    for name in (
        "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "zeros",
        "zeros_like", "new_zeros", "zero_", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
    )
)  # fmt: skip
"""Operators by whose results PyTorch has computed nothing: memory, and constants in it."""
GRADIENT = "gradient of "
"""Begins the path of a gradient, as in the worker's calls/gradients.py."""
ITEM = "aten._local_scalar_dense"
ITEMS = 16
"""A wrapper may read so many numbers, say lengths, in one call; more where ITEM is allowed by name."""
SHOWN = 4
"""So many operators are named in a sentence."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
OVERFLOW = "Compute offsets in int64, as in tl.program_id(0).to(tl.int64) * stride: 32 bits do not hold them."
ORDERING = (
    'Store, tl.debug_barrier(), then release by an atomic operation with sem="release" or "acq_rel"; the '
    'reader acquires by one on the same place, with sem="acquire" or "acq_rel".'
)
BELOW_ZERO = (
    "Mask the access from below too: an index below zero lies before the tensor "
    "(% of a negative number keeps its sign in Triton, as in C)."
)
OUTSIDE = "Mask the access with the tensor's own length; its offset must be made of its own strides."
IN_A_KERNEL = "Compute it in a kernel, or let PyTorch do all the work with --allow-torch any."
LEFT_ALONE = "Do not replace what other code relies on."
SUGGESTIONS: dict[ViolationKind, str] = {
    "load_outside": OUTSIDE,
    "store_outside": OUTSIDE,
    "race": "Let one program own each element, or accumulate with tl.atomic_add.",
    "missing_barrier": (
        "Put tl.debug_barrier() between the store and the load: other threads have stored it."
    ),
    "false_promise": "Remove the hint, or have run pad or refuse what it does not hold for.",
    "depends_on_order": "Let no program use which of them came before it: compute places from tl.program_id.",
    "wrong_without_gradients": "Check the way that run takes under torch.no_grad().",
    "wrong_gradients_apart": (
        "Keep what the backward pass needs in ctx alone, and compute each gradient that needs_input_grad "
        "asks for."
    ),
    "overrun": "Mask the store with the tensor's own length; check the grid and the strides.",
    "reads_uninitialised": "Write every element before it is read; start accumulators with torch.zeros.",
    "not_reproducible": "Look for a race: programs that read or write what another program writes.",
    "overwrites_results": "Allocate a new output in each call.",
    "fails_gradcheck": "Derive the backward pass again: finite differences contradict it.",
    "no_triton_kernel": IN_A_KERNEL,
    "output_without_kernel": IN_A_KERNEL,
    "stores_nothing": "Look at the mask of the store, and at the grid: no element was left to store.",
    "python_in_kernel": "Write it with triton.language, in functions decorated with @triton.jit.",
    "hides_operators": "Leave PyTorch's dispatch modes alone.",
    "reads_past_torch": "Leave the elements on the device, and compute with them in a kernel.",
    "inputs_changed": "Use only the tensors that run is given.",
    "tampers": LEFT_ALONE,
    "patches": LEFT_ALONE,
    "changes_flags": "Set it around the call and put it back, or leave it to the caller.",
    "leaves_running": "Finish all work before run returns.",
    "native_code": "Remove the native code: what it does cannot be checked.",
    "inspects_the_process": "Pass what is needed as an argument.",
    "starts_processes": "Start what is needed outside of the kernel file.",
    "network": "Fetch what is needed beforehand, and pass it as an input.",
    "touches_files": "Use only the inputs, and keep intermediate results in tensors.",
}
"""How to fix what is a violation, where its kind says so."""
MEMORY_FAULTS: dict[ViolationKind, str] = {
    "load_outside": "loads from memory outside {fault.tensor}, {at} ({lanes})",
    "store_outside": "stores to memory outside {fault.tensor}, {at} ({lanes})",
    "race": "races on {fault.tensor}[{fault.offset}], {at}",
    "missing_barrier": "reads back {fault.tensor}[{fault.offset}] too early, {at}",
    "false_promise": "breaks a promise to the compiler, {at}",
}
"""What a kernel does, by the kind of the fault."""
BY_SECOND_RUN: dict[SecondRun, tuple[ViolationKind, str]] = {
    "memory": ("reads_uninitialised", "depends on what uninitialised memory held before the call"),
    "order": ("depends_on_order", "depends on the order in which programs run, and a GPU has none"),
    "reading": (
        "reads_past_torch",
        "depends on elements that Python reads where neither a kernel nor PyTorch sees it",
    ),
    "chance": ("not_reproducible", "differs from run to run, and no kernel uses atomics"),
}
"""What results that differ in a second run are, by what they differ by."""


def violations_of(case: Case, observation: Observation, policy: Policy) -> tuple[Violation, ...]:
    """What the candidate may not have done in one case."""
    return (
        *(of_memory(fault) for fault in observation.faults),
        *(overrun(damage) for damage in observation.overruns),
        *unreliable(observation),
        *shared_memory(observation),
        *foreign_work(case, observation, policy),
    )


def accesses_of(case: Case, observation: Observation) -> tuple[StridedAccess, ...]:
    """Accesses whose lanes lie apart although every tensor of the case is contiguous."""
    if any(tensor.layout != "contiguous" for tensor in tensors_in(case.arguments)):
        return ()
    return tuple(StridedAccess(**vars(block)) for block in observation.strided)


def violation(kind: ViolationKind, message: str, suggestion: str = "", **place: Any) -> Violation:
    """A violation with its kind's suggestion, or with its own; `place`: the further fields of Violation."""
    return Violation(kind=kind, message=message, suggestion=suggestion or SUGGESTIONS[kind], **place)


def of_memory(fault: MemoryFault) -> Violation:
    """A conflict over memory, an access outside of a tensor, or a promise that does not hold."""
    message = MEMORY_FAULTS[fault.kind].format(
        fault=fault,
        at=f"line {fault.line} `{fault.source}`: {fault.detail}",
        lanes=f"{times(fault.count, 'lane')}, first in program {list(fault.program)}",
    )
    return violation(
        fault.kind,
        f"{fault.kernel} {message}.",
        suggestion_for(fault),
        file=fault.file,
        line=fault.line,
        tensor=fault.tensor,
        overflow=wraps_around(fault),
    )


def suggestion_for(fault: MemoryFault) -> str:
    """What more than its kind tells how to fix a fault; empty where nothing does."""
    if fault.kind == "race" and ("release" in fault.detail or "acquire" in fault.detail):
        return ORDERING
    if not is_outside(fault):
        return ""
    if wraps_around(fault):
        return OVERFLOW
    if fault.offset < 0:
        return BELOW_ZERO
    if fault.strides_of:
        return f"The address fits the strides of {fault.strides_of}: use those of {fault.tensor} itself."
    return ""


def is_outside(fault: MemoryFault) -> bool:
    return fault.kind in ("load_outside", "store_outside")


def wraps_around(fault: MemoryFault) -> bool:
    """Whether an access is so far before or behind its tensor that its offset has lost the upper bits."""
    return is_outside(fault) and (fault.offset < -(2**30) or fault.offset - fault.elements > 2**30)


def overrun(damage: Overrun) -> Violation:
    end = f"past the end of {damage.tensor}, which has {damage.size} elements"
    place = end if damage.side == "after" else f"before the start of {damage.tensor}"
    written = f"{times(damage.elements, 'element')} there, the nearest at {damage.offset}"
    return violation("overrun", f"A store wrote {place}: {written}.", tensor=damage.tensor)


def unreliable(observation: Observation) -> Iterator[Violation]:
    """Results that depend on what memory held, on chance, or that do not last; gradients that are none."""
    if observation.gradcheck:
        yield violation("fails_gradcheck", f"torch.autograd.gradcheck disagrees: {observation.gradcheck}")
    if observation.overwritten:
        changed = ", ".join(observation.overwritten)
        yield violation(
            "overwrites_results", f"A later call changes {changed}, which the call before it returned."
        )
    if observation.written_cotangents:
        given = ", ".join(observation.written_cotangents)
        yield violation(
            "overwrites_results",
            f"The backward pass writes to the gradient of {given} that it is given: other parts of the graph "
            "may read it afterwards.",
            "Write to memory of its own, say of torch.empty_like.",
        )
    if observation.differs is not None and not uses_atomics(observation):
        yield of_second_run(observation.differs)


def of_second_run(differs: Differs) -> Violation:
    """Results that are others in a second run on the same values."""
    kind, how = BY_SECOND_RUN[differs.by]
    return violation(kind, f"{', '.join(differs.paths)} {how}.")


def shared_memory(observation: Observation) -> Iterator[Violation]:
    """Results that lie where PyTorch's lie apart: who writes to one changes the other.

    Gradients may share theirs, as autograd's do: who adds them up copies what is not theirs alone.
    """
    for output, of in sorted(observation.aliases - observation.aliases_of_reference):
        if not (output.startswith(GRADIENT) and of.startswith(GRADIENT)):
            yield violation(
                "shares_memory",
                f"{output} shares memory with {of}; in PyTorch it does not.",
                f"Return {output} in memory of its own, say of torch.empty_like: "
                f"whoever writes to it would change {of} too.",
                tensor=output,
            )


def uses_atomics(observation: Observation) -> bool:
    """Atomics add up in another order in each run; the error budget decides whether the sums are right."""
    return any(launch.atomics for launch in observation.launches)


def foreign_work(case: Case, observation: Observation, policy: Policy) -> Iterator[Violation]:
    """What PyTorch did in place of a Triton kernel."""
    foreign = sorted({name for launch in observation.launches for name in launch.python})
    if foreign:
        yield violation(
            "python_in_kernel", f"A kernel uses {shortened(foreign)}, which no GPU compiler accepts."
        )
    if policy.allows_any:
        return
    seeds = {"randint"} if observation.reference_draws or is_empty(case) else set[str]()
    if refused := policy.refused([name for name in observation.operators if packet(name) not in seeds]):
        allow = " ".join(f"--allow-torch {name.removeprefix('aten.')}" for name in refused[:SHOWN])
        yield violation(
            "torch_operator",
            f"The candidate calls {shortened(refused)}.",
            f"Compute it in a Triton kernel, or add {allow} if it is meant to stay in PyTorch.",
        )
    if (read := observation.operators.get(ITEM, 0)) > ITEMS and not policy.names(ITEM):
        yield violation(
            "torch_operator",
            f"The candidate reads {read} elements one by one, and computes with them in Python.",
            f"Leave the elements on the device and compute in a kernel, or add --allow-torch {packet(ITEM)} "
            "if branches and loops of Python need them.",
        )
    left = without_kernel(observation, policy)
    idle = not observation.launches
    if is_empty(case) or not (left or (idle and not observation.origins and tensors_in(case.arguments))):
        return
    if idle:
        yield violation("no_triton_kernel", "No Triton kernel is launched.")
    else:
        yield from unmade(observation, left)


def unmade(observation: Observation, outputs: Sequence[str]) -> Iterator[Violation]:
    """Results that no launched kernel made: those that only a kernel was to write to are told apart."""
    filled = [path for path in outputs if is_filled(observation, path)]
    if filled:
        yield stores_nothing(filled, {name for path in filled for name in observation.idle[path]})
    if others := ", ".join(path for path in outputs if path not in filled):
        kernels = ", ".join(sorted({launch.kernel for launch in observation.launches}))
        message = f"No launched kernel ({kernels}) made {others}, or a tensor that it is made from."
        yield violation("output_without_kernel", message)


def is_filled(observation: Observation, path: str) -> bool:
    """Whether a result holds what its memory was filled with, and a kernel that was given it stored nothing.

    Python that reads elements could fill it with what it has computed.
    """
    origins = observation.origins.get(path)
    return path in observation.idle and FILLS.issuperset(origins or ()) and ITEM not in observation.operators


def stores_nothing(outputs: Iterable[str], kernels: Collection[str], when: str = "") -> Violation:
    """That kernels were given these results and left them as they were; `when` follows the sentence."""
    verb = "was launched with it and stored nothing in it"
    named = ", ".join(outputs)
    message = f"No kernel wrote to {named}{when}: {listed(sorted(kernels))} {verb}."
    return violation("stores_nothing", message, tensor=named)


def never_stored(
    unblamed: Iterable[Observation], observations: Iterable[Observation], policy: Policy
) -> Iterator[Violation]:
    """Results that none of the observed cases has a kernel write to, though kernels are given them.

    In a single case that may be right: a mask may leave nothing to store. `unblamed`: the cases in which
    that was not held against the candidate.
    """
    if policy.allows_any:
        return
    made = {path for observation in observations for path in observation.made}
    idle: dict[str, set[str]] = {}
    for observation in unblamed:
        for path, kernels in observation.idle.items():
            if path not in made and is_filled(observation, path):
                idle.setdefault(path, set()).update(kernels)
    for path, names in idle.items():
        yield stores_nothing([path], names, " in any case")


def without_kernel(observation: Observation, policy: Policy) -> list[str]:
    """Results that no kernel was given, but for those that need none.

    That is what the reference too returns in its inputs' memory, unchanged; and, beside a kernel's results or
    empty ones, copies of inputs and what operators made that are allowed by name. A number that a kernel made
    and Python reads is such a result where reading is allowed by name.
    """
    changed = {*observation.origins, *observation.written}
    handed_on = {
        output for output, of in observation.aliases & observation.aliases_of_reference if of not in changed
    }
    computed = {path: origins for path, origins in observation.origins.items() if path not in handed_on}
    left = {path: origins for path, origins in computed.items() if origins is not None}
    read = observation.reads_kernels and policy.names(ITEM)
    if len(left) == len(computed) and not read:
        return list(left)
    return [path for path, origins in left.items() if not policy.is_left_to_pytorch(origins)]


def is_empty(case: Case) -> bool:
    """Whether one of its tensors, or of its sizes, is empty: then there may be nothing to launch."""
    return 0 in case.dims.values() or any(tensor.elements == 0 for tensor in tensors_in(case.arguments))


def violations_of_traces(traces: Iterable[Traces]) -> tuple[Violation, ...]:
    """What the candidate may not have done to its process; each thing once."""
    return tuple(dict.fromkeys(violation for left in traces for violation in of_traces(left)))


def refused_violation(refused: SandboxViolation) -> Violation:
    """What the sandbox refused, as a violation of the process."""
    at = f" (line {refused.line})" if refused.line else ""
    message = f"The candidate {refused.what}{at}."
    return violation(refused.kind, message, file=refused.file, line=refused.line)


def of_traces(traces: Traces) -> Iterator[Violation]:
    yield from map(refused_violation, traces.sandbox_violations)
    for patch in traces.patches:
        now = ADDRESS.sub("", patch.now)
        yield violation("patches", f"The candidate replaced {patch.name} with {now}.")
    for flag in traces.flags:
        change = f"{flag.name} from {flag.before} to {flag.now}"
        yield violation("changes_flags", f"The candidate set {change} for the whole process.")
    if traces.leftovers:
        named = shortened([f"{leftover.kind} {leftover.name}" for leftover in traces.leftovers])
        yield violation("leaves_running", f"Still running after the call: {named}.")
