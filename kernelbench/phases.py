"""What is done with one problem: drafted, checked, validated, compiled ahead, timed. Each gives a record."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from kernelbench.problems import Problem
from pytorch_to_triton.benchmark.traffic import traffic_of
from pytorch_to_triton.convert.resolve import DraftOrigin
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.errors import Refusal
from pytorch_to_triton.graph.cost import product_flops
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.places import write_atomically
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.sweep.drafting import (
    WaysDrafted,
    declared_of,
    drafted,
    inputs_of,
    origin_of,
    refusal_of,
)
from pytorch_to_triton.sweep.engine import LONGEST
from pytorch_to_triton.sweep.items import digest_of, text_of
from pytorch_to_triton.sweep.journal import Journal, Record
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

HERE = Path(__file__).resolve().parent
CHECK, TIMING = str(HERE / "check.py"), str(HERE / "timing.py")
SEED = 20
MACHINE = "*"
"""The item of a record that is about the machine."""


@dataclass(frozen=True)
class Setting:
    """How all problems are treated."""

    worker: WorkerClient
    runtime: Runtime
    journal: Journal
    out: Path
    """The results folder; paths in records are relative to it."""
    stage: Stage
    small: bool
    """Whether problems are checked and validated at small sizes, not at those that they declare."""
    seconds: float
    """How long one phase of one problem may take."""
    ways: WaysDrafted = "all"
    max_autotune: bool = True
    """Whether torch.compile's max-autotune is timed where there is a product; it takes most of the time."""
    needs: tuple[str, ...] = ()
    """Modules that timings import: the fork server does it once for all of them."""

    def where(self, phase: str) -> str:
        """Sizes and device, by which results of a phase are told apart."""
        if phase == "draft":
            return ""
        device = "interpreter" if self.runtime.interpreter else "device"
        return f"{'small' if self.small else 'declared'}, {device}" if phase in SIZED else device

    def draft(self, problem: Problem) -> Record:
        """The problem's draft; empty where it has none."""
        record = self.journal.of(problem.key, "draft", "") or {}
        return record if record.get("status") == "drafted" else {}

    def digest(self, phase: str, problem: Problem) -> str | None:
        """Of what the phase is about, the problem or its draft; None where that is missing."""
        if phase == "draft":
            about = (problem.function, problem.declared, problem.backward, self.stage)
            return digest_of(text_of(problem.path), *about)
        made: str | None = self.draft(problem).get("made", "" if phase in WITHOUT_DRAFT else None)
        return made

    async def ask(self, kind: str, arguments: Mapping[str, Any], needs: tuple[str, ...] = ()) -> Record:
        """What one of the files beside this answers; or how it ended instead."""
        job = Job(kind=kind, arguments=arguments, needs=needs)
        outcome = await self.worker.ask(job, self.runtime, seconds=self.seconds)
        return outcome.answer if outcome.answer is not None else ended(outcome)


SIZED = ("check", "validate")
"""Phases that small sizes will do for."""
DEVICE_ONLY = ("compile", "time")
WITHOUT_DRAFT = DEVICE_ONLY
"""Phases for problems that are not drafted, too: eager and torch.compile are timed all the same."""

Work = Callable[[Setting, Problem], Awaitable[Record]]


async def draft_problem(setting: Setting, problem: Problem) -> Record:
    """`drafted` with its file, or `refused`; `traced` says how far it came."""
    began = time.perf_counter()
    try:
        origin = await origin_of(setting.worker, problem.conversion(setting.seconds), setting.runtime)
    except Refusal as refusal:
        return {"status": "refused", "traced": False, "refusal": refusal_of(refusal)}
    traced_at = time.perf_counter()
    try:
        drafts = await drafted(origin, setting.stage, setting.ways)
    except anyio.BrokenWorkerProcess as error:
        return {"status": "crashed", "traced": True, "why": str(error)}
    seconds = {
        "trace_seconds": round(traced_at - began, 3),
        "draft_seconds": round(time.perf_counter() - traced_at, 3),
    }
    if "refusal" in drafts:
        return {"status": "refused", "traced": True, **seconds, **drafts}
    ways = {}
    for number, (name, way) in enumerate(drafts["ways"].items()):
        text = way["text"]
        file = f"drafts/{problem.group}/{problem.name}{f'.{number}' if number else ''}.py"
        await anyio.to_thread.run_sync(write_atomically, setting.out / file, text)
        ways[name] = {"file": file, **{key: way[key] for key in ("kernels", "calls", "left")}}
    texts = [way["text"] for way in drafts["ways"].values()]
    first = setting.out / next(iter(ways.values()))["file"]
    declared = declared_of(origin)
    costs: Record = {"traffic": None, "products": False}
    if isinstance(origin, DraftOrigin):
        costs = await costs_of(setting, Target(path=first), origin, sizes_of(problem, origin))
    return {
        "status": "drafted",
        "traced": True,
        **seconds,
        "ways": ways,
        **costs,
        "stage": setting.stage,
        "made": digest_of(texts),
        "inputs": inputs_of(origin),
        "dims": declared.get("DIMS") or {},
        "requires": list(declared.get("REQUIRES") or ()),
        # The drafted `reference` says in which mode the module was traced.
        "evaluated": ".eval()" in texts[0],
    }


async def costs_of(
    setting: Setting, drafted: Target, origin: DraftOrigin, sizes: Mapping[str, int]
) -> Record:
    """What a draft moves at these sizes, and whether there are products."""
    traced, declared = origin.traced, origin.source.declared
    moved = await traffic_of(setting.worker, setting.runtime, drafted, traced, declared, sizes)
    return {
        "traffic": moved.model_dump() if moved else None,
        "products": bool(product_flops(traced.graph, sizes, {})),
    }


def sizes_of(problem: Problem, origin: DraftOrigin) -> Mapping[str, int]:
    """The largest that are declared; without any those that `convert` times."""
    dims = problem.declared.get("DIMS", {})
    return {name: max(sizes) for name, sizes in dims.items()} if dims else origin.source.timed[-1]


async def check_problem(setting: Setting, problem: Problem) -> Record:
    """What check.py says: of the first way that is not `right`."""
    draft = setting.draft(problem)
    answer: Record = {}
    for name, way in draft["ways"].items():
        arguments = {
            "problem": problem.as_json(),
            "drafted": str(setting.out / way["file"]),
            "small": setting.small,
            "device": "cpu" if setting.runtime.interpreter else "cuda",
            "evaluated": draft["evaluated"],
        }
        answer = await setting.ask(CHECK, arguments)
        if answer["status"] != "right":
            return {**answer, "why": f"{name}: {answer.get('why', '')}"}
    return answer


async def validate_problem(setting: Setting, problem: Problem) -> Record:
    """`passed`, `failed` or `undecided`, by the project's `validate`: the draft to take unmeasured."""
    draft = setting.draft(problem)
    way = next(iter(draft["ways"].values()))
    request = ValidationRequest(
        candidate=Target(path=setting.out / way["file"]),
        reference=problem.target,
        backward=problem.backward,
        options=small_options(setting, problem, draft) if setting.small else NO_OPTIONS,
        allow_torch=frozenset(way["calls"]),
        seed=SEED,
        seconds=setting.seconds,
        require_int64_offsets=True,
        require_mixed_dtypes=True,
    )
    verdict = await validate(setting.worker, request, setting.runtime)
    return {
        "status": verdict.verdict,
        "why": "" if verdict.verdict == "passed" else verdict.summary[:LONGEST],
        "cases": len(verdict.cases),
        "skipped": [f"{skip.what}: {skip.why}" for skip in verdict.skipped if skip.declared],
        "replay": verdict.replay,
    }


def small_options(setting: Setting, problem: Problem, draft: Record) -> Options:
    """The draft's dims at the sizes that check.py found to be taken by both sides."""
    checked = setting.journal.of(problem.key, "check", setting.where("check")) or {}
    if not checked.get("dims"):
        return NO_OPTIONS
    dims = {name: str(size) for name, size in checked["dims"].items()}
    return Options(inputs=draft["inputs"], dims=dims, requires=tuple(draft["requires"]))


async def compile_problem(setting: Setting, problem: Problem) -> Record:
    """`compiled`: torch.compile's and Triton's caches hold what a timing needs."""
    return await setting.ask(TIMING, timing_arguments(setting, problem, "fill_caches"), setting.needs)


async def time_problem(setting: Setting, problem: Problem) -> Record:
    """`measured`, with bytes and timings. A draft that takes the process with it costs the drafts alone."""
    arguments = timing_arguments(setting, problem, "time")
    timing = await setting.ask(TIMING, arguments, setting.needs)
    if timing["status"] == "measured":
        return {**timing, "implementations": with_fastest(timing["implementations"], arguments["drafts"])}
    if not arguments["drafts"]:
        return timing
    others = await setting.ask(TIMING, {**arguments, "drafts": {}}, setting.needs)
    if others["status"] != "measured":
        return timing
    failed = {"error": f"{timing['status']}: {timing['why']}"}
    return {**others, "implementations": {**others["implementations"], "drafted": failed}}


def with_fastest(implementations: Record, drafts: Mapping[str, str]) -> Record:
    """The implementations with the fastest draft that agrees with eager as `drafted`; it names its `way`."""
    ways = {name: implementations[name] for name in drafts}
    rest = {name: timing for name, timing in implementations.items() if name not in drafts}
    if not ways:
        return rest
    timed = {name: timing for name, timing in ways.items() if timing.get("agrees") and "median_ms" in timing}
    best = min(timed or ways, key=lambda name: ways[name].get("median_ms", math.inf))
    medians = {name: timing.get("median_ms") for name, timing in ways.items()}
    return {**rest, "drafted": {**ways[best], "way": best, "ways": medians}}


def timing_arguments(setting: Setting, problem: Problem, what: str) -> dict[str, Any]:
    draft = setting.draft(problem)
    searched = setting.max_autotune and draft.get("products", False)
    return {
        "what": what,
        "problem": {**problem.as_json(), "max_autotune": searched},
        "drafts": {name: str(setting.out / way["file"]) for name, way in draft.get("ways", {}).items()},
        "evaluated": bool(draft.get("evaluated")),
        "compile_seconds": setting.seconds / 2,
    }


async def imports_of_timings(setting: Setting) -> tuple[str, ...]:
    """Modules that each timing would import by itself; none where compiling fails, as timings will say."""
    answer = await setting.ask(TIMING, {"what": "imports"})
    return tuple(answer.get("imports", ()))


async def measure_machine(setting: Setting) -> Record:
    """The record of this machine: what it is, and its copy bandwidth."""
    answer = await setting.ask(TIMING, {"what": "machine"}, setting.needs)
    named = {"item": MACHINE, "phase": "machine", "where": setting.where("machine")}
    return {**named, "imports": setting.needs, **answer}


def ended(outcome: Outcome) -> dict[str, Any]:
    """How a job ended that gave no answer."""
    if outcome.failure is not None:
        failure = outcome.failure
        place = f" ({Path(failure.file).name}, line {failure.line})" if failure.file else ""
        return {"status": "raised", "why": f"{failure.named}{place}"[:LONGEST]}
    said = f": {outcome.log.strip().splitlines()[-1][:200]}" if outcome.log.strip() else ""
    return {"status": outcome.status, "why": f"{outcome.detail}{said}"[:LONGEST]}


PHASES: Mapping[str, Work] = {
    "draft": draft_problem,
    "check": check_problem,
    "validate": validate_problem,
    "compile": compile_problem,
    "time": time_problem,
}
"""In the order in which they are done."""
