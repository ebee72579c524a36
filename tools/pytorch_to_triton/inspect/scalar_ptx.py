"""Running the integer instructions of PTX that decide which way a program goes.

What is loaded from memory is not known, nor what is computed from it. A thread's index is 0.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import and_, eq, ge, gt, le, lt, ne, or_, xor

Value = int | None
"""Of a register; None where it is not known."""

STATEMENT = re.compile(r"^\s*(?:@(!?)(%\w+)\s+)?([a-z][\w.:]*)\s*(.*?);?\s*$")
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
TYPE = re.compile(r"\.([bus])(8|16|32|64)$")
NUMBER = re.compile(r"-?\d+|0x[0-9A-Fa-f]+")
COMPARED: dict[str, Callable[..., int]] = {
    "eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge, "lo": lt, "ls": le, "hi": gt, "hs": ge,
}  # fmt: skip


@dataclass(frozen=True)
class PtxStatement:
    """One instruction of PTX."""

    guard: str
    """The predicate that it needs; empty: none."""
    negated: bool
    opcode: str
    """With its suffixes."""
    operands: tuple[str, ...]
    """Its result first."""

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The registers that it may write, all of a vector."""
        first = self.operands[0] if self.operands else ""
        return tuple(re.findall(r"%\w+", first)) if first[:1] in "%{" else ()

    @cached_property
    def constants(self) -> tuple[Value, ...]:
        """The numbers among its operands; None for the others."""
        return tuple(int(text, 0) if NUMBER.fullmatch(text) else None for text in self.operands[1:])

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Its operands but the result: registers, and parameters without their brackets."""
        return tuple(text.strip("[]") for text in self.operands[1:])

    @cached_property
    def meaning(self) -> Callable[[Sequence[int]], Value] | None:
        """What it computes of its operands; None: what is not computed here."""
        return meaning_of(self.opcode, len(self.operands) - 1)

    @property
    def read(self) -> frozenset[str]:
        """The registers that its result depends on."""
        others = re.findall(r"%[\w.]+", " ".join(self.operands[1:]))
        return frozenset([*others, *([self.guard] if self.guard else [])])


def statement(row: str) -> PtxStatement | None:
    """The instruction in a row of PTX; None for directives, labels and comments."""
    match = STATEMENT.match(row.partition("//")[0])
    if match is None or match[3].endswith(":"):
        return None
    return PtxStatement(match[2] or "", match[1] == "!", match[3], tuple(OPERAND.findall(match[4])))


def deciding(statements: Sequence[PtxStatement | None]) -> frozenset[str]:
    """The registers that branches depend on."""
    writers: dict[str, list[PtxStatement]] = {}
    for known in filter(None, statements):
        for register in known.written:
            writers.setdefault(register, []).append(known)
    seen: set[str] = set()
    pending = [known.guard for known in filter(None, statements) if known.opcode.startswith("bra")]
    while pending:
        register = pending.pop()
        if register and register not in seen:
            seen.add(register)
            pending += (other for writer in writers.get(register, ()) for other in writer.read)
    return frozenset(seen)


class Registers:
    """What is known of a thread's registers."""

    def __init__(self, known: Mapping[str, Value]) -> None:
        """`known` are special registers such as %ctaid.x, and parameters by their names."""
        self.values: dict[str, Value] = dict(known)

    def holds(self, done: PtxStatement) -> bool | None:
        """Whether the statement's guard lets it run; None where that is not known."""
        if not done.guard:
            return True
        value = self.values.get(done.guard)
        return None if value is None else bool(value) != done.negated

    def run(self, done: PtxStatement) -> None:
        """Write the statement's result."""
        if (runs := self.holds(done)) is False:
            return
        result = self._result(done) if runs and len(done.written) == 1 else None
        for register in done.written:
            self.values[register] = result

    def _result(self, done: PtxStatement) -> Value:
        read = self.values.get
        operands = [
            read(source) if constant is None else constant
            for constant, source in zip(done.constants, done.sources, strict=True)
        ]
        if done.opcode.startswith("selp") and operands[2] is not None:
            return operands[0] if operands[2] else operands[1]
        if done.meaning is None or None in operands:
            return None
        return done.meaning([operand for operand in operands if operand is not None])


def meaning_of(opcode: str, operands: int) -> Callable[[Sequence[int]], Value] | None:
    """The function of so many integers that an instruction computes."""
    name, *suffixes = opcode.split(".")
    if suffixes[-1:] == ["pred"]:
        return PREDICATES.get(name)
    if name == "cvt":
        return _conversion(suffixes)
    kind = TYPE.search(opcode)
    if kind is None:
        return None
    signed, bits = kind[1] == "s", int(kind[2])
    wide = name == "mul" and suffixes[0] == "wide"
    compute = ARITHMETIC.get(name)
    if name == "setp" and operands == 2:
        compute = COMPARED.get(suffixes[0])
    if compute is None or (name in ("mul", "mad") and suffixes[0] not in ("lo", "wide")) or operands > 3:
        return None
    result_bits = 2 * bits if wide else bits

    def meaning(values: Sequence[int]) -> int:
        result = compute(*(wrapped(value, bits, signed=signed) for value in values))
        return wrapped(int(result), result_bits, signed=signed)

    return meaning


def _conversion(suffixes: Sequence[str]) -> Callable[[Sequence[int]], Value] | None:
    """Between integers: `cvt.s64.s32`."""
    to, source = (TYPE.fullmatch("." + suffix) for suffix in suffixes[-2:])
    if to is None or source is None:
        return None
    to_signed, to_bits = to[1] == "s", int(to[2])
    signed, bits = source[1] == "s", int(source[2])
    return lambda values: wrapped(wrapped(values[0], bits, signed=signed), to_bits, signed=to_signed)


def wrapped(value: int, bits: int, *, signed: bool) -> int:
    """The value in so many bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def quotient(dividend: int, divisor: int) -> int:
    """Rounded towards zero, as the hardware does; 0 for a division by zero, which it leaves open."""
    if not divisor:
        return 0
    positive = abs(dividend) // abs(divisor)
    return positive if (dividend < 0) == (divisor < 0) else -positive


ARITHMETIC: dict[str, Callable[..., int]] = {
    "mov": lambda a: a,
    "ld": lambda a: a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mad": lambda a, b, c: a * b + c,
    "div": quotient,
    "rem": lambda a, b: a - b * quotient(a, b),
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
    "not": lambda a: ~a,
    "and": and_,
    "or": or_,
    "xor": xor,
    "shl": lambda a, b: a << min(b, 64),
    "shr": lambda a, b: a >> min(b, 64),
}
"""Results of instructions, of their operands."""
PREDICATES: dict[str, Callable[[Sequence[int]], Value]] = {
    "mov": lambda values: values[0],
    "not": lambda values: int(not values[0]),
    "and": lambda values: values[0] & values[1],
    "or": lambda values: values[0] | values[1],
    "xor": lambda values: values[0] ^ values[1],
}
"""The same of predicates, which are 0 or 1."""
