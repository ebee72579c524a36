"""What became of an item: one state, why, and how fast it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic import Field

from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import ViolationKind
from pytorch_to_triton.sweep.journal import Record
from pytorch_to_triton.sweep.phases import CALLS_THE_REFERENCE, Known, PhaseName, geometric_mean

State = Literal[
    "right", "done", "wrong", "cheating", "faulty", "undecided", "untimed", "not drafted", "broken",
    "timed out", "crashed", "waiting",
]  # fmt: skip
STATES: Mapping[State, str] = {
    "right": "validated, and passed all other phases",
    "done": "passed its phases; it was not asked whether it is right",
    "wrong": "its results are not PyTorch's, it raises, or it does what no kernel may do to memory",
    "cheating": "the work of a Triton kernel is left to something else, or the judge is tampered with",
    "faulty": "validated, and the audit names a fault of high severity",
    "undecided": "validation could not tell",
    "untimed": "its times cannot be measured, or not be trusted",
    "not drafted": "nothing can be drafted from it",
    "broken": "its files cannot be loaded or called, or their inputs are not declared",
    "timed out": "not done in its time",
    "crashed": "its process died, or a defect of pytorch-to-triton",
    "waiting": "not done yet",
}
VIOLATIONS: tuple[str, ...] = get_args(ViolationKind)
CHEATS = frozenset({*VIOLATIONS[VIOLATIONS.index("torch_operator") :], CALLS_THE_REFERENCE})
"""Kinds of violations that are no mistakes in a kernel: its work is done elsewhere, or the judge deceived."""


class ItemResult(Value):
    """An item of a sweep as it ended. Speed-ups are geometric means over its sizes; None: not measured."""

    key: str
    state: State
    why: str
    """What is wrong, or why there is no more; empty where all is well."""
    kinds: tuple[str, ...] = ()
    """What kinds of mistakes, and what it did that it may not do, as `validate` names them."""
    speedup_over_eager: float | None = None
    speedup_over_compile: float | None = None
    share_of_limit: float | None = None
    """Of the hardware's limit, at the largest size."""
    kernel_ms: float | None = None
    """The median at the largest size."""
    sizes: tuple[dict[str, Any], ...] = ()
    """What was measured at each size."""
    statuses: dict[str, str] = Field(default_factory=dict)
    """How each phase ended."""
    seconds: float = 0.0
    """Of all its phases."""

    @property
    def cheats(self) -> tuple[str, ...]:
        """Those of the kinds that are not the work of a kernel."""
        return tuple(kind for kind in self.kinds if kind in CHEATS)

    @property
    def speedup(self) -> float | None:
        """Over the faster of eager PyTorch and torch.compile."""
        known = [r for r in (self.speedup_over_eager, self.speedup_over_compile) if r is not None]
        return min(known, default=None)


def result_of(key: str, known: Known, phases: Sequence[PhaseName]) -> ItemResult:
    """The item's result after these phases; `known` holds its records by phase."""
    state, why = state_of(known, phases)
    timing = known.get("tune" if "tune" in phases else "time", {}) if {"tune", "time"} & {*phases} else {}
    sizes = timing.get("sizes", ()) if timing.get("status") == "measured" else ()
    verdict = known.get("validate", {})
    return ItemResult(
        key=key,
        state=state,
        why=why,
        kinds=(*verdict.get("mismatches", ()), *verdict.get("violations", ())),
        speedup_over_eager=speedup(sizes, "eager_ms"),
        speedup_over_compile=speedup(sizes, "compile_ms"),
        share_of_limit=sizes[-1]["share_of_limit"] if sizes else None,
        kernel_ms=sizes[-1]["kernel_ms"] if sizes else None,
        sizes=tuple(sizes),
        statuses={phase: known[phase]["status"] for phase in phases if phase in known},
        seconds=round(sum(known[phase]["seconds"] for phase in phases if phase in known), 3),
    )


def speedup(sizes: Sequence[Mapping[str, Any]], over: str) -> float | None:
    """The geometric mean over the sizes at which both were measured."""
    return geometric_mean(
        [size[over] / size["kernel_ms"] for size in sizes if size[over] and size["kernel_ms"]]
    )


def state_of(known: Known, phases: Sequence[PhaseName]) -> tuple[State, str]:
    """The state in which the first phase leaves the item that it does not pass, and why."""
    for phase in phases:
        record = known.get(phase)
        if record is None:
            return "waiting", ""
        if record["status"] not in _PASSED[phase]:
            return _LEFT_BY[phase](record), str(record.get("why", ""))
    return ("right" if "validate" in phases else "done"), ""


def after_draft(record: Record) -> State:
    return "not drafted" if record.get("kind") == "not_convertible" else after_any(record)


def after_validate(record: Record) -> State:
    if record["status"] == "failed":
        return "cheating" if CHEATS & {*record["violations"]} else "wrong"
    return "undecided" if record["status"] == "undecided" else after_any(record)


def after_audit(record: Record) -> State:
    return "faulty" if record["status"] == "faulty" else after_any(record)


def after_timing(record: Record) -> State:
    return "untimed"


def after_any(record: Record) -> State:
    states: Mapping[str, State] = {"refused": "broken", "timed_out": "timed out"}
    return states.get(record["status"], "crashed")


_PASSED: Mapping[PhaseName, tuple[str, ...]] = {
    "draft": ("drafted",),
    "validate": ("passed",),
    "audit": ("clean", "not run"),
    "tune": ("measured",),
    "time": ("measured",),
}
_LEFT_BY: Mapping[PhaseName, Callable[[Record], State]] = {
    "draft": after_draft,
    "validate": after_validate,
    "audit": after_audit,
    "tune": after_timing,
    "time": after_timing,
}
