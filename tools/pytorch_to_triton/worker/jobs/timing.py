"""Job `timing`: time several callables side by side, each in a process of its own, and check what they did.

This process loads no user code and never touches the device; it forks those that do (timing/).
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .. import wire
from ..calls.exchange import Exchange
from ..job_report import JobReport
from ..timing.coordinator import Coordinator
from ..timing.rounds import PROFILED_CALLS, REPLAYS, Rounds, TimedProcesses, all_rounds
from ..timing.timed_process import IdleProcess, TimedImplementation
from ..timing.workers import Lost, WorkerProcess, enlist

MEASURED_AT_START = ("first_call_ms", "peak_bytes", "input_bytes", "output_bytes")


class NothingToTime(Exception):
    """The inputs cannot be generated, or the device cannot be used; the message says why."""


def work(
    report: JobReport,
    reference: wire.Target,
    implementations: list[wire.TimedTarget],
    cases: list[wire.Case],
    setting: wire.TimingSetting,
) -> dict[str, Any]:
    """An item a size: what was measured of each implementation, in milliseconds.

    An implementation that fails at a size is listed with the reason, and takes no further part in it.
    """
    timing = TimingRun(report, report.folder / "exchange", setting)
    with timing.enlisted([one["label"] for one in implementations]) as crew:
        report.during("load")
        timing.loaded(crew, reference, implementations)
        for number, case in enumerate(cases):
            report.during(case["name"])
            report.progress(number, len(cases), case["name"])
            report.item({"event": "size", "size": timing.size(crew, case)})
    return {}


@dataclass(frozen=True)
class TimingRun:
    """One job, size after size."""

    report: JobReport
    folder: Path
    setting: wire.TimingSetting

    @contextmanager
    def enlisted(self, labels: Iterable[str]) -> Iterator[TimedProcesses]:
        """The processes, none of which outlives the block."""
        passes = self.setting["passes"]
        seconds = self.setting["seconds"]
        clerk = enlist("clerk", lambda: Coordinator(self.folder, passes, self.setting["budget"]).commands)
        bystander = enlist("bystander", lambda: IdleProcess().commands)
        make = lambda: TimedImplementation(self.folder, self.setting).commands  # noqa: E731
        members = {label: enlist(label, make) for label in labels}
        crew = TimedProcesses(members, bystander, clerk, seconds)
        try:
            yield crew
        finally:
            crew.end()
            shutil.rmtree(self.folder, ignore_errors=True)

    def loaded(
        self, crew: TimedProcesses, reference: wire.Target, implementations: list[wire.TimedTarget]
    ) -> None:
        """Let every process load what it calls."""
        what = {one["label"]: {k: v for k, v in one.items() if k != "label"} for one in implementations}
        try:
            crew.clerk.ask("load", seconds=crew.seconds, target=reference, seed=self.setting["state_seed"])
            crew.bystander.ask("start", seconds=crew.seconds)
        except Lost as why:
            raise NothingToTime(str(why)) from why
        order = {label: number for number, label in enumerate(what)}
        crew.all_at_once(
            "load",
            lambda label: {
                **what[label],
                "caches": str(self.folder / "caches" / str(order[label])),
            },
        )
        crew.dismiss()  # what cannot be loaded cannot be called at any size

    def size(self, crew: TimedProcesses, case: dict[str, Any]) -> dict[str, Any]:
        """All that is measured at one size."""
        crew.gather()
        clerk, seed = crew.clerk, case["seed"]
        self.report.during("generating inputs")
        self.report.progress(0, None, f"{case['name']}: generating inputs")
        try:
            draws = clerk.ask("draw", seconds=crew.seconds, case=case, seed=seed)
        except Lost as why:
            raise NothingToTime(f"the inputs of {case['name']} cannot be generated: {why}") from why
        rounds = all_rounds(self.report, crew, draws, self.setting)
        about = {"case": case["name"], "batch": rounds.batch, "failed": crew.lost}
        if not crew.members:
            return {**about, "empty_ms": 0.0, "implementations": {}, "check_note": ""}
        measured = {label: self.measured(rounds, label) for label in crew.members}
        names = {label: f"result{number}" for number, label in enumerate(crew.members)}
        if self.setting["full"]:
            self.report.during("graphs and kernels")
            self.examine(crew, rounds, names, measured)
        for label, left in crew.all_alike("leave").items():
            measured[label] |= left
        checked: dict[str, Any] = {}
        if self.setting["full"]:
            self.report.during("checking results")
            kept = {name: label for label, name in names.items() if label in crew.members}
            checked = self.checked(clerk, draws, rounds.last, seed, list(kept))
            for name, label in kept.items():
                measured[label]["check"] = checked.get(name)
        for name in draws:
            Exchange(self.folder).forget(name)
        return {
            **about,
            "empty_ms": median(rounds.empty_ms),
            "implementations": {label: measured[label] for label in crew.members},
            "check_note": checked.get("note", ""),
        }

    def examine(
        self,
        crew: TimedProcesses,
        rounds: Rounds,
        names: Mapping[str, str],
        measured: dict[str, dict[str, Any]],
    ) -> None:
        """Keep what the last timed calls returned; replay calls as graphs, and profile their kernels."""
        self.report.progress(0, None, "replaying as graphs and profiling kernels")
        crew.all_at_once("keep", lambda label: {"index": rounds.batch - 1, "name": names[label]})
        for found in crew.one_by_one("graph", count=REPLAYS):
            measured[found.label] |= found.answer
        for found in crew.one_by_one("profile", count=min(rounds.batch, PROFILED_CALLS)):
            measured[found.label] |= found.answer

    def measured(self, rounds: Rounds, label: str) -> dict[str, Any]:
        """What the rounds measured of one implementation."""
        record = rounds.records[label]
        return {
            **{name: record.started[name] for name in MEASURED_AT_START},
            "samples_ms": record.samples_ms,
            "outside_ms": rounds.outside_ms(label),
            "wall_ms": record.wall_ms,
        }

    def checked(
        self, clerk: WorkerProcess, draws: list[str], offset: int, seed: int, names: list[str]
    ) -> dict[str, Any]:
        """By name, how each result compares with the truth; a `note` where they cannot be compared."""
        try:
            found: dict[str, Any] = clerk.ask(
                "check", seconds=self.setting["seconds"], draws=draws, offset=offset, seed=seed, members=names
            )
        except Lost as why:
            return {"note": str(why)}
        return found
