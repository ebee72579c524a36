"""Which process is timed when: each in every round, in random order, until there are enough samples."""

import math
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ..device import MOST_COVER
from ..job_report import JobReport
from .workers import Lost, WorkerProcess

FEWEST_ROUNDS = 3
BATCH = 20
"""Calls of one process in a round, at most: one command, so that this process's clock is exact."""
BATCH_MS = 200.0
"""A batch of slow calls is smaller."""
MEMORY_SHARE = 0.5
"""Of the free memory, for the batches of all processes."""
COPIES = 3
"""Each call of a batch has its inputs and outputs, and filling needs as much again."""
DISTURBED = 1.03
"""Seen on an H200 of a slow host: batches of 20 calls behind 27 ms of flushes take up to 0.7 ms longer."""
STABLE = 0.02
"""Warmed up when no median moves by more from one round to the next."""
MOST_WARM_UP_ROUNDS = 12
WALL_ROUNDS = 15
WALL_CALLS = 4
"""The last of them is timed: the host is warm then."""
REPLAYS = 20
PROFILED_CALLS = 5
OFFSETS = 1 << 40
NAMED = 5
"""At most so many are named while they are timed."""

RANDOM = secrets.SystemRandom()


@dataclass
class TimedProcesses:
    """The processes that take part, and why the others do not."""

    running: dict[str, WorkerProcess]
    idle: WorkerProcess
    coordinator: WorkerProcess
    seconds: float
    """How long one command may take."""
    lost: dict[str, str] = field(default_factory=dict)
    failed: dict[str, WorkerProcess] = field(default_factory=dict)
    """Those that failed at this size, but may work at another."""

    def readmit(self) -> None:
        """Those that failed take part again."""
        self.running |= self.failed
        for label in self.failed:
            del self.lost[label]
        self.failed = {}

    def end_failed(self) -> None:
        """End those that failed: they take part at no size."""
        for process in self.failed.values():
            process.end()
        self.failed = {}

    def all_at_once(self, command: str, arguments: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
        """Send to all, then wait for all: for work that is not timed. The answers by label."""
        for label, process in list(self.running.items()):
            with self.dropping(label):
                process.send(command, **arguments(label))
        answers = {}
        for label, process in list(self.running.items()):
            with self.dropping(label):
                answers[label] = process.receive(self.seconds)
        return answers

    def all_alike(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The same command with the same arguments to all."""
        return self.all_at_once(command, lambda label: arguments)

    def one_by_one(self, command: str, **arguments: Any) -> Iterator[tuple[str, Any, float]]:
        """Each alone, in random order: label, answer, and milliseconds by this process's clock."""
        for label in RANDOM.sample(list(self.running), len(self.running)):
            with self.dropping(label):
                began = time.perf_counter()
                answer = self.running[label].ask(command, seconds=self.seconds, **arguments)
                yield label, answer, 1e3 * (time.perf_counter() - began)

    @contextmanager
    def dropping(self, label: str) -> Iterator[None]:
        """A process that is lost inside takes no part in what follows."""
        try:
            yield
        except Lost as why:
            process = self.running.pop(label)
            self.lost[label] = str(why)
            if process.alive:
                self.failed[label] = process

    def end(self) -> None:
        for process in (self.coordinator, self.idle, *self.running.values(), *self.failed.values()):
            process.end()


@dataclass
class TimingRecord:
    """What was measured of one process at one size, in milliseconds."""

    started: Mapping[str, Any]
    samples_ms: list[float] = field(default_factory=list)
    """Between events, of each call."""
    batches_ms: list[tuple[int, float]] = field(default_factory=list)
    """Of each batch whose launches were hidden: the flushes before each call, and what the batch took with
    them by this process's clock."""
    wall_ms: list[float] = field(default_factory=list)


@dataclass
class Rounds:
    batch: int
    records: dict[str, TimingRecord]
    idle_ms: defaultdict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """What a batch takes in a process that calls nothing, by the flushes before each call."""
    empty_ms: list[float] = field(default_factory=list)
    """Between two events with nothing in between."""
    last: int = 0
    """The offset of the last call of every process (input_pool.py)."""

    def outside_ms(self, label: str) -> list[float]:
        """What one call took by this process's clock, of each batch, above what the host needs by itself.

        Nothing where the host is too slow to be hidden behind flushes: its time would be in it. What it needs
        is what the idle process took in its slow batches, and a little more: flushes are disturbed alike.
        """
        idle = {cover: DISTURBED * slow(times) for cover, times in self.idle_ms.items()}
        batches = self.records[label].batches_ms
        return [(took - idle[cover]) / self.batch for cover, took in batches if cover < MOST_COVER]


def all_rounds(
    report: JobReport, processes: TimedProcesses, inputs: list[str], setting: Mapping[str, Any]
) -> Rounds:
    """First calls, warm-up, and as many rounds as `samples` take and `round_seconds` allow."""
    report.during("first calls")
    report.progress(0, None, f"first calls of {few(processes.running)}")
    started = processes.all_alike("start", inputs=inputs)
    records = {label: TimingRecord(start) for label, start in started.items()}
    rounds = Rounds(batch_size(started), records)
    if not records:
        return rounds
    seconds = setting["round_seconds"]
    report.during("warming up")
    warm_up(processes, rounds.batch, seconds)
    report.during("timed rounds")
    count = max(setting["samples"] // rounds.batch, FEWEST_ROUNDS)
    for number in rounds_within(count, seconds):
        report.progress(number, count, f"timing {few(processes.running)} in rounds")
        one_round(processes, rounds)
    for number in rounds_within(WALL_ROUNDS, seconds) if setting["full"] else ():
        report.progress(number, WALL_ROUNDS, "timing with the launch")
        processes.all_alike("fill", offsets=[rounds.last] * min(rounds.batch, WALL_CALLS))
        for label, wall_ms, _ in processes.one_by_one("wall"):
            records[label].wall_ms.append(wall_ms)
    one_round(processes, rounds)
    return rounds


def slow(times: Sequence[float]) -> float:
    """The time that nine of ten do not pass."""
    return sorted(times)[math.ceil(0.9 * (len(times) - 1))]


def few(labels: Collection[str]) -> str:
    """The names of a few, or how many they are."""
    return ", ".join(labels) if len(labels) <= NAMED else f"{len(labels)} implementations"


def rounds_within(count: int, seconds: float) -> Iterator[int]:
    """The numbers of the rounds: no more after so many seconds, but FEWEST_ROUNDS in any case."""
    until = time.monotonic() + seconds
    for number in range(count):
        if number >= FEWEST_ROUNDS and time.monotonic() > until:
            return
        yield number


def one_round(processes: TimedProcesses, rounds: Rounds) -> None:
    """A batch of each process on the same inputs, and of the idle one."""
    offsets = [RANDOM.randrange(OFFSETS) for _ in range(rounds.batch)]
    processes.all_alike("fill", offsets=offsets)
    covers = set()
    for label, answer, took_ms in processes.one_by_one("go"):
        record, cover = rounds.records[label], answer["cover"]
        record.samples_ms.extend(answer["samples_ms"])
        covers.add(cover)
        if answer["hidden"]:
            record.batches_ms.append((cover, took_ms))
    for cover in sorted(covers):
        began = time.perf_counter()
        empty = processes.idle.ask("go", seconds=processes.seconds, calls=rounds.batch, cover=cover)
        rounds.idle_ms[cover].append(1e3 * (time.perf_counter() - began))
        rounds.empty_ms.extend(empty)
    rounds.last = offsets[-1]


def warm_up(processes: TimedProcesses, batch: int, seconds: float) -> None:
    """Rounds that do not count, until clocks and caches are steady and every launch is hidden."""
    before: dict[str, float] = {}
    for number in rounds_within(MOST_WARM_UP_ROUNDS, seconds):
        processes.all_alike("fill", offsets=[number] * batch)
        answers = {label: answer for label, answer, _ in processes.one_by_one("go")}
        now = {label: median(answer["samples_ms"]) for label, answer in answers.items()}
        steady = before and all(abs(now[k] - before[k]) <= STABLE * before[k] for k in now if k in before)
        if steady and all(answer["hidden"] for answer in answers.values()):
            return
        before = now


def batch_size(started: Mapping[str, Mapping[str, Any]]) -> int:
    """Calls in a batch, the same for all: as many as memory and time allow, BATCH at most."""
    if not started:
        return 1
    starts = started.values()
    call_bytes = sum(COPIES * (start["input_bytes"] + start["output_bytes"]) for start in starts)
    room = MEMORY_SHARE * min(start["free_bytes"] for start in starts)
    slowest = max(start["call_ms"] for start in starts)
    return max(1, min(BATCH, int(room / max(call_bytes, 1)), int(BATCH_MS / max(slowest, 1e-3))))
