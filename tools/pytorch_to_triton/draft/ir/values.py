"""What a program means: values over named axes. Nothing here knows of blocks, loops, masks or Triton.

Index expressions are values too: a gather is a Load at a Load. A Reduce or Scan binds the axis that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from pytorch_to_triton.draft.ir.functions import FUNCTIONS, Kind
from pytorch_to_triton.draft.ir.node import node
from pytorch_to_triton.draft.ir.sizes import Size

Number = float | int | bool


def in_kind(x: Number, kind: Kind) -> Number:
    """The number as one of that kind."""
    kinds: Mapping[Kind, Callable[[Number], Number]] = {"float": float, "int": int, "bool": bool}
    return kinds[kind](x)


@dataclass(frozen=True)
class Axis:
    """Runs from 0 to `size` - 1. Axes are told apart by name."""

    name: str
    size: Size


@dataclass(frozen=True)
class Buffer:
    """A tensor in memory, contiguous."""

    name: str
    shape: tuple[Size, ...]
    dtype: str
    """As PyTorch names it: `float32`, `int64`, `bool`."""
    like: str = ""
    """The tensor that it is a copy of, whose dtype it has in every call."""

    @property
    def kind(self) -> Kind:
        """What kind of value it holds."""
        return kind_of_dtype(self.dtype)


def kind_of_dtype(dtype: str) -> Kind:
    """`float`, `int` or `bool`."""
    return "bool" if dtype == "bool" else "int" if dtype.startswith(("int", "uint")) else "float"


def operators(fn: str) -> tuple[Callable[[Value, Operand], Value], Callable[[Value, Operand], Value]]:
    """Python's methods for a function of two, the value being the first operand or the second."""
    return lambda value, other: op(fn, value, other), lambda value, other: op(fn, other, value)


@dataclass(frozen=True)
class Value:
    """Equal values are one value: this is all the common subexpression elimination there is.

    `a + b` is `op("add", a, b)`, and so on; `==` compares the values themselves.
    """

    __add__, __radd__ = operators("add")
    __sub__, __rsub__ = operators("sub")
    __mul__, __rmul__ = operators("mul")
    __truediv__, __rtruediv__ = operators("div")
    __and__, __rand__ = operators("and")
    __or__, __ror__ = operators("or")
    __lt__, __le__, __gt__, __ge__ = (operators(fn)[0] for fn in ("lt", "le", "gt", "ge"))

    def __neg__(self) -> Value:
        return op("neg", self)


Operand = Value | Number


@node
class Const(Value):
    """A literal. 1, 1.0 and True are three values."""

    value: Number
    kind: Kind = field(init=False)

    def __post_init__(self) -> None:
        kinds: Mapping[type, Kind] = {bool: "bool", int: "int", float: "float"}
        object.__setattr__(self, "kind", kinds[type(self.value)])


@node
class Extent(Value):
    """A size as a number."""

    size: Size


@node
class Argument(Value):
    """A number that `run` passes: one of the function's own, or computed there from the sizes."""

    name: str
    source: str
    """Python over the dims or, if it is not `is_of_sizes`, over `run`'s arguments."""
    kind: Kind = "float"
    is_of_sizes: bool = True


@node
class Index(Value):
    """The position along an axis."""

    axis: Axis


@node
class Load(Value):
    """An element of a buffer."""

    buffer: Buffer
    index: tuple[Value, ...]
    where: Value | None = None
    """Where there is something to read; elsewhere the value is `other`. Meaning, not tile bounds."""
    other: Number = 0.0
    name: str | None = field(default=None, compare=False)


@node
class Map(Value):
    """A pointwise function of values; `fn` is a row of FUNCTIONS."""

    fn: str
    args: tuple[Value, ...]
    name: str | None = field(default=None, compare=False)


@node
class Reduce(Value):
    """A monoid over axes."""

    monoid: Monoid
    args: tuple[Value, ...]
    axes: tuple[Axis, ...]
    name: str | None = field(default=None, compare=False)


@node
class Get(Value):
    """One field of a Reduce or Scan that carries several."""

    of: Reduce | Scan
    part: int
    """Which of the monoid's fields."""
    name: str | None = field(default=None, compare=False)


@node
class Scan(Value):
    """The monoid over all positions of `axis` up to `at`, itself included."""

    monoid: Monoid
    args: tuple[Value, ...]
    axis: Axis
    at: Value
    name: str | None = field(default=None, compare=False)


@node
class Var(Value):
    """What a Reduce carries, while its combination is described."""

    name: str
    axes: frozenset[Axis] = frozenset()
    kind: Kind = "float"


@dataclass(frozen=True)
class Store:
    """Writes a value, at every position of the axes in its index."""

    buffer: Buffer
    index: tuple[Value, ...]
    value: Value
    where: Value | None = None
    """Writes only there."""
    rounds: bool = False
    """Whether what is computed of the value is computed of it as it lies in memory."""

    @property
    def roots(self) -> tuple[Value, ...]:
        """All values that it needs."""
        return (*self.index, *(() if self.where is None else (self.where,)), self.value)

    def map(self, fn: Callable[[Value], Value]) -> Store:
        """The same store of other values."""
        where = None if self.where is None else fn(self.where)
        return replace(self, index=tuple(map(fn, self.index)), value=fn(self.value), where=where)


@dataclass(frozen=True)
class Cluster:
    """What one kernel computes."""

    name: str
    stores: tuple[Store, ...]

    @property
    def roots(self) -> tuple[Value, ...]:
        """All values that its stores need."""
        return tuple(v for s in self.stores for v in s.roots)

    def values(self) -> list[Value]:
        """Every value once, operands first."""
        return list(self._values)

    @cached_property
    def _values(self) -> tuple[Value, ...]:
        return tuple(walk(*self.roots))

    def reduces(self) -> list[Reduce]:
        """Its reductions, inner ones first."""
        return [v for v in self.values() if isinstance(v, Reduce)]

    def inner_reduces(self) -> list[Reduce]:
        """The reductions inside of others."""
        return [v for r in self.reduces() for v in walk(*r.args) if isinstance(v, Reduce)]

    def scans(self) -> list[Scan]:
        """Its scans, inner ones first."""
        return [v for v in self.values() if isinstance(v, Scan)]

    def loads(self) -> list[Load]:
        """What it reads."""
        return [v for v in self.values() if isinstance(v, Load)]

    def largest_loads(self) -> list[Load]:
        """Those that vary along most axes."""
        loads = self.loads()
        most = max((len(axes_of(v)) for v in loads), default=0)
        return [v for v in loads if len(axes_of(v)) == most]

    def free(self) -> tuple[Axis, ...]:
        """The axes of its stores, in order."""
        found = (a for s in self.stores for i in (*s.index, s.value) for a in axes_in_order(i))
        return tuple(dict.fromkeys(found))

    def map(self, fn: Callable[[Value], Value]) -> Cluster:
        """The same stores with other values."""
        return replace(self, stores=tuple(s.map(fn) for s in self.stores))


@dataclass(frozen=True)
class Monoid:
    """What can be reduced. `lift` and `combine` say what is meant.

    `step`, where there is one, takes a whole tile at a time, in terms of plain reductions, the way a person
    would write it.
    """

    name: str
    identity: tuple[Number, ...]
    lift: Callable[..., tuple[Value, ...]] = field(compare=False)
    combine: Callable[..., tuple[Value, ...]] = field(compare=False)
    step: Callable[..., tuple[tuple[int, Value], ...]] | None = field(default=None, compare=False)
    """(carry, args, axes) -> assignments to the carry, in order."""
    fields: tuple[str, ...] = ("value",)
    spans: tuple[tuple[int, ...], ...] = ((0,),)
    """Field -> the args along whose axes it varies; the last one gives its kind."""

    @property
    def is_plain(self) -> bool:
        """Whether it carries one value."""
        return len(self.identity) == 1


def const(x: Operand) -> Value:
    """The value, or the number as one."""
    return x if isinstance(x, Value) else Const(x)


def op(fn: str, *args: Operand, name: str | None = None) -> Value:
    """A Map, with what is known of whole numbers applied."""
    values = tuple(map(const, args))
    match fn, values:
        case ("add" | "sub", (x, Const(0))) if kind_of(x) == "int" or kind_of(values[1]) == "int":
            return x
        case ("add", (Const(0), x)) | ("mul", (Const(1), x)) if kind_of(x) == "int":
            return x
        case ("mul" | "floordiv", (x, Const(1))) if kind_of(x) == "int":
            return x
        case ("to_bool", (x,)) if kind_of(x) == "bool":
            return x
    return Map(fn, values, name)


def named(name: str | None, value: Value) -> Value:
    """The value under a name for the reader."""
    if name is None or not isinstance(value, Load | Map | Reduce | Scan | Get):
        return value
    return replace(value, name=name)


def children(v: Value) -> tuple[Value, ...]:
    """The operands."""
    match v:
        case Load(index=index, where=where):
            return index if where is None else (*index, where)
        case Map(args=args) | Reduce(args=args):
            return args
        case Scan(args=args, at=at):
            return (*args, at)
        case Get(of=of):
            return (of,)
    return ()


def walk(*roots: Value, into: Callable[[Value], bool] = lambda v: True) -> Iterator[Value]:
    """Every value once, operands first; not the operands of what `into` refuses."""
    seen: set[Value] = set()
    stack: list[tuple[Value, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        v, done = stack.pop()
        if done:
            yield v
        elif v not in seen:
            seen.add(v)
            stack.append((v, True))
            if into(v):
                stack += [(c, False) for c in reversed(children(v))]


def bound_axes(v: Value) -> tuple[Axis, ...]:
    """The axes that the value itself binds."""
    match v:
        case Reduce(axes=axes):
            return axes
        case Scan(axis=axis):
            return (axis,)
    return ()


def axes_in_order(v: Value) -> tuple[Axis, ...]:
    """The axes along which the value varies."""
    kept: tuple[Axis, ...] | None = v.__dict__.get("_axes")
    if kept is None:
        kept = tuple(dict.fromkeys(_axes(v)))
        object.__setattr__(v, "_axes", kept)
    return kept


def _axes(v: Value) -> list[Axis]:
    match v:
        case Index(axis=axis):
            return [axis]
        case Var(axes=axes):
            return sorted(axes, key=lambda a: a.name)
        case Get(of=Reduce() as r, part=i):
            return [a for arg in r.monoid.spans[i] for a in axes_in_order(r.args[arg]) if a not in r.axes]
        case Scan(args=args, axis=axis, at=at):
            return [a for x in args for a in axes_in_order(x) if a != axis] + list(axes_in_order(at))
    bound = bound_axes(v)
    return [a for c in children(v) for a in axes_in_order(c) if a not in bound]


def axes_of(v: Value) -> frozenset[Axis]:
    """The axes along which the value varies."""
    return frozenset(axes_in_order(v))


def kind_of(v: Value) -> Kind:
    """`float`, `int` or `bool`; how wide, buffers and accumulators decide."""
    kept: Kind | None = v.__dict__.get("_kind")
    if kept is None:
        kept = _kind(v)
        object.__setattr__(v, "_kind", kept)
    return kept


def _kind(v: Value) -> Kind:
    match v:
        case Const(kind=kind) | Argument(kind=kind) | Var(kind=kind):
            return kind
        case Index() | Extent():
            return "int"
        case Load(buffer=b):
            return b.kind
        case Map(fn=fn, args=args):
            if result := FUNCTIONS[fn].result:
                return result
            found = {kind_of(a) for a in (args[1:] if fn == "where" else args)}
            kinds: tuple[Kind, ...] = ("float", "int", "bool")
            return next(k for k in kinds if k in found)
        case Get(of=r, part=i):
            return kind_of(r.args[r.monoid.spans[i][-1]])
        case Reduce(args=args) | Scan(args=args):
            return kind_of(args[0])
    raise AssertionError(v)
