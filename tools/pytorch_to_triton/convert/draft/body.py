"""From cells to the lines of a kernel: passes over the reduced axis, masks, accumulators.

A value that varies along the reduced axis is computed again in each pass that needs it; what a reduction
gives is there from the next pass on. With the whole row in registers there is one pass and no loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pytorch_to_triton.convert.draft import online
from pytorch_to_triton.convert.draft.axes import Memory
from pytorch_to_triton.convert.draft.cells import FLOATS, Cell, Compute, Load, Online, Reduce
from pytorch_to_triton.convert.draft.expressions import Text, filled, repeated
from pytorch_to_triton.convert.draft.form import Addresses
from pytorch_to_triton.draft.file.lines import INDENT, wrapped

INFINITY = 'float("inf")'
NEUTRAL = {"sum": "0.0", "prod": "1.0", "max": f"-{INFINITY}", "min": INFINITY}
WHOLE_NEUTRAL = {"sum": "0", "prod": "1", "max": "-9223372036854775808", "min": "9223372036854775807"}
UPDATE = {
    "sum": "{acc} += {value}",
    "prod": "{acc} *= {value}",
    "max": "{acc} = tl.maximum({acc}, {value})",
    "min": "{acc} = tl.minimum({acc}, {value})",
}
NAN_UPDATE = {
    "max": "{acc} = tl.maximum({acc}, {value}, propagate_nan=tl.PropagateNan.ALL)",
    "min": "{acc} = tl.minimum({acc}, {value}, propagate_nan=tl.PropagateNan.ALL)",
}
INLINE_WEIGHT = 5
"""A nameless value used once is written into its user while the expression stays this small."""


@dataclass
class Writer:
    """Writes one kernel's body."""

    cells: Sequence[Cell]
    stores: dict[str, Memory]
    """Cell -> where it goes."""
    addresses: Addresses
    compute: str
    lines: list[str] = field(default_factory=list)
    used_helpers: set[str] = field(default_factory=set)
    pads: bool = True
    """Whether masked lanes matter in the pass being written: not where nothing is reduced."""

    def __post_init__(self) -> None:
        self.form = self.addresses.form
        self.cells = live(self.cells, self.stores)
        self.by_name = {c.name: c for c in self.cells}
        self.by_name |= {c.second: c for c in self.cells if isinstance(c, Online)}
        self.level: dict[str, int] = {}
        for cell in self.cells:
            below = max((self.level[o] for o in inputs_of(cell)), default=0)
            self.level[cell.name] = below + isinstance(cell, Reduce | Online)
            if isinstance(cell, Online):
                self.level[cell.second] = below + 1
        self.padding = {c.name: self._padding(c) for c in self.cells if isinstance(c, Load)}
        self.masked = self._masked()
        for cell in self.cells:
            carried = NEUTRAL["max"] if cell.name in self.masked else self._carried(cell)
            self.padding.setdefault(cell.name, carried)

    @property
    def reduced(self) -> int | None:
        return next((i for i, a in enumerate(self.addresses.axes) if a.reduced), None)

    @property
    def passes(self) -> int:
        """How often the kernel walks the reduced axis."""
        if not self.form.loop:
            return 1
        return len({self._pass_of(c) for c in self.cells if self._pass_of(c) is not None})

    @property
    def compares_computed(self) -> bool:
        """Whether a computed value is subtracted from another.

        A fused multiply-add would round one side of the difference and not the other: what should cancel
        would not, and a value below its own maximum would not be at most 0.
        """
        computed = {c.name for c in self.cells if not isinstance(c, Load)}
        return any(
            isinstance(c, Compute) and c.varies and "_0 - _1" in c.template and set(inputs_of(c)) <= computed
            for c in self.cells
        )

    def write(self) -> list[str]:
        """The body's lines, indented once."""
        if self.form.loop:
            self._in_passes()
        else:
            self._at_once()
        setup = used_definitions((*self.form.setup, *self.addresses.definitions(in_loop=False)), self.lines)
        lines = [*(f"{INDENT}{name} = {text}" for name, text in setup), *self.lines]
        return [part for line in lines for part in wrapped(line)]

    def _at_once(self) -> None:
        wanted = [c for c in self.cells if c.name in self.stores or isinstance(c, Reduce)]
        lines = []
        inline = self._inlined(self.cells, wanted)
        for cell in self.cells:
            if isinstance(cell, Reduce):
                lines.append(self._reduced_at_once(cell, inline))
            elif cell.name not in inline:
                lines.append(f"{cell.name} = {self._expression(cell, inline)}")
            if cell.name in self.stores:
                lines.append(self._store(cell))
        self._emit(lines)

    def _in_passes(self) -> None:
        fixed = [c for c in self.cells if not c.varies and not isinstance(c, Reduce | Online)]
        self._fixed(fixed, 0)
        for number in range(max(self.level.values(), default=0) + 1):
            ends = [c for c in self.cells if self._pass_of(c) == number]
            if ends:
                self._one_pass(ends)
            self._fixed(fixed, number + 1)
        self._emit(self._store(c) for c in self.cells if c.name in self.stores and not c.varies)

    def _pass_of(self, cell: Cell) -> int | None:
        """The pass in which a reduction is taken, or a varying value stored."""
        if isinstance(cell, Reduce | Online):
            return self.level[cell.name] - 1
        return self.level[cell.name] if cell.varies and cell.name in self.stores else None

    def _fixed(self, cells: Iterable[Cell], level: int) -> None:
        """Values that do not vary along the reduced axis, as soon as they can be known."""
        ready = [c for c in cells if self.level[c.name] == level]
        inline = self._inlined(ready, [c for c in ready if self._is_needed_later(c, ready)])
        self._emit(f"{c.name} = {self._expression(c, inline)}" for c in ready if c.name not in inline)

    def _is_needed_later(self, cell: Cell, ready: list[Cell]) -> bool:
        users = [c for c in self.cells if cell.name in inputs_of(c)]
        return cell.name in self.stores or any(u not in ready for u in users)

    def _one_pass(self, ends: list[Cell]) -> None:
        needed = self._needed(ends)
        reductions = [c for c in ends if isinstance(c, Reduce | Online)]
        self.pads = bool(reductions)
        inline = self._inlined(needed, ends)
        body = []
        for cell in needed:
            if isinstance(cell, Reduce):
                body.append(self._update(cell, inline))
            elif isinstance(cell, Online):
                body += online.update(cell, self._walk(cell, inline))
            elif cell.name not in inline:
                body.append(f"{cell.name} = {self._expression(cell, inline)}")
            if cell in ends and cell.varies and cell.name in self.stores:
                body.append(self._store(cell))
        definitions = (*self.form.loop_setup, *self.addresses.definitions(in_loop=True))
        setup = used_definitions(definitions, body)
        self._emit(line for c in reductions for line in self._accumulators(c))
        assert self.form.loop is not None
        self._emit([self.form.loop])
        self._emit([*(f"{INDENT}{n} = {t}" for n, t in setup), *(INDENT + line for line in body)])
        self._emit(line for c in reductions for line in self._finished(c))

    def _needed(self, ends: list[Cell]) -> list[Cell]:
        """The varying cells behind `ends`, and the ends, in order."""
        names = {c.name for c in ends}
        for cell in reversed(self.cells):
            if cell.name in names and (cell in ends or not isinstance(cell, Reduce | Online)):
                names |= {o for o in inputs_of(cell) if self.by_name[o].varies}
        return [c for c in self.cells if c.name in names]

    def _inlined(self, cells: Sequence[Cell], ends: Sequence[Cell]) -> set[str]:
        """Nameless values that have one user among `cells` and read better in place."""
        inline: set[str] = set()
        for cell in cells:
            users = [c for c in cells if cell.name in inputs_of(c)]
            keeps_line = cell.given_name or cell in ends or cell.name in {*self.stores, *self.masked}
            if not isinstance(cell, Compute) or keeps_line or len(users) != 1:
                continue
            (user,) = users
            if isinstance(user, Compute):
                twice = repeated(user.template)
                if any(o == cell.name and i in twice for i, o in enumerate(user.operands)):
                    continue
            elif isinstance(user, Online) or (self.padding[cell.name] is None and isinstance(user, Reduce)):
                continue
            if Text.of(self._expression(cell, inline)).weight <= INLINE_WEIGHT:
                inline.add(cell.name)
        return inline

    def _expression(self, cell: Cell, inline: set[str]) -> str:
        if isinstance(cell, Load):
            return self._load(cell)
        assert isinstance(cell, Compute)
        operands = [o if isinstance(o, Text) else self._text(o, inline) for o in cell.operands]
        text = re.sub(r"float\('(-?inf|nan)'\)", r'float("\1")', str(filled(cell.template, operands)))
        if cell.name not in self.masked or not self.pads:
            return text
        assert self.reduced is not None
        return f"tl.where({self.form.masks[self.reduced]}, {text}, -{INFINITY})"

    def _text(self, name: str, inline: set[str]) -> Text:
        return Text.of(self._expression(self.by_name[name], inline) if name in inline else name)

    def _load(self, cell: Load) -> str:
        memory = cell.memory
        arguments = [f"{memory.buffer}_ptr{self.addresses.offset(memory)}"]
        mask = self.addresses.mask(memory)
        if mask:
            arguments.append(f"mask={mask}")
            padding = self.padding[cell.name]
            if padding is not None and self.pads:
                arguments.append(f"other={padding}")
        text = f"tl.load({', '.join(arguments)})"
        return f"{text}.to({self.compute})" if memory.dtype in FLOATS else text

    def _store(self, cell: Cell) -> str:
        memory = self.stores[cell.name]
        mask = self.addresses.mask(memory)
        value = cell.name
        rest = f", mask={mask}" if mask else ""
        return f"tl.store({memory.buffer}_ptr{self.addresses.offset(memory)}, {value}{rest})"

    def _reduced_at_once(self, cell: Reduce, inline: set[str]) -> str:
        return f"{cell.name} = {self._collapsed(cell, self._neutralised(cell, inline))}"

    def _collapsed(self, cell: Reduce, value: str) -> str:
        if cell.keeps_nan:
            self.used_helpers.add(f"nan_{cell.kind}")
            return f"tl.reduce({value}, {self._collapse('combine_fn=nan_' + cell.kind)})"
        if cell.kind == "prod":
            self.used_helpers.add("multiply")
            return f"tl.reduce({value}, {self._collapse('combine_fn=multiply')})"
        return f"tl.{cell.kind}({value}, {self.form.collapse})"

    def _collapse(self, function: str) -> str:
        axis, *rest = self.form.collapse.split(", ")
        return ", ".join([axis, function, *rest])

    def _neutralised(self, cell: Reduce, inline: set[str]) -> str:
        """The operand with the neutral element outside of the row."""
        value = str(self._text(cell.operand, inline))
        assert self.reduced is not None
        mask = self.form.masks[self.reduced]
        neutral = (WHOLE_NEUTRAL if cell.whole_numbers else NEUTRAL)[cell.kind]
        if mask is None or self.padding[cell.operand] == neutral:
            return value
        return f"tl.where({mask}, {value}, {neutral})"

    def _accumulators(self, cell: Reduce | Online) -> list[str]:
        if isinstance(cell, Online):
            return online.start(cell, self._walk(cell, set()))
        dtype = "tl.int64" if cell.whole_numbers else self.compute
        name = accumulator(cell.name)
        if cell.kind == "sum":
            return [f"{name} = tl.zeros({self.form.tile}, {dtype})"]
        neutral = (WHOLE_NEUTRAL if cell.whole_numbers else NEUTRAL)[cell.kind]
        return [f"{name} = tl.full({self.form.tile}, {neutral}, {dtype})"]

    def _update(self, cell: Reduce, inline: set[str]) -> str:
        template = (NAN_UPDATE if cell.keeps_nan else UPDATE)[cell.kind]
        return template.format(acc=accumulator(cell.name), value=self._neutralised(cell, inline))

    def _finished(self, cell: Reduce | Online) -> list[str]:
        if isinstance(cell, Online):
            return online.finish(cell, self._walk(cell, set()))
        return [f"{cell.name} = {self._collapsed(cell, accumulator(cell.name))}"]

    def _emit(self, lines: Iterable[str]) -> None:
        self.lines += [INDENT + line for line in lines]

    def _padding(self, load: Load) -> str | None:
        """What a load puts in masked lanes: the neutral element of the reduction that reads it."""
        if self.reduced is None or not load.varies or self.form.masks[self.reduced] is None:
            return None
        kinds = [
            c.kind if isinstance(c, Reduce) else "moments" if c.kind == "moments" else "max"
            for c in self.cells
            if isinstance(c, Reduce | Online) and c.operand == load.name
        ]
        if "max" in kinds:
            return NEUTRAL["max"] if load.memory.dtype in FLOATS else None
        if "moments" in kinds:
            return NEUTRAL["sum"] if load.memory.dtype in FLOATS else None
        if kinds and load.memory.dtype in FLOATS:
            return NEUTRAL[kinds[0]]
        squares = [c for c in self.cells if isinstance(c, Compute) and set(c.operands) == {load.name}]
        zero = any(c.template in ("_0 * _0", "tl.abs(_0)") for c in squares)
        return "0.0" if zero and load.memory.dtype in FLOATS else None

    def _masked(self) -> set[str]:
        """Computed values that take -inf outside of the row at once, since their maximum is taken."""
        if self.reduced is None or self.form.masks[self.reduced] is None:
            return set()
        operands = {
            c.operand
            for c in self.cells
            if (isinstance(c, Reduce) and c.kind == "max" and not c.whole_numbers)
            or (isinstance(c, Online) and c.kind != "moments")
        }
        return {c.name for c in self.cells if isinstance(c, Compute) and c.varies and c.name in operands}

    def _carried(self, cell: Cell) -> str | None:
        """What masked lanes of a computed value hold, where that is certain."""
        if not isinstance(cell, Compute):
            return None
        pads = [self.padding.get(o) if isinstance(o, str) else None for o in cell.operands]
        fixed = [isinstance(o, str) and not self.by_name[o].varies for o in cell.operands]
        low = f"-{INFINITY}"
        match cell.template:
            case "_0 - _1" if pads[0] == low and fixed[1]:
                return low
            case "tl.exp(_0 - _1)" if pads[0] == low and fixed[1]:
                return "0.0"
            case "tl.exp(_0)" if pads[0] == low:
                return "0.0"
            case "_0 * _0" | "tl.abs(_0)" | "-_0" if pads[0] == "0.0":
                return "0.0"
        return None

    def _walk(self, cell: Online, inline: set[str]) -> online.Walk:
        assert self.reduced is not None
        mask = self.form.masks[self.reduced]
        assert mask is not None
        neutral = "0.0" if cell.kind == "moments" else f"-{INFINITY}"
        return online.Walk(
            x=str(self._text(cell.operand, inline)),
            mask=mask,
            tile=self.form.tile,
            collapsed=self.form.collapsed,
            collapse=self.form.collapse,
            row_length=self._row_length(),
            compute=self.compute,
            neutral=self.padding[cell.operand] == neutral,
        )

    def _row_length(self) -> str:
        assert self.reduced is not None
        return self.addresses.named(self.addresses.axes[self.reduced].size)


def live(cells: Sequence[Cell], stores: Iterable[str]) -> list[Cell]:
    """The cells that a store depends on."""
    needed, kept = set(stores), []
    for cell in reversed(cells):
        if cell.name in needed or (isinstance(cell, Online) and cell.second in needed):
            kept.append(cell)
            needed |= set(inputs_of(cell))
    return kept[::-1]


def accumulator(name: str) -> str:
    """What a reduction is gathered in until its walk ends."""
    return f"{name}_acc"


def inputs_of(cell: Cell) -> tuple[str, ...]:
    """The cells that a cell reads."""
    match cell:
        case Compute(operands=operands):
            return tuple(o for o in operands if isinstance(o, str))
        case Reduce(operand=operand) | Online(operand=operand):
            return (operand,)
    return ()


def used_definitions(definitions: Sequence[tuple[str, str]], lines: Sequence[str]) -> list[tuple[str, str]]:
    """The definitions that the lines, or later used definitions, mention."""
    text = "\n".join(lines)
    used = []
    for name, value in reversed(definitions):
        if re.search(rf"\b{name}\b", text):
            used.append((name, value))
            text += "\n" + value
    return used[::-1]
