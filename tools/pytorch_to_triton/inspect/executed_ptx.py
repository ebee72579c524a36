"""What a launch runs of a kernel: its PTX, run as far as its control flow goes."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from pytorch_to_triton.inspect.assembly import locate
from pytorch_to_triton.inspect.control_flow import Blocks
from pytorch_to_triton.inspect.scalar_ptx import Registers, Value, deciding, statement
from pytorch_to_triton.schema.compiled import CompiledKernel, InstructionKind, KernelArgument

LABEL = re.compile(r"^(\$L\w+):")
"""Labels without the mark are those of inline assembly, where threads wait for memory."""
PARAMETER = re.compile(r"^\s*\.param\b.*?(\w+_param_\d+)", re.MULTILINE)
GLOBAL = re.compile(r"(?:ld|st|atom|red)\.(?:\w+\.)*global\b|cp\.async\.c[ag]\.")
PRODUCT = re.compile(r"mma\.sync|wgmma\.mma_async|tcgen05\.mma\.(?!.*commit)")
MARKS = (GLOBAL, PRODUCT, re.compile(r"shfl\.sync\.bfly|redux\.sync"))
"""The instructions that sass.MARKS names, in PTX."""
RANK = re.compile(r"tensordesc<\w+\[([\d, ]+)\]")
SCRATCH = (0, 1, 2)
"""How many pointers of its own Triton appends to a kernel's parameters, by release."""
MOST_PROGRAMS = 32
"""That are run; of more, so many that lie evenly in the grid, in no stride of its own."""
ENOUGH_BLOCKS = 20_000
"""That the programs run through before no further one is begun."""
MOST_BLOCKS = 100_000
"""That a program may run through; a longer one is given up."""
GOLDEN = (math.sqrt(5) - 1) / 2
KINDS: dict[InstructionKind, re.Pattern[str]] = {
    "memory": re.compile(rf"{GLOBAL.pattern}|cp\.async"),
    "tensor_cores": PRODUCT,
    "special_functions": re.compile(r"(?:ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh|div)\."),
}
"""Of which it is known apart from the rest how many of them a turn runs."""


@dataclass(frozen=True)
class Ran:
    """What runs equally often in the PTX: the code outside of loops, or a loop without those inside of it."""

    line: int | None
    """Of the source, where a loop turns; None outside of loops."""
    depth: int
    """0 outside of loops, 1 of a loop that is in no other."""
    marks: tuple[int, ...]
    """How many instructions of each of MARKS it holds, those of loops inside included."""
    turns: float
    """In a program, all of them together; the mean over programs."""
    share: float
    """Of the instructions that a turn runs; both sides of a branch where it is not known which."""
    share_of: dict[InstructionKind, float]
    """The same of a kind's."""


def ran(ptx: str, kernel: CompiledKernel) -> tuple[Ran, ...] | None:
    """What a kernel's launch runs of its PTX: outside of loops, then each loop in the order of the text.

    None where a loop's end depends on what is loaded or computed in floats, for programs that run long, and
    for a grid of no programs.
    """
    body = Body(ptx, Path(kernel.file).name)
    parameters = parameters_of(ptx, kernel.arguments)
    programs = 0
    for known in sampled_programs(kernel.grid or (1,)):
        if body.steps < ENOUGH_BLOCKS:
            programs += 1
            if not body.run({**parameters, **known}):
                return None
    return tuple(body.ran(n, programs) for n in (None, *range(len(body.blocks.loops)))) if programs else None


def parameters_of(ptx: str, arguments: Sequence[KernelArgument]) -> dict[str, Value]:
    """The integers that the launch passes, by the names of PTX. A tensor descriptor is several parameters:
    itself, its sizes and its strides. Empty where parameters and arguments do not fit."""
    names = PARAMETER.findall(ptx)
    values: list[Value] = []
    for argument in arguments:
        if rank := RANK.match(argument.type):
            values += [None] * (1 + 2 * len(rank[1].split(",")))
        elif argument.type != "constexpr":
            values.append(argument.value if isinstance(argument.value, int) else None)
    return dict(zip(names, values, strict=False)) if len(names) - len(values) in SCRATCH else {}


def sampled_programs(grid: tuple[int, ...]) -> Iterator[dict[str, Value]]:
    """The special registers of programs of the grid: all of a few."""
    x, y, z = [*grid, 1, 1][:3]
    count = x * y * z
    few = range(count) if count <= MOST_PROGRAMS else range(MOST_PROGRAMS)
    for n in few:
        at = n if count <= MOST_PROGRAMS else int(count * (n * GOLDEN % 1))
        yield {
            "%nctaid.x": x,
            "%nctaid.y": y,
            "%nctaid.z": z,
            "%ctaid.x": at % x,
            "%ctaid.y": at // x % y,
            "%ctaid.z": at // x // y,
        }


def entry(rows: Iterable[tuple[str, int | None]]) -> Iterator[tuple[str, int | None]]:
    """The rows between a kernel's braces, with their lines; inline assembly has braces of its own."""
    depth = 0
    for row, line in dropwhile(lambda located: not located[0].startswith("{"), rows):
        depth += row.count("{") - row.count("}")
        if not depth:
            return
        yield row, line


class Body:
    """The instructions of a kernel's PTX, and its control flow."""

    def __init__(self, ptx: str, file_name: str) -> None:
        located = [*entry(locate(ptx, file_name))]
        self._lines = [line for _, line in located]
        rows = [row for row, _ in located]
        self._statements = [statement(row) for row in rows]
        labels = {match[1]: n for n, row in enumerate(rows) if (match := LABEL.match(row))}
        jumps = {n: s for n, s in enumerate(self._statements) if s and s.opcode.startswith(("bra", "ret"))}
        self._branches = {n: s for n, s in jumps.items() if s.operands and s.operands[0] in labels}
        self.blocks = Blocks(
            len(rows),
            {n: labels[s.operands[0]] for n, s in self._branches.items()},
            frozenset(n for n, s in jumps.items() if not s.guard),
        )
        needed = deciding([*filter(None, self._statements)])
        self._deciding = [
            [s for s in self._statements[block.start : block.end] if s and needed & {*s.written}]
            for block in self.blocks.blocks
        ]
        self.steps = 0
        """Blocks that all programs ran through."""
        self._executed = Counter[int]()
        """How often each block ran, in all programs together."""
        self._open: set[int] = set()
        """Blocks that branches lead to whose direction is not known."""

    def run(self, known: Mapping[str, Value]) -> bool:
        """Run a program with these registers and parameters; whether all that turns its loops is known."""
        registers, last = Registers(known), self.steps + MOST_BLOCKS
        block: int | None = 0
        while block is not None:
            self._executed[block] += 1
            self.steps += 1
            for each in self._deciding[block]:
                registers.run(each)
            branch = self._branches.get(self.blocks.blocks[block].end - 1)
            taken = registers.holds(branch) if branch else False
            if self.steps > last or (taken is None and self.blocks.leaves_a_loop(block)):
                return False
            successors = self.blocks.blocks[block].successors
            if taken is None:
                self._open.update(successors)
            block = successors[-1 if taken else 0] if successors else None
        return True

    def ran(self, loop: int | None, programs: int) -> Ran:
        """What ran of a loop, by its number, or of what is in none."""
        known = self.blocks.loops[loop] if loop is not None else None
        turns = sum(self._executed[latch] for latch in known.latches) if known else programs
        own = [block for block in self.blocks.reachable if self.blocks.innermost(block) == loop]
        either = self._either()
        runs = {b: 1.0 if b in either else min(1.0, self._executed[b] / max(turns, 1)) for b in own}

        def share(pattern: re.Pattern[str] | None = None) -> float:
            counts = {block: self._count(block, pattern) for block in own}
            held = sum(counts.values())
            return sum(count * runs[block] for block, count in counts.items()) / held if held else 1.0

        whole = known.blocks if known else self.blocks.reachable
        return Ran(
            line=self._lines[self.blocks.blocks[min(known.latches)].end - 1] if known else None,
            depth=self.blocks.depth(known) if known else 0,
            marks=tuple(sum(self._count(block, mark) for block in whole) for mark in MARKS),
            turns=turns / programs,
            share=share(),
            share_of={kind: share(pattern) for kind, pattern in KINDS.items()},
        )

    def _count(self, block: int, pattern: re.Pattern[str] | None) -> int:
        """The instructions of a block, or those of a kind."""
        inside = filter(None, (self._statements[row] for row in self.blocks.rows(block)))
        return sum(pattern is None or bool(pattern.match(each.opcode)) for each in inside)

    def _either(self) -> frozenset[int]:
        """Blocks that did not run because of a branch whose direction is not known, and what follows them."""
        excused, pending = set[int](), [*self._open]
        while pending:
            block = pending.pop()
            if block not in excused and not self._executed[block]:
                excused.add(block)
                pending += self.blocks.blocks[block].successors
        return frozenset(excused)
