"""Who is timed when: everybody in each round, in an order that changes, until there are samples enough."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ..device import MOST_COVER
from ..job_report import JobReport
from .workers import Lost, WorkerProcess

FEWEST_ROUNDS = 3
BATCH = 20
"""Calls of one member in a round, at most: one go, so that the coordinator's clock is exact."""
BATCH_MS = 200.0
"""A batch of slow calls is smaller."""
MEMORY_SHARE = 0.5
"""Of the free memory, for all members' batches."""
COPIES = 3
"""Each call of a batch has its inputs and outputs, and filling leaves as much behind."""
STABLE = 0.02
"""Warmed up when no median moves by more from one round to the next."""
MOST_WARM_UP_ROUNDS = 12
WALL_ROUNDS = 15
WALL_CALLS = 4
"""The last of them is timed: the host is warm then."""
REPLAYS = 20
PROFILED_CALLS = 5
OFFSETS = 1 << 40

RANDOM = secrets.SystemRandom()


@dataclass(frozen=True)
class Answered:
    """What one member said, and how long it took to, by this process's clock."""

    label: str
    answer: Any
    took_ms: float


@dataclass
class TimedProcesses:
    """The members that take part, and why the others do not."""

    members: dict[str, WorkerProcess]
    bystander: WorkerProcess
    clerk: WorkerProcess
    seconds: float
    """How long one command may take."""
    lost: dict[str, str] = field(default_factory=dict)
    resting: dict[str, WorkerProcess] = field(default_factory=dict)
    """Those that failed at this size, but may do better at another."""

    def gather(self) -> None:
        """Whoever still can takes part again."""
        self.members |= self.resting
        for label in self.resting:
            del self.lost[label]
        self.resting = {}

    def dismiss(self) -> None:
        """Who failed takes part no more, at no size."""
        for member in self.resting.values():
            member.end()
        self.resting = {}

    def all_at_once(self, what: str, arguments: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
        """Tell all, then wait for all: for work that is not timed. The answers by label."""
        for label, member in list(self.members.items()):
            with self.dropping(label):
                member.tell(what, **arguments(label))
        answers = {}
        for label, member in list(self.members.items()):
            with self.dropping(label):
                answers[label] = member.hear(self.seconds)
        return answers

    def all_alike(self, what: str, **arguments: Any) -> dict[str, Any]:
        """The same for all at once."""
        return self.all_at_once(what, lambda label: arguments)

    def one_by_one(self, what: str, **arguments: Any) -> Iterator[Answered]:
        """Each alone, in an order of chance."""
        for label in RANDOM.sample(list(self.members), len(self.members)):
            with self.dropping(label):
                began = time.perf_counter()
                answer = self.members[label].ask(what, seconds=self.seconds, **arguments)
                yield Answered(label, answer, 1e3 * (time.perf_counter() - began))

    @contextmanager
    def dropping(self, label: str) -> Iterator[None]:
        """A member that is lost inside takes no part in what follows."""
        try:
            yield
        except Lost as why:
            member = self.members.pop(label)
            self.lost[label] = str(why)
            if member.alive:
                self.resting[label] = member

    def end(self) -> None:
        """End every process."""
        for member in (self.clerk, self.bystander, *self.members.values(), *self.resting.values()):
            member.end()


@dataclass
class TimingRecord:
    """What was measured of one member at one size, in milliseconds."""

    started: Mapping[str, Any]
    samples_ms: list[float] = field(default_factory=list)
    """Between events, of each call."""
    batches_ms: list[float] = field(default_factory=list)
    """By the coordinator's clock, of each batch with its flushes."""
    wall_ms: list[float] = field(default_factory=list)


@dataclass
class Rounds:
    """All that the rounds of one size gave."""

    batch: int
    records: dict[str, TimingRecord]
    idle_ms: dict[int, list[float]]
    """What a batch takes of a process that calls nothing, by how often it flushes before each call."""
    empty_ms: list[float] = field(default_factory=list)
    """Between two events with nothing in between."""
    last: int = 0
    """What the last call of every member was made of (pool.py)."""

    def outside_ms(self, label: str) -> list[float]:
        """What one call took by the coordinator's clock, of each batch.

        Nothing where the host is too slow to be hidden behind flushes: its time would be in it.
        """
        record = self.records[label]
        if record.started["cover"] >= MOST_COVER:
            return []
        idle = median(self.idle_ms[record.started["cover"]])
        return [(took - idle) / self.batch for took in record.batches_ms]


def all_rounds(
    report: JobReport, crew: TimedProcesses, draws: list[str], setting: Mapping[str, Any]
) -> Rounds:
    """First calls, warm-up, and as many rounds as `samples` take and `round_seconds` allow (../timing.py)."""
    report.during("first calls")
    report.progress(0, None, f"first calls of {', '.join(crew.members)}")
    started = crew.all_alike("start", draws=draws)
    records = {label: TimingRecord(facts) for label, facts in started.items()}
    rounds = Rounds(batch_size(started), records, {facts["cover"]: [] for facts in started.values()})
    report.during("warming up")
    warm_up(crew, rounds.batch)
    report.during("timed rounds")
    until = time.monotonic() + setting["round_seconds"]
    count = max(setting["samples"] // rounds.batch, FEWEST_ROUNDS)
    for number in range(count):
        report.progress(number, count, f"timing {', '.join(crew.members)} in turn")
        one_round(crew, rounds)
        if number + 1 >= FEWEST_ROUNDS and time.monotonic() > until:
            break
    for number in range(WALL_ROUNDS if setting["full"] else 0):
        report.progress(number, WALL_ROUNDS, "timing with the launch")
        crew.all_alike("fill", offsets=[rounds.last] * min(rounds.batch, WALL_CALLS))
        for found in crew.one_by_one("wall"):
            records[found.label].wall_ms.append(found.answer)
    one_round(crew, rounds)
    return rounds


def one_round(crew: TimedProcesses, rounds: Rounds) -> None:
    """A batch of each member on the same inputs, and of nothing."""
    offsets = [RANDOM.randrange(OFFSETS) for _ in range(rounds.batch)]
    crew.all_alike("fill", offsets=offsets)
    for found in crew.one_by_one("go"):
        rounds.records[found.label].samples_ms.extend(found.answer)
        rounds.records[found.label].batches_ms.append(found.took_ms)
    for cover, idle in rounds.idle_ms.items():
        began = time.perf_counter()
        empty = crew.bystander.ask("go", seconds=crew.seconds, calls=rounds.batch, cover=cover)
        idle.append(1e3 * (time.perf_counter() - began))
        rounds.empty_ms.extend(empty)
    rounds.last = offsets[-1]


def warm_up(crew: TimedProcesses, batch: int) -> None:
    """Rounds that do not count, until clocks and caches have settled."""
    before: dict[str, float] = {}
    for number in range(MOST_WARM_UP_ROUNDS):
        crew.all_alike("fill", offsets=[number] * batch)
        now = {found.label: median(found.answer) for found in crew.one_by_one("go")}
        if before and all(abs(now[k] - before[k]) <= STABLE * before[k] for k in now if k in before):
            return
        before = now


def batch_size(started: Mapping[str, Mapping[str, Any]]) -> int:
    """Calls in a batch, the same for all: as many as memory and patience allow, BATCH at most."""
    if not started:
        return 1
    facts = started.values()
    call_bytes = sum(COPIES * (s["input_bytes"] + s["output_bytes"]) for s in facts)
    room = MEMORY_SHARE * min(s["free_bytes"] for s in facts)
    slowest = max(s["call_ms"] for s in facts)
    return max(1, min(BATCH, int(room / max(call_bytes, 1)), int(BATCH_MS / max(slowest, 1e-3))))
