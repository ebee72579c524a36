"""Phases of many items: side by side, each result kept as it comes, nothing done twice."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

import anyio

from pytorch_to_triton.errors import Refusal, TargetTimedOut
from pytorch_to_triton.sweep.journal import Journal, Record

LONGEST = 1000
"""Characters of a message in a record."""


class Item(Protocol):
    """What goes through the phases."""

    @property
    def key(self) -> str:
        """Its own among all items."""

    @property
    def name(self) -> str:
        """For a person."""


Again = Literal["all", "failed"]
"""What is done although it was done: everything, or what crashed, raised or ran out of time."""
T = TypeVar("T")
AnyItem = TypeVar("AnyItem", bound=Item)


@dataclass(frozen=True)
class Phase(Generic[AnyItem]):
    """One phase: what is done with an item, and how many are dealt with at once."""

    name: str
    where: str
    """Device and sizes, by which results are told apart."""
    lanes: int
    seconds: float
    """How long it may take for one item."""
    work: Callable[[AnyItem], Awaitable[Record]]
    """`status` and what else was found."""
    digest: Callable[[AnyItem], str | None]
    """Of what the phase is about; None where it cannot be done with the item."""


Done = Callable[[Record, int, int], Awaitable[None]]
"""Is given each record as it comes, how many have come, and how many there are to come in all."""


async def do_phase(
    phase: Phase[AnyItem], items: Sequence[AnyItem], journal: Journal, again: Again | None, done: Done
) -> None:
    """The phase of all items that need it.

    What runs out of memory beside others is done once more, alone.
    """
    needed = [item for item in items if is_needed(phase, item, journal, again)]
    crowded: list[AnyItem] = []
    finished = 0

    async def work(item: AnyItem) -> None:
        nonlocal finished
        record = await record_of(phase, item)
        journal.add(record)
        finished += 1
        if phase.lanes > 1 and finished <= len(needed) and "out of memory" in str(record.get("why")).lower():
            crowded.append(item)
        await done(record, finished, len(needed) + len(crowded))

    await in_lanes(needed, phase.lanes, work)
    await in_lanes(crowded[:], 1, work)


def is_needed(phase: Phase[AnyItem], item: AnyItem, journal: Journal, again: Again | None) -> bool:
    """Whether the phase can be done with the item, and has not been yet."""
    digest = phase.digest(item)
    if digest is None:
        return False
    done = journal.is_done(item.key, phase.name, phase.where, digest, retried=again == "failed")
    return again == "all" or not done


async def record_of(phase: Phase[AnyItem], item: AnyItem) -> Record:
    """The record of the phase, whatever happens in it."""
    began = time.perf_counter()
    digest = phase.digest(item)
    try:
        # The worker ends jobs that take too long; this bounds what goes on between them.
        with anyio.fail_after(phase.seconds * 1.1 + 5):
            result = await phase.work(item)
    except TimeoutError:
        result = {"status": "timed_out", "why": f"not done within {phase.seconds:g} s"}
    except Refusal as refusal:
        result = refused(refusal)
    except Exception as error:  # a defect costs one item
        result = {"status": "raised", "why": f"{type(error).__name__}: {error}"[:LONGEST]}
    about = {"item": item.key, "name": item.name, "phase": phase.name, "where": phase.where, "digest": digest}
    return {**about, "seconds": round(time.perf_counter() - began, 3), **result}


def refused(refusal: Refusal) -> Record:
    """What a refusal leaves of a record."""
    status = "timed_out" if isinstance(refusal, TargetTimedOut) else "refused"
    said = {"why": refusal.message[:LONGEST], "hint": refusal.hint[:LONGEST]}
    return {"status": status, "kind": refusal.kind, **said}


async def in_lanes(items: Sequence[T], count: int, work: Callable[[T], Awaitable[None]]) -> None:
    """The work of all items, `count` at once."""
    waiting = deque(items)

    async def lane() -> None:
        while waiting:
            await work(waiting.popleft())

    async with anyio.create_task_group() as group:
        for _ in range(min(len(items), count)):
            group.start_soon(lane)
