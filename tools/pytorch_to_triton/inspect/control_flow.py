"""The loops of an assembly text: blocks of instructions, and which of them run again and again."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BasicBlock:
    """Instructions that run one after the other: rows from `start` up to, not including, `end`."""

    start: int
    end: int
    successors: tuple[int, ...]
    """Numbers of the blocks that can come next; of two, the second is where a branch leads."""


@dataclass(frozen=True)
class NaturalLoop:
    """Blocks that run again and again, by their numbers."""

    header: int
    latches: frozenset[int]
    """The blocks that lead back to the header: one of them runs each turn."""
    blocks: frozenset[int]


class Blocks:
    """The control flow of a text's rows; what the first row does not lead to is in no loop."""

    def __init__(self, rows: int, branches: Mapping[int, int], ends: frozenset[int]) -> None:
        """`branches` are rows that branch, and where to; after a row of `ends` the next does not come."""
        after = {row + 1 for row in {*branches, *ends}}
        starts = sorted({0, *branches.values(), *after} & {*range(rows)})
        number = {start: n for n, start in enumerate(starts)}
        bounds = zip(starts, [*starts[1:], rows], strict=True)
        self.blocks = [
            BasicBlock(
                start,
                end,
                (
                    *([number[end]] if end < rows and end - 1 not in ends else []),
                    *([number[branches[end - 1]]] if end - 1 in branches else []),
                ),
            )
            for start, end in bounds
        ]
        self.reachable, back_edges = self._walked()
        latches: dict[int, set[int]] = {}
        for source, header in back_edges:
            latches.setdefault(header, set()).add(source)
        self.loops = [
            NaturalLoop(header, frozenset(latches[header]), self._body(header, latches[header]))
            for header in sorted(latches)
        ]
        """In the order of their headers."""

    def rows(self, block: int) -> range:
        return range(self.blocks[block].start, self.blocks[block].end)

    def innermost(self, block: int) -> int | None:
        """The number of the smallest loop that holds the block."""
        around = [n for n, loop in enumerate(self.loops) if block in loop.blocks]
        return min(around, key=lambda n: len(self.loops[n].blocks), default=None)

    def depth(self, loop: NaturalLoop) -> int:
        """How many loops the loop is in, itself counted."""
        return sum(loop.blocks <= other.blocks for other in self.loops)

    def leaves_a_loop(self, block: int) -> bool:
        """Whether the block's successors are in different loops."""
        after = self.blocks[block].successors
        return any(block in loop.blocks and not loop.blocks.issuperset(after) for loop in self.loops)

    def _walked(self) -> tuple[frozenset[int], list[tuple[int, int]]]:
        """The blocks that the first one leads to, and the edges back to one that is still being walked.

        In the flow that compilers emit, those edges lead to the headers of loops.
        """
        edges: list[tuple[int, int]] = []
        seen, done = {0}, set[int]()
        pending = [(0, iter(self.blocks[0].successors))] if self.blocks else []
        while pending:
            block, rest = pending[-1]
            successor = next(rest, None)
            if successor is None:
                done.add(block)
                pending.pop()
            elif successor not in seen:
                seen.add(successor)
                pending.append((successor, iter(self.blocks[successor].successors)))
            elif successor not in done:
                edges.append((block, successor))
        return frozenset(seen), edges

    def _body(self, header: int, latches: set[int]) -> frozenset[int]:
        body, pending = {header}, [*latches]
        while pending:
            block = pending.pop()
            if block not in body:
                body.add(block)
                pending += (n for n in self.reachable if block in self.blocks[n].successors)
        return frozenset(body)
