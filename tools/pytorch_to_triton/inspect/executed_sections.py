"""Which loop of the PTX a loop of the machine code is, and so how often its instructions run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytorch_to_triton.inspect.executed_ptx import Ran
from pytorch_to_triton.inspect.sass import CodeSection
from pytorch_to_triton.schema.compiled import InstructionCounts, InstructionKind


@dataclass(frozen=True)
class Executed:
    """A section of a kernel's code, and what a program runs of it; None: not known."""

    section: CodeSection
    ran: Ran | None

    def times(self, kind: InstructionKind) -> float:
        """How often each of its instructions of a kind is run; 0 where that is not known."""
        return self.ran.turns * self.ran.share_of.get(kind, self.ran.share) if self.ran else 0.0

    @property
    def counts(self) -> InstructionCounts:
        section, ran = self.section, self.ran
        return InstructionCounts(
            line=ran.line if ran else None,
            depth=section.depth,
            turns=round(ran.turns, 3) if ran else None,
            share=round(ran.share, 3) if ran else None,
            counts=section.counts,
        )


def executed_sections(sections: Sequence[CodeSection], ran: Sequence[Ran] | None) -> tuple[Executed, ...]:
    """The sections of machine code with what ran of the PTX.

    A loop of the machine code is the PTX's loop of the same depth and marks; of several, the next in the
    text. One that has a multiple of a single loop's marks is that loop unrolled, and has its turns but for a
    rest. Where a loop has no other, code was moved on the way, and nothing is known; so it is with loops that
    turn and have no marks to know them by.
    """
    unknown = tuple(Executed(section, None) for section in sections)
    if not ran or any(loop.turns and not any(loop.marks) for loop in ran[1:]):
        return unknown
    places: list[tuple[int, int]] = []
    """Of each loop of the machine code, the number of the PTX's, and how many of its turns are one."""
    for loop in sections[1:]:
        taken = {n for n, times in places if times == 1}
        fits = {n: times for n, other in enumerate(ran) if (times := factor(loop, other))}
        once = [n for n, times in fits.items() if times == 1 and n not in taken]
        several = [n for n, times in fits.items() if times > 1]
        if not once and len(several) != 1:
            return unknown
        place = (once or several)[0]
        places.append((place, fits[place]))
    if any(loop.turns for n, loop in enumerate(ran) if n and n not in dict(places)):
        return unknown
    return (Executed(sections[0], ran[0]), *map(Executed, sections[1:], unrolled(places, ran)))


def factor(loop: CodeSection, of: Ran) -> int:
    """How many turns of the PTX's loop are one of the machine code's; 0 where it is another loop."""
    if not of.depth or loop.depth != of.depth:
        return 0
    if loop.marks == of.marks:
        return 1
    times = max(loop.marks) // max(of.marks) if any(of.marks) else 0
    return times if loop.marks == tuple(times * mark for mark in of.marks) else 0


def unrolled(places: Sequence[tuple[int, int]], ran: Sequence[Ran]) -> list[Ran]:
    """What ran of each loop of the machine code: the widest has as many turns as there are whole ones."""
    rest = {n: ran[n].turns for n, _ in places}
    turns: dict[int, float] = {}
    for place in sorted(range(len(places)), key=lambda place: -places[place][1]):
        n, times = places[place]
        turns[place] = rest[n] // times if times > 1 else rest[n]
        rest[n] -= times * turns[place]
    return [replace(ran[n], turns=turns[place]) for place, (n, _) in enumerate(places)]
