"""One printer for all kernels: the state that its parts share, and how a value becomes text.

A value gets a name in the outermost block where all that it needs is known; tidy.py writes single uses into
place afterwards. A tile's dimensions are the blocked axes of a value, in the schedule's order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytorch_to_triton.draft.emit.names import Name, Scope, constant
from pytorch_to_triton.draft.emit.pairs import PAIR, pairs_of, with_pairs
from pytorch_to_triton.draft.emit.tidy import TEMPORARY
from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.functions import FUNCTIONS, Helper
from pytorch_to_triton.draft.ir.rewriting import check, rewritten
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Buffer,
    Cluster,
    Const,
    Extent,
    Index,
    Load,
    Map,
    Number,
    Reduce,
    Scan,
    Store,
    Value,
    axes_in_order,
    axes_of,
    bound_axes,
    children,
    kind_of,
    walk,
)
from pytorch_to_triton.draft.schedule.blocks import without_single_blocks
from pytorch_to_triton.draft.schedule.schedule import Schedule, Walk

ON_INDICES = frozenset({"add", "sub", "mul", "floordiv", "mod", "to_int64", "to_index", "as_index"})
"""Arithmetic on indices that is written where it is used."""
HINTS: Mapping[str, str] = {
    "add": "total", "sub": "difference", "mul": "product",
    "div": "ratio", "div_rn": "ratio", "div_literal": "ratio", "and": "mask", "lt": "inside",
    "where": "chosen", "to_float": "number", "larger": "largest", "abs": "magnitude", "pow": "power",
    "or": "either", "not": "absent", "mod": "rest", "floordiv": "part", "max": "largest",
    "sum": "total", "prod": "product", "min": "smallest", "peak": "largest", "round": "rounded",
    **dict.fromkeys(("eq", "ne", "ge", "gt", "le"), "condition"),
}  # fmt: skip
"""Names for values that have none, by function or monoid; else its own name."""


Writer = Callable[["Printer", Any, tuple[str, ...]], Name]
"""Writes the lines that define a value in a layout, and names it."""


class Printer:
    """The kernel that is being written."""

    def __init__(
        self,
        cluster: Cluster,
        schedule: Schedule,
        writers: Mapping[type[Value], Writer],
        dtypes: Mapping[str, str],
    ) -> None:
        check(cluster)
        self.writers, self.dtypes = writers, dtypes
        self.cluster = with_names_of_stores(with_arguments_apart(schedule.walked(cluster)))
        check(self.cluster)
        everything = [a for v in self.cluster.values() for a in (*axes_in_order(v), *bound_axes(v))]
        self.axes = {a.name: a for a in everything}
        schedule = without_single_blocks(schedule, self.axes)
        self.pairs = pairs_of(self.cluster, schedule)
        self.schedule = with_pairs(schedule, self.pairs)
        self.axes |= {a.name: a for a in [self.pairs.axis] if self.pairs.along.name in self.axes}
        self.walks = self.schedule.walks
        missing = set(self.axes) - set(self.walks)
        assert not missing, f"{self.cluster.name} does not walk {', '.join(sorted(missing))}"
        self.scopes = [Scope()]
        self.env: dict[Value, Name] = {}
        self.rounded = {s.value: s.buffer.name for s in self.cluster.stores if s.rounds}
        """Values that are taken as they lie in memory, by the buffer that they are stored to."""
        self.operands = {x for v in self.cluster.values() for x in children(v)}
        self.others: dict[Load, Number | None] = {}
        """What masked lanes of a load hold; None where nothing was asked."""
        self.divided = {x for v in self.cluster.values() for x in operands_of_division(v)}
        self.hints: dict[Value, str] = {}
        self.helpers: dict[str, Helper] = {}
        """Functions of the file that the kernel calls, by name."""
        self.raw: set[Load] = set()
        """Operands of tl.dot, in the dtype that they are stored in."""
        self.half_stored: set[Store] = set()
        """Stores that wait for the other one of their pair."""
        self.filled: dict[str, int] = {}
        """Blocks without a mask, with the size that is a multiple of them."""
        self.multiplies = False
        """Whether there is a tl.dot."""
        self.loops = 0
        """Those behind each other, not those inside of others."""
        self.count = itertools.count()
        buffers = {v.buffer for v in self.cluster.loads()} | {s.buffer for s in self.cluster.stores}
        double = any(b.dtype == "float64" for b in buffers) or any(
            isinstance(v, Map) and v.fn == "to_double" for v in self.cluster.values()
        )
        self.compute = "tl.float64" if double else "tl.float32"
        self.size_names = axis_size_names(tuple(self.axes.values()), self.walks)
        dims = {n for a in self.axes.values() for n in sizes.names(a.size)}
        given = {v.name for v in self.cluster.values() if isinstance(v, Argument)}
        dims |= set(self.size_names.values())
        self.taken = {"start", "pid", "INDEX", "tl", "triton", "libdevice", *dims, *given}
        self.taken |= {f.helper.name for f in FUNCTIONS.values() if f.helper}

    def dtype_of(self, buffer: Buffer) -> str:
        """The dtype in which a tensor lies in memory in all calls; empty where calls differ.

        What the program does not know, such as partial results, is made in its own.
        """
        return self.dtypes.get(buffer.like or buffer.name, buffer.dtype)

    # Layouts -----------------------------------------------------------------------------------------

    def blocked(self, a: Axis) -> bool:
        """Whether a tile has a dimension for the axis."""
        return self.walks[a.name].block is not None

    def layout(self, axes: Iterable[Axis]) -> tuple[str, ...]:
        """The dimensions of a tile that varies along the axes."""
        names = {a.name for a in axes if self.blocked(a)}
        assert names <= set(self.schedule.order), f"{names} have no place in {self.schedule.order}"
        return tuple(n for n in self.schedule.order if n in names)

    def fitted(self, name: Name, want: tuple[str, ...]) -> str:
        """The value broadcast, or turned, to a layout."""
        have = name.layout
        if have == want or not have:
            return name.text
        if sorted(have) == sorted(want) and len(have) == 2:
            return f"tl.trans({name.text})"
        assert [n for n in want if n in have] == list(have), f"{name} in {want}"
        return f"{name.text}[{', '.join(':' if n in have else 'None' for n in want)}]"

    # Values ------------------------------------------------------------------------------------------

    def text(self, v: Value, want: tuple[str, ...]) -> str:
        """The value as an expression over a tile of that layout."""
        match v:
            case Const(value=x):
                return constant(x)
            case Extent(size=size):
                return self.size(size)
            case Argument(name=name):
                return name
            case Map(fn=fn, args=args, name=None) if fn in ON_INDICES and kind_of(v) == "int":
                if v not in self.env:
                    return self.on_indices(fn, args, want)
        return self.fitted(self.named(v, want), want)

    def on_indices(self, fn: str, args: tuple[Value, ...], want: tuple[str, ...]) -> str:
        """Arithmetic where it is used. A product of sizes may not fit 32 bits: one factor at a time."""
        match fn, args:
            case ("mul", (x, Extent(size=size))) if size not in self.size_names:
                return " * ".join([f"({self.text(x, want)})", *self.factors(size)])
            case ("floordiv", (x, Extent(size=size))) if size not in self.size_names:
                return " // ".join([f"({self.text(x, want)})", *reversed(self.factors(size))])
        return FUNCTIONS[fn].triton.format(*(f"({self.text(a, want)})" for a in args))

    def factors(self, size: Size) -> list[str]:
        """A size as the factors that a product of it multiplies by."""
        whole = sizes.in_dims(size)
        product = size if whole.as_numer_denom()[1] != 1 else whole
        return [f"({self.size(part)})" for part in (product.args if product.is_Mul else (product,))]

    def size(self, size: Size) -> str:
        """A size as source, in the names that `run` computes."""
        if size.is_Mul and len(sizes.names(sizes.in_dims(size))) > 1 and size not in self.size_names:
            # `run` computes it: a product of arguments would stay within 32 bits.
            factor = size.as_coeff_Mul()[0]
            of_dims = "_".join(sorted(sizes.names(size)))
            self.size_names[size] = self.fresh(
                f"{of_dims}_times_{factor}" if factor.is_Integer and factor > 1 else of_dims
            )
            self.taken.add(self.size_names[size])
        computed = size.has(sizes.ComputedSize) or sizes.rounds_below_zero(size)
        if computed and size not in self.size_names:
            self.size_names[size] = self.fresh("count")
            self.taken.add(self.size_names[size])
        if size in self.size_names:
            return self.size_names[size]
        named = size.xreplace({s: sizes.symbol(n) for s, n in self.size_names.items() if not s.is_Mul})
        return sizes.text(named)

    def named(self, v: Value, order: tuple[str, ...] = ()) -> Name:
        """The value's name; it is computed, as far out as it can be, where it has none yet."""
        if v in self.env:
            return self.env[v]
        layout = self.layout(axes_of(v))
        if set(order) >= set(layout):
            layout = tuple(n for n in order if n in layout)
        match v:
            case Const() | Extent() | Argument():
                return Name(self.text(v, ()), (), 0)
            case Map(fn="to_float", args=(x,)) if kind_of(x) == "float":  # Floats are computed so anyway.
                return self.named(x, order)
            case Map(fn=fn, args=args):
                return self.defined(
                    v, self.in_memory(v, self.written(fn, args, layout)), layout, self.depth(v)
                )
        assert type(v) in self.writers, f"{v} is not computed yet"
        return self.writers[type(v)](self, v, layout)

    def written(self, fn: str, args: Sequence[Value], layout: tuple[str, ...]) -> str:
        """A pointwise function; what its text mentions twice gets a name first."""
        template = FUNCTIONS[fn].triton
        if helper := FUNCTIONS[fn].helper:
            self.calling(helper)
        if template.startswith(METHOD) and is_of_sizes(args[0]):
            template = template.replace(METHOD, "tl.cast({0}, ", 1)
        for i, a in enumerate(args):
            if template.count(f"{{{i}}}") > 1 and not isinstance(a, Const | Argument | Extent):
                self.named(a, layout)
        texts = [self.text(a, layout) for a in args]
        if len(args) > 1 and template.startswith("libdevice."):
            texts = [self.library_operand(a, t) for a, t in zip(args, texts, strict=True)]
        text = template.format(*(f"({t})" for t in texts))
        return text.replace("tl.float32", self.compute) if fn != "to_half" else text

    def in_memory(self, v: Value, text: str) -> str:
        """A value's text, rounded to the dtype of the buffer that it is taken from."""
        if v not in self.rounded:
            return text
        return f"({text}).to({self.rounded[v]}_ptr.dtype.element_ty).to({self.compute})"

    def calling(self, helper: Helper) -> str:
        """The name of a function that the file has to have."""
        self.helpers[helper.name] = helper
        return helper.name

    def library_operand(self, v: Value, text: str) -> str:
        """An operand of libdevice, which takes one dtype: a number comes as float32, a size as an integer."""
        if isinstance(v, Const | Argument):
            return f"tl.full([], {text}, tl.float64)" if self.compute == "tl.float64" else text
        return f"tl.cast({text}, {self.compute})" if isinstance(v, Extent) else text

    def defined(self, v: Value, text: str, layout: tuple[str, ...], depth: int) -> Name:
        """The value under a name of its own, or a temporary one."""
        wanted = getattr(v, "name", None)
        name = self.fresh(wanted) if wanted else f"{TEMPORARY}{next(self.count)}__{self.hint(v)}"
        return self.bound(v, Name(name, layout, depth), f"{name} = {text}")

    def bound(self, v: Value, name: Name, *lines: str) -> Name:
        """Note the value's name, and write the lines that define it."""
        scope = self.scopes[name.depth]
        scope.lines += lines
        scope.known.append(v)
        self.env[v] = name
        return name

    def depth(self, v: Value) -> int:
        """The block in which all that the value needs is known."""
        if v in self.env:
            return self.env[v].depth
        if isinstance(v, Index):
            return next((i for i, s in enumerate(self.scopes) if v.axis.name in s.axes), 0)
        needs: list[Value] = [*children(v)]
        if isinstance(v, Reduce):  # What is counted in a tile is known where the tile is.
            needs += [Index(a) for a in v.axes if a not in axes_of(v.args[0])]
        if isinstance(v, Load):
            needs += [Index(self.axes[n]) for n in self.layout(axes_of(v))]
        return max((self.depth(c) for c in needs), default=0)

    def hint(self, v: Value) -> str:
        """A word for a value without a name."""
        if v in self.hints:
            return self.hints[v]
        match v:
            case Map(fn=fn):
                return HINTS.get(fn, fn)
            case Reduce(monoid=m) | Scan(monoid=m):
                return HINTS.get(m.name, m.name)
        return "value"

    def fresh(self, name: str) -> str:
        """The name, or one like it, that no live value has."""
        return fresh(name, self.taken | {n.text for n in self.env.values()})


def with_arguments_apart(cluster: Cluster) -> Cluster:
    """The cluster with a name for each number that `run` passes, of which several steps may have one name."""
    named: dict[str, Argument] = {}
    renamed: dict[Value, Value] = {}
    for v in cluster.values():
        if isinstance(v, Argument) and named.setdefault(v.name, v) != v:
            name = fresh(v.name, named)
            renamed[v] = named[name] = replace(v, name=name)
    return rewritten(cluster, renamed.get) if renamed else cluster


def with_names_of_stores(cluster: Cluster) -> Cluster:
    """The cluster with the name of what is stored for that alone, not also for the total of a mean."""
    values = {s.value for s in cluster.stores}
    stored = {v.name for v in values if isinstance(v, Map)}

    def nameless(v: Value) -> Value | None:
        match v:
            case Map(name=name) | Reduce(name=name) if name in stored and v not in values:
                return replace(v, name=None)
        return None

    return rewritten(cluster, nameless)


def operands_of_division(v: Value) -> Iterable[Load]:
    """What an exact division divides, and by what, where that is read from memory."""
    match v:
        case Map(fn="div_rn", args=args):
            plain = (a.args[0] if isinstance(a, Map) and a.fn == "to_float" else a for a in args)
            return [a for a in plain if isinstance(a, Load)]
    return ()


METHOD = "{0}.to("
"""How a tensor changes its dtype; a size of 1 comes to a compiled kernel as a number, which has no method."""


def is_of_sizes(v: Value) -> bool:
    """Whether sizes and numbers alone make the value."""
    return all(isinstance(x, Const | Extent | Argument | Map) for x in walk(v))


FUSED = {
    "i": "n_elements", "row": "n_rows", "col": "n_cols", "part": "n_parts", "head": "n_heads",
    "batch": "n_batches", "channel": "n_channels", "outer": "n_outer", "group": "n_groups",
}  # fmt: skip
"""What the sizes of axes are called that stand for several."""


def axis_size_names(axes: Sequence[Axis], walks: Mapping[str, Walk]) -> dict[Size, str]:
    """Names for sizes that are computed: `run` passes them, which keeps products out of 32 bits."""
    wanted = [(a.size, FUSED.get(a.name, a.name.upper())) for a in axes if a.name != PAIR]
    wanted += [(w.share.length, f"{n}s_per_program") for n, w in walks.items() if w.share]
    dims = {str(x) for a in axes for x in a.size.free_symbols}
    found: dict[Size, str] = {}
    for size, name in wanted:
        whole = sizes.in_dims(size)
        if not (whole.is_Integer or whole.is_Symbol) and size not in found:
            found[size] = fresh(name, {*found.values(), *dims})
    return found
