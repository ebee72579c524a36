"""Mutants judged by `validate`, with its ordinary plan, until the first wrong case."""

from __future__ import annotations

import ast
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from mutants.bases import Base
from mutants.compiled import OF_DTYPES, Comparison
from mutants.mutate import Mutant, digest_of, with_tripwire
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.sweep.journal import Record
from pytorch_to_triton.targets.describe import declaration_of
from pytorch_to_triton.validate.conclusion import WRONG
from pytorch_to_triton.validate.notes import second_turn
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import Validation, open_validation

PHASE = "validate"
Fate = dict[str, Any]
"""The status of a mutant, why, and of a refused one how its first wrong `case` ended."""


@dataclass(frozen=True)
class Judging:
    """How mutants are judged, and where their files lie meanwhile."""

    worker: WorkerClient
    runtime: Runtime
    folder: Path
    seed: int
    call_seconds: float
    """For each call of a mutant."""
    mutant_seconds: float
    """For all of a mutant: then nothing is known of it."""

    @property
    def where(self) -> str:
        return "interpreter" if self.runtime.interpreter else "device"

    def request(self, base: Base, path: Path) -> ValidationRequest:
        return ValidationRequest(
            candidate=Target(path=path),
            reference=Target(path=base.path),
            backward=base.backward,
            allow_torch=frozenset(base.calls),
            seed=self.seed,
            seconds=self.call_seconds,
            stop="at once",
        )


async def judge_base(judging: Judging, base: Base) -> Record:
    """The verdict on the unchanged kernel: what it names as limits is none of its mutants' doing."""
    request = judging.request(base, base.path)
    async with open_validation(judging.worker, request, judging.runtime) as validation:
        verdict = await validation.verdict(request, "base")
    known = {
        "limits": limits_of(verdict),
        "never_launched": verdict.never_launched,
        "skipped": [skip.what for skip in verdict.skipped],
    }
    about = {"item": base.name, "phase": PHASE, "where": judging.where, "digest": digest_of(base.text)}
    return {**about, "status": verdict.verdict, "why": verdict.summary, **known}


async def judge(
    judging: Judging, base: Base, known: Record, mutants: Sequence[Mutant], add: Callable[[Record], None]
) -> None:
    """Judge mutants of one base, one after the other; each is added as it is done.

    After one that was not decided a fresh reference takes the rest: the old one may be out of step.
    """
    waiting = deque(mutants)
    while waiting:
        began = time.monotonic()
        fate: Fate = {}
        try:
            async with open_validation(
                judging.worker, judging.request(base, base.path), judging.runtime
            ) as validation:
                while waiting and fate.get("status") != "undecided":
                    began = time.monotonic()
                    fate = await fate_of(judging, validation, base, known, waiting[0])
                    add(record_of(judging, waiting.popleft(), fate, began))
        except Refusal as refusal:
            add(record_of(judging, waiting.popleft(), {"status": "undecided", "why": str(refusal)}, began))


def record_of(judging: Judging, mutant: Mutant, fate: Fate, began: float) -> Record:
    about = {"item": mutant.key, "phase": PHASE, "where": judging.where, "digest": mutant.digest}
    seconds = round(time.monotonic() - began, 1)
    return {**about, "id": mutant.id, "operator": mutant.operator, "seconds": seconds, **fate}


async def fate_of(
    judging: Judging, validation: Validation, base: Base, known: Record, mutant: Mutant
) -> Fate:
    """What became of one mutant, within its time. Raises a Refusal where it cannot be judged."""
    if mutant.function in known["never_launched"]:
        return {"status": "unreached", "why": "its kernel is never launched"}
    with anyio.move_on_after(judging.mutant_seconds):
        return await outcome(judging, validation, base, known, mutant)
    return {"status": "undecided", "why": f"not done within {judging.mutant_seconds:g} s"}


async def outcome(
    judging: Judging, validation: Validation, base: Base, known: Record, mutant: Mutant
) -> Fate:
    """refused; limited, where it is limited and the base is not; equivalent, survived or unreached."""
    name = mutant.digest
    path = judging.folder / f"{name}.py"
    path.write_text(mutant.text, encoding="utf-8")
    verdict = await validation.verdict(judging.request(base, path), name)
    if verdict.verdict == "failed":
        first = next((case for case in verdict.cases if case.status in WRONG), None)
        how = first.status if first else "violation"
        return {"status": "refused", "how": how, "case": first.name if first else "", "why": verdict.summary}
    if limits := [limit for limit in limits_of(verdict) if limit not in known["limits"]]:
        return {"status": "limited", "why": "; ".join(limits)}
    path.write_text(with_tripwire(base.text, mutant.line), encoding="utf-8")
    wired = await validation.verdict(judging.request(base, path), f"{name}-tripwire")
    if wired.verdict == verdict.verdict and limits_of(wired) == limits_of(verdict):
        return {"status": "unreached", "why": "no case runs this line"}
    if single := loop_of_one_turn(base, mutant, known["skipped"]):
        return {"status": "unreached", "why": f"no case takes {single}, as the verdict on its kernel says"}
    if mutant.operator not in OF_DTYPES:
        return {"status": "survived", "why": verdict.summary}
    path.write_text(mutant.text, encoding="utf-8")
    declaration = declaration_of(validation.description, validation.description)
    comparison = Comparison(judging.worker, judging.runtime, base.path, path, declaration)
    compiled = await comparison.outcome(first_case_that_differs(verdict, wired))
    status = "equivalent" if compiled == "same" else "survived"
    return {"status": status, "why": f"compiled code: {compiled}. {verdict.summary}"}


def loop_of_one_turn(base: Base, mutant: Mutant, skipped: Sequence[str]) -> str | None:
    """The loop about the mutant's line whose second turn the verdict on its kernel names as not tried.

    In the first one the mutant was right.
    """
    loops = (node for node in ast.walk(ast.parse(base.text)) if isinstance(node, ast.For))
    around = (loop for loop in loops if loop.lineno <= mutant.line <= (loop.end_lineno or loop.lineno))
    names = (second_turn(loop.iter.lineno, mutant.function) for loop in around)
    return next((name for name in names if name in skipped), None)


def first_case_that_differs(verdict: Verdict, other: Verdict) -> str:
    """The first case of `other` that ended otherwise in `one`."""
    ends = {case.name: case.status for case in verdict.cases}
    return next(case.name for case in other.cases if ends.get(case.name) != case.status)


def limits_of(verdict: Verdict) -> list[str]:
    """The limits without the lines that show them."""
    return sorted({f"{limit.kind}: {limit.subject}" for limit in verdict.limits})
