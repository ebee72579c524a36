"""The values of one kernel: loads, element-wise computations and reductions, in order.

Steps are lowered to cells; composite ones (softmax, layer norm, ...) into the few cells they are made of. Two
ways to take row statistics exist: `in_passes` (each from its definition, one pass over the row each) and
`online` (maximum with sum of exponentials, mean with variance: one pass for both; see online.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from pytorch_to_triton.convert.draft.axes import Memory, Nest
from pytorch_to_triton.convert.draft.expressions import POWERS, TEMPLATES, Text
from pytorch_to_triton.graph.program import Operand, Program, Step
from pytorch_to_triton.graph.symbolic_size import SymbolicSize
from pytorch_to_triton.graph.views import View
from pytorch_to_triton.schema.graph import Literal_, NodeArgument, NonFinite, ScalarRef, SizeRef

Statistics = Literal["in_passes", "online"]
FLOATS = frozenset({"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})


@dataclass(frozen=True)
class Cell:
    """A named value; `varies` says whether it changes along the reduced axis."""

    name: str
    varies: bool
    given_name: bool
    """The name comes from the caller's source, so the value keeps a line of its own."""


@dataclass(frozen=True)
class Load(Cell):
    """Reads memory."""

    memory: Memory


@dataclass(frozen=True)
class Compute(Cell):
    """A template filled with other cells (by name) or constants."""

    template: str
    operands: tuple[str | Text, ...]


@dataclass(frozen=True)
class Reduce(Cell):
    """Reduces a cell along the reduced axis: `sum`, `max`, `min` or `prod`; torch's max and min keep NaN."""

    kind: str
    operand: str
    whole_numbers: bool = False
    keeps_nan: bool = False


@dataclass(frozen=True)
class Online(Cell):
    """Two statistics in one pass; `name` is the first (maximum or mean), `second` the other.

    `softmax`: maximum and sum of exp(x - maximum). `logsumexp`: the same, 0 in place of an infinite maximum.
    `moments`: mean and sum of squared deviations.
    """

    second: str
    kind: Literal["softmax", "logsumexp", "moments"]
    operand: str


@dataclass
class Lowering:
    """Turns the steps of one nest into cells."""

    program: Program
    nest: Nest
    statistics: Statistics
    compute: str
    """`tl.float32`, or `tl.float64` in a float64 function."""
    row_length: str
    """The kernel's name for the size of the reduced axis."""
    taken: set[str]
    sizes: Mapping[SymbolicSize, str] = field(default_factory=dict)
    """The kernel's names for the sizes of its axes."""
    cells: list[Cell] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Step -> cell."""
    loaded: dict[Memory, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    """What `run` computes from sizes for the kernel: the expression, and its name."""

    def lower(self, steps: tuple[Step, ...]) -> list[Cell]:
        """All cells for `steps`, in order."""
        for step in steps:
            operands = [self._operand(step, i, o) for i, o in enumerate(step.operands)]
            lower = getattr(self, f"_{step.kind}", None)
            self.names[step.name] = lower(step, operands) if lower else self._pointwise(step, operands)
        return self.cells

    def _operand(self, step: Step, position: int, operand: Operand) -> str | Text:
        if isinstance(operand, SizeRef):
            return self._number(step, operand)
        if not isinstance(operand, View):
            return scalar(operand)
        memory = self.nest.loads.get((step.name, position))
        return self.names[operand.source] if memory is None else self._load(memory)

    def _number(self, step: Step, size: SizeRef) -> Text:
        """A dim as it is; what is computed from dims as an argument that `run` computes."""
        # libdevice.pow takes no whole number.
        text = f"float({size.expression})" if step.kind == "pow" else size.expression
        if text in self.program.graph.dims:
            return Text.of(text)
        if SymbolicSize.parse(text) in self.sizes:
            return Text.of(self.sizes[SymbolicSize.parse(text)])
        if text not in self.numbers:
            graph = self.program.graph
            # `run` knows the number by the same name, beside its tensors.
            beside = {
                *graph.parameters,
                *(i.name for i in graph.inputs),
                *(s.name for s in self.program.steps),
            }
            self.numbers[text] = self._name(size.label or number_name(step, size), beside=beside)
        return Text.of(self.numbers[text])

    def _load(self, memory: Memory) -> str:
        if memory not in self.loaded:
            reduced = self.nest.reduced
            varies = reduced is not None and not memory.strides[reduced].is_zero
            name = self._name(memory.label or memory.buffer)
            self.cells.append(Load(name, varies, True, memory))
            self.loaded[memory] = name
        return self.loaded[memory]

    def _name(self, wanted: str, *, accumulates: bool = False, beside: AbstractSet[str] = frozenset()) -> str:
        """A free name, not one of those `beside`; for a reduction, its accumulator's name is free as well."""
        name, n = wanted, 1
        while not (self.taken | beside).isdisjoint(made := {name, f"{name}_acc"} if accumulates else {name}):
            n += 1
            name = f"{wanted}_{n}"
        self.taken |= made
        return name

    def _compute(self, template: str, *operands: str | Text, name: str, given: bool = False) -> str:
        chosen = self._name(name)
        varies = any(self._varies(o) for o in operands)
        self.cells.append(Compute(chosen, varies, given, template, operands))
        return chosen

    def _varies(self, operand: str | Text) -> bool:
        return isinstance(operand, str) and any(c.varies for c in self.cells if self._defines(c, operand))

    @staticmethod
    def _defines(cell: Cell, name: str) -> bool:
        return cell.name == name or (isinstance(cell, Online) and cell.second == name)

    def _reduce(self, kind: str, operand: str | Text, *, name: str, keeps_nan: bool = False) -> str:
        assert isinstance(operand, str)
        chosen = self._name(name, accumulates=True)
        whole = self._is_whole_number(operand)
        if whole:
            operand = self._compute("_0.to(tl.int64)", operand, name=f"{operand}_long")
        self.cells.append(Reduce(chosen, False, True, kind, operand, whole, keeps_nan and not whole))
        return chosen

    def _is_whole_number(self, name: str) -> bool:
        loads = {v: k for k, v in self.loaded.items()}
        if name in loads:
            return loads[name].dtype not in FLOATS
        steps = {v: k for k, v in self.names.items()}
        return name in steps and self.program.dtype(steps[name]) not in FLOATS

    def _result(self, step: Step, template: str, *operands: str | Text) -> str:
        """The step's own value, under the name of the caller's variable where there is one."""
        given = step.source_name is not None
        return self._compute(template, *operands, name=step.name, given=given)

    def _pointwise(self, step: Step, operands: list[str | Text]) -> str:
        template, chosen = template_of(step, operands)
        if step.dtype in FLOATS:
            chosen = [self._as_float(o) for o in chosen]
        elif step.op.startswith("aten.logical_"):
            chosen = [self._as_bool(step.operands[i], o) for i, o in enumerate(chosen)]
        return self._result(step, template, *chosen)

    def _as_float(self, operand: str | Text) -> str | Text:
        if isinstance(operand, str) and self._is_whole_number(operand):
            return self._compute(f"_0.to({self.compute})", operand, name=f"{operand}_float")
        return operand

    def _as_bool(self, operand: Operand, text: str | Text) -> str | Text:
        if isinstance(operand, View) and self.program.dtype(operand.source) != "bool":
            return self._compute("_0 != 0", text, name=f"{text}_nonzero")
        return text

    def _where(self, step: Step, operands: list[str | Text]) -> str:
        return self._result(step, TEMPLATES["where"], *operands)

    def _masked_fill(self, step: Step, operands: list[str | Text]) -> str:
        return self._result(step, TEMPLATES["masked_fill"], *operands)

    def _cast(self, step: Step, operands: list[str | Text]) -> str:
        source = operands[0]
        narrower = step.dtype in ("float16", "bfloat16")
        if step.dtype == "bool":
            return self._result(step, "_0 != 0", source)
        if step.dtype not in FLOATS:
            return self._result(step, f"_0.to(tl.{step.dtype})", source)
        if narrower:
            return self._result(step, f"_0.to(tl.{step.dtype}).to({self.compute})", source)
        return self._result(step, "_0", self._as_float(source))

    def _sum(self, step: Step, operands: list[str | Text]) -> str:
        return self._reduce("sum", operands[0], name=step.name)

    def _mean(self, step: Step, operands: list[str | Text]) -> str:
        total = self._reduce("sum", operands[0], name=f"{operands[0]}_sum")
        return self._result(step, f"_0 / {self.row_length}", total)

    def _max(self, step: Step, operands: list[str | Text]) -> str:
        return self._reduce("max", operands[0], name=step.name, keeps_nan=True)

    def _min(self, step: Step, operands: list[str | Text]) -> str:
        return self._reduce("min", operands[0], name=step.name, keeps_nan=True)

    def _prod(self, step: Step, operands: list[str | Text]) -> str:
        return self._reduce("prod", operands[0], name=step.name)

    def _maximum_and_exponentials(
        self, x: str | Text, kind: Literal["softmax", "logsumexp"]
    ) -> tuple[str, str, str]:
        """The maximum to subtract, the exponentials below it, and their sum."""
        assert isinstance(x, str)
        if self.statistics == "online":
            largest, total = self._online(kind, x, f"{x}_max", f"{x}_exp_sum")
            return largest, self._compute("tl.exp(_0 - _1)", x, largest, name=f"{x}_exp"), total
        largest = self._reduce("max", x, name=f"{x}_max")
        if kind == "logsumexp":
            # Subtracting an infinite maximum would give NaN where the sum is plainly 0 or infinite.
            largest = self._compute(
                'tl.where(tl.abs(_0) == float("inf"), 0.0, _0)', largest, name=f"{x}_shift", given=True
            )
        exponentials = self._compute("tl.exp(_0 - _1)", x, largest, name=f"{x}_exp")
        return largest, exponentials, self._reduce("sum", exponentials, name=f"{x}_exp_sum")

    def _online(
        self, kind: Literal["softmax", "logsumexp", "moments"], x: str, first: str, second: str
    ) -> tuple[str, str]:
        a, b = self._name(first, accumulates=True), self._name(second, accumulates=True)
        self.cells.append(Online(a, False, True, b, kind, x))
        return a, b

    def _softmax(self, step: Step, operands: list[str | Text]) -> str:
        _, exponentials, total = self._maximum_and_exponentials(operands[0], "softmax")
        return self._result(step, "_0 / _1", exponentials, total)

    def _log_softmax(self, step: Step, operands: list[str | Text]) -> str:
        largest, _, total = self._maximum_and_exponentials(operands[0], "softmax")
        return self._result(step, "_0 - _1 - tl.log(_2)", operands[0], largest, total)

    def _logsumexp(self, step: Step, operands: list[str | Text]) -> str:
        shift, _, total = self._maximum_and_exponentials(operands[0], "logsumexp")
        return self._result(step, "_0 + tl.log(_1)", shift, total)

    def _moments(self, x: str | Text) -> tuple[str, str, str]:
        """Mean, the values less the mean, and the sum of their squares."""
        assert isinstance(x, str)
        if self.statistics == "online":
            mean, squares = self._online("moments", x, "mean", "squares_sum")
            return mean, self._compute("_0 - _1", x, mean, name="centered"), squares
        total = self._reduce("sum", x, name=f"{x}_sum")
        mean = self._compute(f"_0 / {self.row_length}", total, name="mean", given=True)
        centered = self._compute("_0 - _1", x, mean, name="centered", given=True)
        square = self._compute("_0 * _0", centered, name="square")
        return mean, centered, self._reduce("sum", square, name="squares_sum")

    def _var(self, step: Step, operands: list[str | Text]) -> str:
        correction = step.options["correction"]
        value = 1 if correction == Literal_(value=None) else str(scalar(correction))
        _, _, squares = self._moments(operands[0])
        # Rows of no more than `correction` elements have no variance: NaN, not a negative number.
        count = self.row_length if value == "0" else f"tl.maximum({self.row_length} - {value}, 0)"
        return self._result(step, f"_0 / {count}", squares)

    def _layer_norm(self, step: Step, operands: list[str | Text]) -> str:
        x, weight, bias, eps = (*operands, constant(1e-5))[:4]
        _, centered, squares = self._moments(x)
        rstd = self._compute(f"tl.rsqrt(_0 / {self.row_length} + _1)", squares, eps, name="rstd", given=True)
        return self._scaled(step, "_0 * _1", (centered, rstd), weight, bias)

    def _scaled(
        self, step: Step, template: str, base: tuple[str, str], weight: str | Text, bias: str | Text
    ) -> str:
        """`template` of `base`, times weight, plus bias, where they are given."""
        operands: list[str | Text] = list(base)
        for sign, extra in (("*", weight), ("+", bias)):
            if isinstance(extra, str):
                template = f"{template} {sign} _{len(operands)}"
                operands.append(extra)
        return self._result(step, template, *operands)


def scalar(argument: NodeArgument) -> Text:
    """An argument that is one number."""
    match argument:
        case Literal_(value=value):
            return constant(value)
        case NonFinite(value=value):
            return constant(float(value))
        case ScalarRef(name=name):
            return Text.of(name)
    raise AssertionError(argument)


def number_name(step: Step, size: SizeRef) -> str:
    """A name for a number that the caller's source gives none: `sqrt_n` for math.sqrt(N)."""
    call = re.fullmatch(r"math\.(\w+)\((\w+)\)", size.expression)
    if call:
        return f"{call[1]}_{call[2].lower()}"
    if step.kind == "pow":
        return "exponent"
    return "scale" if isinstance(size.traced, float) else "count"


def constant(value: object) -> Text:
    """A literal as Triton source."""
    if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
        return Text.of(f"float('{value}')")
    return Text.of(repr(value))


Chosen = tuple[str, list[str | Text]]


def template_of(step: Step, operands: list[str | Text]) -> Chosen:
    """The template of a pointwise step, and the operands it takes."""
    choose = SPECIAL.get(step.kind)
    return choose(step, operands) if choose else (TEMPLATES[step.kind], operands)


def _with_alpha(step: Step, operands: list[str | Text]) -> Chosen:
    if str(operands[2]) in ("1", "1.0"):
        return TEMPLATES[step.kind], operands[:2]
    scaled = {"add": "_0 + _2 * _1", "sub": "_0 - _2 * _1", "rsub": "_1 - _2 * _0"}
    return scaled[step.kind], operands


def _elu(step: Step, operands: list[str | Text]) -> Chosen:
    """Below 0, alpha times exp(input_scale * x) - 1; all of it times scale. What is 1 is not written."""
    alpha, scale, x = (f"_{i} * " if str(operands[i]) not in ("1", "1.0") else "" for i in (1, 2, 3))
    return f"tl.where(_0 > 0.0, {scale}_0, {scale}{alpha}libdevice.expm1({x}_0))", operands


def _power(step: Step, operands: list[str | Text]) -> Chosen:
    match step.operands[1]:
        case Literal_(value=int() | float() as exponent) if float(exponent) in POWERS:
            return POWERS[float(exponent)], operands[:1]
    return TEMPLATES["pow"], operands


def _clamp(step: Step, operands: list[str | Text]) -> Chosen:
    x, low, high = operands
    nothing = Literal_(value=None)
    if step.operands[1] == nothing:
        return TEMPLATES["clamp_max"], [x, high]
    if step.operands[2] == nothing:
        return TEMPLATES["clamp_min"], [x, low]
    return TEMPLATES["clamp"], operands


def _gelu(step: Step, operands: list[str | Text]) -> Chosen:
    tanh = step.options["approximate"] == Literal_(value="tanh")
    return TEMPLATES["gelu_tanh" if tanh else "gelu"], operands


def _softplus(step: Step, operands: list[str | Text]) -> Chosen:
    x, _, threshold = operands
    if step.operands[1] in (Literal_(value=1), Literal_(value=1.0)):
        return TEMPLATES["softplus_1"], [x, threshold]
    return TEMPLATES["softplus"], operands


SPECIAL: Mapping[str, Callable[[Step, list[str | Text]], Chosen]] = {
    "add": _with_alpha,
    "clamp": _clamp,
    "elu": _elu,
    "gelu": _gelu,
    "pow": _power,
    "rsub": _with_alpha,
    "softplus": _softplus,
    "sub": _with_alpha,
}
"""Pointwise kinds whose template depends on their arguments."""
