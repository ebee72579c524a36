"""Job `timing`: time several callables side by side, each in a process of its own, and check what they did.

This process loads no user code and never touches the device; it forks those that do (../timing/).
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
from ..timing.workers import Lost, WorkerProcess, start_process

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
    with timing.started([implementation["label"] for implementation in implementations]) as processes:
        report.during("load")
        timing.load(processes, reference, implementations)
        for number, case in enumerate(cases):
            report.during(case["name"])
            report.progress(number, len(cases), case["name"])
            report.item(timing.size(processes, case))
    return {}


@dataclass(frozen=True)
class TimingRun:
    """One job, size after size."""

    report: JobReport
    folder: Path
    setting: wire.TimingSetting

    @contextmanager
    def started(self, labels: Iterable[str]) -> Iterator[TimedProcesses]:
        """The processes, none of which outlives the block."""
        passes = self.setting["passes"]
        seconds = self.setting["seconds"]
        coordinator = start_process(lambda: Coordinator(self.folder, passes))
        idle = start_process(IdleProcess)
        running = {
            label: start_process(lambda: TimedImplementation(self.folder, self.setting)) for label in labels
        }
        processes = TimedProcesses(running, idle, coordinator, seconds)
        try:
            yield processes
        finally:
            processes.end()
            shutil.rmtree(self.folder, ignore_errors=True)

    def load(
        self, processes: TimedProcesses, reference: wire.Target, implementations: list[wire.TimedTarget]
    ) -> None:
        """Let every process load what it calls."""
        try:
            processes.coordinator.ask(
                "load",
                seconds=processes.seconds,
                target=reference,
                seed=self.setting["state_seed"],
                unordered=self.setting["unordered"],
            )
            processes.idle.ask("start", seconds=processes.seconds)
        except Lost as why:
            raise NothingToTime(str(why)) from why
        arguments = {
            implementation["label"]: {
                **{key: value for key, value in implementation.items() if key != "label"},
                "caches": str(self.folder / "caches" / str(number)),
            }
            for number, implementation in enumerate(implementations)
        }
        processes.all_at_once("load", arguments.__getitem__)
        processes.end_failed()  # what cannot be loaded cannot be called at any size

    def size(self, processes: TimedProcesses, case: dict[str, Any]) -> dict[str, Any]:
        """All that is measured at one size."""
        processes.readmit()
        coordinator, seed = processes.coordinator, case["seed"]
        self.report.during("generating inputs")
        self.report.progress(0, None, f"{case['name']}: generating inputs")
        try:
            inputs = coordinator.ask("generate", seconds=processes.seconds, case=case, seed=seed)
        except Lost as why:
            raise NothingToTime(f"the inputs of {case['name']} cannot be generated: {why}") from why
        rounds = all_rounds(self.report, processes, inputs, self.setting)
        about = {"case": case["name"], "batch": rounds.batch, "failed": processes.lost}
        if not processes.running:
            return {**about, "empty_ms": 0.0, "implementations": {}, "check_note": ""}
        measured = {label: self.measured(rounds, label) for label in processes.running}
        names = {label: f"result{number}" for number, label in enumerate(processes.running)}
        if self.setting["full"]:
            self.report.during("graphs and kernels")
            self.examine(processes, rounds, names, measured)
        for label, left in processes.all_alike("leave").items():
            measured[label] |= left
        checked: dict[str, Any] = {}
        if self.setting["full"]:
            self.report.during("checking results")
            kept = {name: label for label, name in names.items() if label in processes.running}
            checked = self.checked(coordinator, inputs, rounds.last, seed, list(kept))
            for name, label in kept.items():
                measured[label]["check"] = checked.get(name)
        for name in inputs:
            Exchange(self.folder).forget(name)
        return {
            **about,
            "empty_ms": median(rounds.empty_ms),
            "implementations": {label: measured[label] for label in processes.running},
            "check_note": checked.get("note", ""),
        }

    def examine(
        self,
        processes: TimedProcesses,
        rounds: Rounds,
        names: Mapping[str, str],
        measured: dict[str, dict[str, Any]],
    ) -> None:
        """Keep what the last timed calls returned; replay calls as graphs, and profile their kernels."""
        self.report.progress(0, None, "replaying as graphs and profiling kernels")
        processes.all_at_once("keep", lambda label: {"index": rounds.batch - 1, "name": names[label]})
        for command, count in (("graph", REPLAYS), ("profile", min(rounds.batch, PROFILED_CALLS))):
            for label, answer, _ in processes.one_by_one(command, count=count):
                measured[label] |= answer

    def measured(self, rounds: Rounds, label: str) -> dict[str, Any]:
        record = rounds.records[label]
        return {
            **{name: record.started[name] for name in MEASURED_AT_START},
            "samples_ms": record.samples_ms,
            "outside_ms": rounds.outside_ms(label),
            "wall_ms": record.wall_ms,
        }

    def checked(
        self, coordinator: WorkerProcess, inputs: list[str], offset: int, seed: int, names: list[str]
    ) -> dict[str, Any]:
        """By name, how each result compares with the truth; a `note` where they cannot be compared."""
        try:
            checks: dict[str, Any] = coordinator.ask(
                "check", seconds=self.setting["seconds"], inputs=inputs, offset=offset, seed=seed, names=names
            )
        except Lost as why:
            return {"note": str(why)}
        return checks
