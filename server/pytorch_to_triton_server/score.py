"""Scoring kernels from Python: the third face, for reward functions and scripts.

with open_scorer(seconds=60, memory_gib=8) as scorer:
    scores = scorer.score_all([(problem, candidate) for candidate in candidates])
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.jobs.client import open_client
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.sweep.executor import Local
from pytorch_to_triton.sweep.given_text import constructed_alike, target_given
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.sweep.journal import IN_MEMORY, Journal
from pytorch_to_triton.sweep.outcome import ItemResult, State
from pytorch_to_triton.sweep.phases import PhaseName, Treatment, Unheard
from pytorch_to_triton.sweep.run import SweepRun
from pytorch_to_triton_server.machine import choose_runtime
from pytorch_to_triton_server.names import DeviceChoice

Source = str | Path
"""The path of a Python file, or a text: what does not end in `.py` or `.py:name` is one."""


class Score(Value):
    """What a candidate is worth. Speed-ups are geometric means over the sizes; None: not measured."""

    state: State
    """`right`, `wrong`, `cheating`, `broken`, `timed out`, `crashed`, `undecided`, `untimed`."""
    cause: str
    """Why it is not right; empty where it is."""
    cheats: tuple[str, ...]
    """What it did that is not the work of a kernel, as `validate` names it."""
    speedup: float | None
    """Over the faster of eager PyTorch and torch.compile."""
    speedup_over_eager: float | None
    speedup_over_compile: float | None
    share_of_limit: float | None
    seconds: float

    @property
    def is_right(self) -> bool:
        return self.state in ("right", "untimed")


@dataclass(frozen=True)
class Scorer:
    """Scores candidates, each in processes of its own; made by `open_scorer`."""

    portal: BlockingPortal
    executor: Local
    treatment: Treatment
    phases: tuple[PhaseName, ...]

    def score(self, problem: Source, candidate: Source) -> Score:
        """One candidate: a file with `run` or ModelNew, for one with `reference`, or Model and get_inputs.

        Whatever its code does is a score, never an exception. Raises FileNotFoundError for a path without a
        file.
        """
        return self.score_all([(problem, candidate)])[0]

    def score_all(self, pairs: Iterable[tuple[Source, Source]]) -> list[Score]:
        """Pairs of problem and candidate, side by side; the scores are in their order."""
        items = [self._item(str(number), *pair) for number, pair in enumerate(pairs)]
        return [score_of(result) for result in self.portal.call(self._results, items)]

    async def _results(self, items: list[SweepItem]) -> list[ItemResult]:
        journal = Journal(IN_MEMORY)
        run = SweepRun(items, self.treatment, self.executor, journal)
        try:
            for phase in self.phases:
                await run.do(phase, None, Unheard())
            return run.results(self.phases)
        finally:
            journal.close()

    def _item(self, key: str, problem: Source, candidate: Source) -> SweepItem:
        texts = self.treatment.out
        asked = target_given(str(problem), Path(), texts, f"problem-{key}")
        answer = target_given(str(candidate), Path(), texts, f"candidate-{key}")
        return constructed_alike(SweepItem(key, asked, answer), texts)


@contextmanager
def open_scorer(
    *,
    device: DeviceChoice = "auto",
    jobs: int | None = None,
    seconds: float = 120.0,
    memory_gib: float | None = None,
    timed: bool | None = None,
    python: str | None = None,
) -> Iterator[Scorer]:
    """A scorer for as long as the block lasts; its worker processes end with it.

    `jobs` candidates are dealt with at once (default: one a core, four on a GPU; one is timed at a time).
    `seconds` and `memory_gib` bound each phase of each candidate. `timed`: whether right ones are timed
    (default: where there is a GPU). Raises MissingRequirement for what this machine lacks.
    """
    with (
        tempfile.TemporaryDirectory(prefix="scorer-") as folder,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_client()) as worker,
    ):
        chosen = portal.call(choose_runtime, worker, device, python)
        runtime = chosen.model_copy(update={"memory_gib": memory_gib})
        treatment = Treatment(out=Path(folder), seconds=seconds)
        installed = portal.call(versions, worker, runtime)
        executor = Local(worker, treatment, runtime, installed, jobs or os.cpu_count() or 1, jobs or 4)
        measures = timed if timed is not None else not runtime.interpreter
        phases: tuple[PhaseName, ...] = ("validate", "time") if measures else ("validate",)
        yield Scorer(portal, executor, treatment, phases)


def score_of(result: ItemResult) -> Score:
    return Score(
        state=result.state,
        cause=result.why,
        cheats=result.cheats,
        speedup=result.speedup,
        speedup_over_eager=result.speedup_over_eager,
        speedup_over_compile=result.speedup_over_compile,
        share_of_limit=result.share_of_limit,
        seconds=result.seconds,
    )
