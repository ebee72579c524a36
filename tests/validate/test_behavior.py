"""From what was observed of a candidate to what it may not do."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.schema.verdict import ViolationKind
from pytorch_to_triton.validate.behavior import (
    violations_of,
    violations_of_traces,
)
from pytorch_to_triton.validate.notes import behavior_of, notes_of
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.worker.wire.observation import (
    ChangedSetting,
    Differs,
    Leftover,
    Observation,
    Overrun,
    Patch,
    RefusedKind,
    SandboxViolation,
    Traces,
)

from .builders import FAULT, LAUNCH

NOTHING, ANY = Policy(), Policy(frozenset({"any"}))


def observed(**seen: Any) -> Observation:
    """What was seen of a candidate that launches one kernel, with changes."""
    return Observation(**{"launches": (LAUNCH,), **seen})


def faulty(**changes: Any) -> Observation:
    """What was seen of one whose kernel does something to memory that it may not."""
    return observed(faults=(replace(FAULT, **changes),))


def case(*shape: int) -> Case:
    x = TensorArgument(name="x", dtype="float32", shape=shape or (8,))
    return Case(name="N=8", group="declared", dims={}, arguments=(x,))


def kinds(seen: Observation, policy: Policy = NOTHING, of: Case | None = None) -> list[str]:
    return [violation.kind for violation in violations_of(of or case(), seen, policy)]


def test_many_elements_are_read_one_by_one_only_where_that_is_allowed_by_name() -> None:
    seen = observed(operators={"aten._local_scalar_dense": 17}, origins={"out": None})
    (refused,) = violations_of(case(), seen, NOTHING)
    assert "reads 17 elements one by one" in refused.message
    assert "--allow-torch _local_scalar_dense" in refused.suggestion
    assert kinds(seen, Policy(frozenset({"aten._local_scalar_dense.default"}))) == []


UNSTEADY = Differs(paths=("out",), by="chance")
POISONED = Differs(paths=("out[1]",), by="memory")

UNTOUCHED = {"origins": {"out": ("aten.empty_like",)}}
"""A result that no kernel was given."""

OBSERVATIONS: list[tuple[Observation, ViolationKind, str, str]] = [
    (
        faulty(),
        "store_outside",
        "add_kernel stores to memory outside out_ptr, line 12 `tl.store(out_ptr + i, x)`: writes element 100 "
        "of 100 (28 lanes, first in program [3, 0, 0]).",
        "Mask the access",
    ),
    (faulty(kind="load_outside", count=1, offset=-(2**31)), "load_outside", "(1 lane, first", "int64"),
    (
        faulty(kind="race", detail="programs 0 and 3 store"),
        "race",
        "add_kernel races on out_ptr[100], line 12",
        "tl.atomic_add",
    ),
    (
        faulty(kind="race", detail="reads, and does not acquire"),
        "race",
        "reads, and does not acquire",
        'sem="release"',
    ),
    (
        faulty(kind="missing_barrier", detail="no barrier"),
        "missing_barrier",
        "add_kernel reads back out_ptr[100] too early, line 12",
        "tl.debug_barrier()",
    ),
    (
        faulty(kind="false_promise", detail="promises 16"),
        "false_promise",
        "add_kernel breaks a promise to the compiler, line 12 `tl.store(out_ptr + i, x)`: promises 16.",
        "Remove the hint",
    ),
    (
        observed(overruns=(Overrun(tensor="out", side="after", offset=9, elements=7, size=9),)),
        "overrun",
        "past the end of out, which has 9 elements: 7 elements there, the nearest at 9.",
        "Mask the store",
    ),
    (
        observed(overruns=(Overrun(tensor="x", side="before", offset=-1, elements=1, size=9),)),
        "overrun",
        "before the start of x: 1 element there, the nearest at -1.",
        "Mask the store",
    ),
    (
        observed(overwritten=("out",)),
        "overwrites_results",
        "changes out, which the call before it returned",
        "new output",
    ),
    (
        observed(differs=POISONED),
        "reads_uninitialised",
        "out[1] depends on what uninitialised",
        "torch.zeros",
    ),
    (
        observed(differs=Differs(paths=("out",), by="order")),
        "depends_on_order",
        "out depends on the order in which programs run",
        "tl.program_id",
    ),
    (observed(differs=UNSTEADY), "not_reproducible", "out differs from run to run", "race"),
    (observed(gradcheck="Jacobian mismatch"), "fails_gradcheck", "disagrees: Jacobian mismatch", "backward"),
    (observed(operators={"aten.mm": 1}), "torch_operator", "calls aten.mm.", "--allow-torch mm"),
    (observed(**UNTOUCHED, launches=()), "no_triton_kernel", "No Triton kernel", "--allow-torch any"),
    (observed(**UNTOUCHED), "output_without_kernel", "(add_kernel) made out", "Compute it in a kernel"),
    (
        observed(origins={"out": ("aten.zeros_like",)}, idle={"out": ("add_kernel",)}),
        "stores_nothing",
        "No kernel wrote to out: add_kernel was launched with it and stored nothing in it.",
        "mask of the store",
    ),
    (
        observed(aliases={("out", "x")}, origins={"out": None}),
        "shares_memory",
        "out shares memory with x; in PyTorch it does not.",
        "Return out in memory of its own",
    ),
]


@pytest.mark.parametrize(
    ("seen", "kind", "message", "suggestion"),
    OBSERVATIONS,
    ids=[f"{o[1]} {i}" for i, o in enumerate(OBSERVATIONS)],
)
def test_each_observation_has_its_violation(
    seen: Observation, kind: ViolationKind, message: str, suggestion: str
) -> None:
    [violation] = violations_of(case(), seen, NOTHING)
    assert violation.kind == kind
    assert message in violation.message
    assert suggestion in violation.suggestion
    if seen.faults:
        assert (violation.file, violation.line) == ("k.py", 12)


def test_a_kernel_that_only_computes_breaks_nothing() -> None:
    allocation = {"aten.empty_like": 1, "aten.as_strided": 2, "aten._to_copy.default": 1, "aten.zero_": 1}
    assert kinds(observed(operators=allocation)) == []


def test_memory_comes_before_what_is_left_to_pytorch() -> None:
    seen = observed(faults=(FAULT,), operators={"aten.mm": 1}, overwritten=("out",), **UNTOUCHED)
    assert kinds(seen) == [
        "store_outside",
        "overwrites_results",
        "torch_operator",
        "output_without_kernel",
    ]


# Policies


@pytest.mark.parametrize("name", ["mm", "aten.mm", "aten.mm.out"])
def test_an_operator_is_allowed_by_any_of_its_names(name: str) -> None:
    seen = observed(operators={"aten.mm.default": 1, "aten.addmm": 2})
    [violation] = violations_of(case(), seen, Policy(frozenset({name})))
    assert violation.message == "The candidate calls aten.addmm."
    assert kinds(seen, Policy(frozenset({name, "addmm"}))) == []


def test_operators_of_other_namespaces_are_refused_whatever_they_are_called() -> None:
    assert Policy(frozenset({"mm"})).refused(["library.mm", "aten.mm", "library.empty"]) == [
        "library.mm",
        "library.empty",
    ]


def test_many_refused_operators_are_shortened() -> None:
    names = ["aten.mm", "aten.add", "aten.mul", "aten.exp", "aten.sum"]
    [violation] = violations_of(case(), observed(operators=dict.fromkeys(names, 1)), NOTHING)
    assert violation.message == "The candidate calls aten.mm, aten.add, aten.mul, aten.exp and 1 more."


def test_any_leaves_pytorch_out_of_the_verdict_but_not_memory() -> None:
    seen = observed(launches=(), **UNTOUCHED, operators={"aten.mm": 1}, faults=(FAULT,))
    assert kinds(seen, ANY) == ["store_outside"]


def test_empty_inputs_excuse_that_nothing_is_launched() -> None:
    seen = observed(launches=(), **UNTOUCHED)
    assert kinds(seen, of=case(0, 8)) == []
    assert kinds(seen, of=case(1, 8)) == ["no_triton_kernel"]
    assert kinds(observed(operators={"aten.mm": 1}), of=case(0, 8)) == ["torch_operator"]


def test_empty_results_need_no_kernel() -> None:
    assert kinds(observed(launches=(), origins={"out": None})) == []
    assert kinds(observed(launches=(), origins={"out[0]": None, "out[1]": ("aten.zeros",)})) == [
        "no_triton_kernel"
    ]
    assert kinds(observed(launches=())) == ["no_triton_kernel"]


def test_what_pytorch_computed_or_python_read_is_not_excused_by_a_kernel_that_stores_nothing() -> None:
    idle = {"out": ("add_kernel",)}
    computed = {"origins": {"out": ("aten.mul", "aten.zeros_like")}, "idle": idle}
    assert kinds(observed(**computed)) == ["output_without_kernel"]
    read = {"origins": {"out": ("aten.full",)}, "idle": idle, "operators": {"aten._local_scalar_dense": 1}}
    assert kinds(observed(**read)) == ["output_without_kernel"]


def test_an_input_that_pytorch_returns_too_needs_no_kernel_unless_it_is_changed() -> None:
    shared = frozenset({("out[1]", "x")})
    both = {"aliases": shared, "aliases_of_reference": shared}
    handed_on = {"out[0]": None, "out[1]": ("input",)}
    assert kinds(observed(**both, origins=handed_on)) == []
    assert kinds(observed(**both, origins={"out[1]": ("input",)}, launches=())) == []
    changed = observed(**both, origins={"out[1]": ("input",)}, launches=(), written=("x",))
    assert kinds(changed) == ["no_triton_kernel"]


def test_a_copy_of_an_input_may_be_one_of_several_results_but_not_all_of_them() -> None:
    copied = ("input",)
    assert kinds(observed(origins={"out[0]": None, "out[1]": copied})) == []
    assert kinds(observed(origins={"out": copied})) == ["output_without_kernel"]
    assert kinds(observed(origins={"out[0]": copied, "out[1]": copied})) == ["output_without_kernel"]


def test_a_result_of_an_operator_allowed_by_name_stands_beside_a_kernels() -> None:
    beside = observed(origins={"out[0]": None, "out[1]": ("aten.topk",)})
    for name in ("topk", "aten.topk", "aten.topk.default"):
        allowed = Policy(frozenset({name}))
        assert kinds(beside, allowed) == []
    assert kinds(beside) == ["output_without_kernel"]
    assert kinds(observed(origins={"out": ("aten.topk",)}), allowed) == ["output_without_kernel"]


def test_a_number_that_a_kernel_made_is_a_result_where_python_may_read_it() -> None:
    allowed = Policy(frozenset({"_local_scalar_dense", "sort"}))
    sorted_alone = {"out": ("aten.sort",)}
    assert kinds(observed(origins=sorted_alone, reads_kernels=True), allowed) == []
    assert kinds(observed(origins=sorted_alone), allowed) == ["output_without_kernel"]
    only_sort = Policy(frozenset({"sort"}))
    assert kinds(observed(origins=sorted_alone, reads_kernels=True), only_sort) == ["output_without_kernel"]
    unnamed = observed(origins={"out": ("aten.topk",)}, reads_kernels=True)
    assert kinds(unnamed, allowed) == ["output_without_kernel"]


def test_an_access_by_other_strides_or_below_zero_is_not_told_to_mask_the_length() -> None:
    by_strides = replace(FAULT, strides_of="x_ptr")
    below = replace(FAULT, offset=-3)
    (strides, negative) = violations_of(case(), observed(faults=(by_strides, below)), NOTHING)
    assert strides.suggestion == "The address fits the strides of x_ptr: use those of out_ptr itself."
    assert "% of a negative number keeps its sign" in negative.suggestion


# From run to run


def test_atomics_turn_a_difference_in_the_last_bits_into_a_note() -> None:
    atomic = (replace(LAUNCH, kernel="sum_kernel", atomics=True),)
    seen = observed(differs=UNSTEADY, launches=atomic)
    assert kinds(seen) == []
    assert [*notes_of([seen, seen], NOTHING)] == [
        "Results differ from run to run in their last bits: sum_kernel uses atomics.",
    ]
    assert [*notes_of([observed(differs=UNSTEADY)], NOTHING)] == []


# Notes and totals


def test_a_copy_of_what_pytorch_returns_as_it_is_is_noted_once() -> None:
    seen = observed(aliases_of_reference={("out[1]", "x")}, origins={"out[1]": None})
    assert kinds(seen) == []
    assert [*notes_of([seen, seen], NOTHING)] == [
        "out[1] has memory of its own in some cases where PyTorch's shares that of x.",
    ]


def test_gradients_may_share_memory_as_those_of_autograd_do() -> None:
    gradients = {"gradient of x": None, "gradient of y": None}
    seen = observed(aliases={("gradient of y", "gradient of x")}, origins=gradients)
    assert kinds(seen) == []
    assert kinds(observed(aliases={("gradient of x", "x")}, origins=gradients)) == ["shares_memory"]


def test_what_pytorch_computes_is_noted_where_it_is_allowed() -> None:
    seen = observed(operators={"aten.mm": 1, "aten.empty_like": 1})
    note = "Computed by PyTorch, as allowed: aten.mm."
    for policy in (Policy(frozenset({"mm"})), ANY):
        assert [*notes_of([seen], policy)] == [note]
    assert [*notes_of([seen], NOTHING)] == []


def test_launches_and_operators_of_all_cases_are_added_up() -> None:
    one = observed(
        launches=(replace(LAUNCH, count=2), replace(LAUNCH, kernel="b_kernel")), operators={"aten.mm": 1}
    )
    found = behavior_of([one, observed(operators={"aten.mm": 2, "aten.add": 1})])
    assert found.kernels == {"add_kernel": 3, "b_kernel": 1}
    assert found.operators == {"aten.mm": 3, "aten.add": 1}


# Traces


def refused(kind: RefusedKind) -> Traces:
    return Traces(sandbox_violations=(SandboxViolation(kind=kind, what="does this", file="k.py", line=7),))


def test_each_sandbox_violation_is_a_violation_with_its_line() -> None:
    for kind in get_args(RefusedKind):
        [violation] = violations_of_traces([refused(kind)])
        assert violation.kind == kind
        assert violation.message == "The candidate does this (line 7)."
        assert (violation.file, violation.line) == ("k.py", 7)
        assert violation.suggestion


TRACES: list[tuple[Traces, ViolationKind, str]] = [
    (Traces(patches=(Patch(name="torch.mm", now="k.mm"),)), "patches", "replaced torch.mm with k.mm."),
    (
        Traces(flags=(ChangedSetting(name="torch.get_num_threads", before=1, now=4),)),
        "changes_flags",
        "set torch.get_num_threads from 1 to 4",
    ),
    (Traces(leftovers=(Leftover(kind="thread", name="w"),)), "leaves_running", "after the call: thread w"),
]


@pytest.mark.parametrize(("traces", "kind", "message"), TRACES, ids=[t[1] for t in TRACES])
def test_what_is_left_in_the_process_is_a_violation(
    traces: Traces, kind: ViolationKind, message: str
) -> None:
    [violation] = violations_of_traces([traces])
    assert violation.kind == kind
    assert message in violation.message


def test_the_same_trace_of_several_processes_is_reported_once() -> None:
    found = violations_of_traces([refused("network"), Traces(), refused("network"), refused("native_code")])
    assert [violation.kind for violation in found] == ["network", "native_code"]
