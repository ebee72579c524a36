"""A sweep on its way: which phases of which items are still to be done, and what became of the items."""

from collections.abc import Sequence
from dataclasses import dataclass

from pytorch_to_triton import places
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.sweep.engine import Again, Phase, do_phase
from pytorch_to_triton.sweep.executor import Executor
from pytorch_to_triton.sweep.items import SweepItem, candidate_of, digest_of, text_of
from pytorch_to_triton.sweep.journal import Journal, Record
from pytorch_to_triton.sweep.outcome import ItemResult, result_of
from pytorch_to_triton.sweep.phases import PHASES, Known, PhaseName, Treatment


@dataclass(frozen=True)
class SweepRun:
    """Items, how they are treated, by whom, and where their records are kept."""

    items: Sequence[SweepItem]
    treatment: Treatment
    executor: Executor
    journal: Journal

    async def do(self, phase: PhaseName, again: Again | None, listener: ProgressListener) -> None:
        """The phase of all items that need it."""
        items = [item for item in self.items if phase in phases_for(item, (phase,))]

        async def done(record: Record, finished: int, count: int) -> None:
            await listener.progress(finished, count, f"{phase} {record['item']}: {record['status']}")

        step = Phase[SweepItem](
            name=phase,
            where=self.place_of(phase),
            lanes=self.executor.lanes(phase),
            seconds=self.treatment.seconds,
            work=lambda item: self.executor.do(phase, item, self.known(item)),
            digest=lambda item: self.digest(phase, item, self.known(item)),
        )
        await do_phase(step, items, self.journal, again, done)

    def results(self, phases: Sequence[PhaseName]) -> list[ItemResult]:
        """What became of each item after these phases."""
        results = []
        for item in self.items:
            if item.candidate is None and "draft" not in phases:
                why = "It has no candidate, and the phase draft was not asked for."
                results.append(ItemResult(key=item.key, state="not drafted", why=why))
            else:
                results.append(result_of(item.key, self.known(item), phases_for(item, phases)))
        return results

    def known(self, item: SweepItem) -> Known:
        """The item's records by phase, as far as they are about it as it is now, and of this device."""
        known: dict[str, Record] = {}
        for phase in PHASES:
            record = self.journal.of(item.key, phase, self.place_of(phase))
            if record is not None and record["digest"] == self.digest(phase, item, known):
                known[phase] = record
        return known

    def place_of(self, phase: PhaseName) -> str:
        return "" if phase == "draft" else self.executor.where

    def digest(self, phase: PhaseName, item: SweepItem, known: Known) -> str | None:
        """Of what the phase is about: the item, how it is treated, and its candidate; None without one.

        A candidate that was refused goes no further.
        """
        treatment = self.treatment
        if phase == "draft":
            about = (item.digest, treatment.stage, treatment.points, places.version())
            return digest_of(*about) if item.candidate is None else None
        if phase != "validate" and known.get("validate", {"status": "passed"})["status"] != "passed":
            return None
        candidate = candidate_of(item, known, treatment.out)
        if candidate is None or not candidate.target.path.is_file():
            return None
        text = text_of(candidate.target.path)
        searched = treatment.tune_seconds if phase == "tune" else None
        return digest_of(item.digest, text, treatment.points, searched, places.version())


def phases_for(item: SweepItem, phases: Sequence[PhaseName]) -> tuple[PhaseName, ...]:
    """Those of the phases that the item goes through: what has a candidate is not drafted."""
    return tuple(phase for phase in phases if phase != "draft" or item.candidate is None)


def refuse_without_candidates(items: Sequence[SweepItem], phases: Sequence[PhaseName]) -> None:
    """Raises BadInput where no item has a candidate, and none is drafted."""
    without = [item.key for item in items if item.candidate is None]
    if len(without) == len(items) and "draft" not in phases:
        raise BadInput(
            f"{without[0]} has no kernel to {phases[0]}.",
            "Add the phase draft, or name the folder of its candidates with --candidates.",
        )
