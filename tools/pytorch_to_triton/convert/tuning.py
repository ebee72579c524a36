"""The last stage, by measurement: who computes what, and with which launch configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pytorch_to_triton.benchmark.timing_trial import Implementation
from pytorch_to_triton.convert.gates import COMPILE, EAGER, label_of
from pytorch_to_triton.convert.request import LAST
from pytorch_to_triton.convert.work import ConversionWork, note_on, side_by_side, tuning_file
from pytorch_to_triton.draft.file.launches import Variant
from pytorch_to_triton.draft.file.module import Drafted
from pytorch_to_triton.draft.library import Ways
from pytorch_to_triton.draft.schedule.schedule import Config
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.expression import holds, names_in
from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import TimingTable


@dataclass(frozen=True)
class Tuned:
    """The last stage with measured launch configurations."""

    drafted: Drafted
    table: TimingTable | None
    """All stages side by side, where what was measured while tuning says it all."""
    ways: str = ""
    """What was measured of who computes what: a sentence, where there was a choice."""


@dataclass
class ConfigChoice:
    """The configurations of one kernel, by the label that they are timed under."""

    variant: Variant
    labels: dict[str, Config] = field(default_factory=dict)

    def best(self, table: TimingTable) -> tuple[str, Config]:
        """The fastest; the first where none could be timed."""
        timed = [timing for timing in table.timings if timing.label in self.labels]
        label = min(timed, key=lambda timing: timing.median_ms).label if timed else next(iter(self.labels))
        return label, self.labels[label]


async def tune(work: ConversionWork, reports: Sequence[StageReport]) -> Tuned:
    """Time all configurations of the last stage beside the stages so far; draft it with the best."""
    ways, measured = await fastest_ways(work)
    choices = await written_choices(work, ways)
    if not choices:
        return Tuned(await work.draft(LAST, ways), None, measured)
    implementations = [*stage_subjects(work, reports), *candidates(work, choices)]
    if len(choices) == 1:
        implementations.append(compiled_target(work))  # else all are timed again, with the last stage
    table = await side_by_side(work, implementations)
    best = {choice.variant.kernel: choice.best(table) for choice in choices}
    tuned = {kernel: config for kernel, (_, config) in best.items()}
    drafted = await work.draft(LAST, ways, tuned, await note_on(work))
    (label, _), *others = best.values()
    return Tuned(drafted, None if others else renamed(table, label, label_of(LAST)), measured)


async def fastest_ways(work: ConversionWork) -> tuple[Ways, str]:
    """Who computes convolutions and products, each way tuned as it runs; and a sentence about it."""
    drafts: dict[str, Ways] = {}
    texts: set[str] = set()
    for number, ways in enumerate(work.ways):
        with suppress(NotConvertible):
            text = work.drafted(2, ways).text
            if text not in texts:
                drafts[f"way {number}"] = ways
                written(work, f"way {number}", text)
            texts.add(text)
    first = next(iter(drafts.values()))
    if len(drafts) == 1:
        return first, ""
    table = await side_by_side(
        work, [Implementation(n, Target(path=tuning_file(work, n)), "candidate") for n in drafts]
    )
    milliseconds = {t.label: t.median_ms for t in table.timings}
    if not milliseconds:
        return first, ""
    best, *others = sorted(milliseconds, key=lambda label: milliseconds[label])
    told = [f"{drafts[label]}, {milliseconds[label]:.3f} ms" for label in (best, *others)]
    return drafts[best], f"Fastest on {table.device}: {told[0]}; then {'; '.join(told[1:])}."


async def written_choices(work: ConversionWork, ways: Ways) -> list[ConfigChoice]:
    """A file for each configuration of each kernel that runs at the timed size, the others as they are."""
    untuned = work.drafted(LAST, ways)
    dims = work.target.timing_case().dims
    choices = [ConfigChoice(v) for k in untuned.kernels for v in k.variants if may_run(v, dims)]
    for choice in choices:
        for number, config in enumerate(choice.variant.candidates):
            label = f"{choice.variant.kernel} {number}"
            written(work, label, work.drafted(LAST, ways, {choice.variant.kernel: config}).text)
            choice.labels[label] = config
    return choices


def may_run(variant: Variant, dims: Mapping[str, int]) -> bool:
    """Whether this variant is launched at these dimensions; sizes that come from values are unknown there."""
    return not names_in(variant.condition) <= dims.keys() or holds(variant.condition, dims)


def written(work: ConversionWork, label: str, text: str) -> None:
    file = tuning_file(work, label)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")


def candidates(work: ConversionWork, choices: Sequence[ConfigChoice]) -> list[Implementation]:
    return [
        Implementation(label, Target(path=tuning_file(work, label)), "candidate")
        for choice in choices
        for label in choice.labels
    ]


def stage_subjects(work: ConversionWork, reports: Sequence[StageReport]) -> list[Implementation]:
    """Eager PyTorch and the stages that are right."""
    right = [report for report in reports if report.verdict.verdict == "passed"]
    stages = [Implementation(label_of(r.stage), Target(path=r.file), "candidate") for r in right]
    return [Implementation(EAGER, work.request.target, "reference"), *stages]


def compiled_target(work: ConversionWork) -> Implementation:
    """The target through torch.compile."""
    return Implementation(COMPILE, work.request.target, "reference", "default")


async def timed(work: ConversionWork, reports: Sequence[StageReport]) -> TimingTable | None:
    """Eager PyTorch, torch.compile and all stages that are right side by side; None where none is."""
    implementations = stage_subjects(work, reports)
    if len(implementations) == 1:
        return None
    return await side_by_side(work, [*implementations, compiled_target(work)])


def renamed(table: TimingTable, winner: str, label: str) -> TimingTable:
    """The table with the winner under another label, and without the other configurations."""
    keep = {winner: label, **{name: name for name in (EAGER, COMPILE, label_of(1), label_of(2))}}
    timings = [t.model_copy(update={"label": keep[t.label]}) for t in table.timings if t.label in keep]
    flags = [f.model_copy(update={"label": keep[f.label]}) for f in table.flags if f.label in keep]
    failed = {keep[name]: why for name, why in table.failed.items() if name in keep}
    return table.model_copy(update={"timings": tuple(timings), "flags": tuple(flags), "failed": failed})
