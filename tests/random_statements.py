"""Random statements, one operator each, over all families of operators.

Comparisons, casts to short floats and positions of extremes read inputs only, and what is exponentiated is
bounded first, so that two right ways to compute a program differ by rounding alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytorch_to_triton.draft.ir.sizes import FloorDiv, Size, equal, product, size, value

DIMS = {"B": 3, "K": 4, "M": 5, "N": 6}
RANGES = {"ids": (0, 3)}
PROMOTED = ("float64", "float32", "bfloat16", "float16", "int64", "bool")
FLOATS = frozenset(PROMOTED[:4])


@dataclass(frozen=True)
class Variable:
    """An input or a result: its dims as sizes, and its dtype as PyTorch names it."""

    name: str
    shape: tuple[Size, ...]
    dtype: str = "float32"

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@dataclass(frozen=True)
class Statement:
    """`result = torch.ops.aten.op(*arguments)`."""

    result: Variable
    op: str
    arguments: tuple[Any, ...]


INPUTS: Mapping[str, Sequence[Variable]] = {
    kind: [Variable(name, tuple(map(size, shape.split())), dtype) for name, shape, dtype in rows]
    for kind, rows in {
        "matrix": [
            ("x", "M N", "float32"), ("y", "M N", "float32"), ("w", "K N", "float32"), ("b", "N", "float32"),
            ("h", "M N", "float16"), ("ids", "K", "int64"), ("mask", "M 1", "bool"),
        ],
        "batch": [
            ("x", "B M N", "float32"), ("y", "B K N", "float32"), ("w", "K N", "float32"),
            ("b", "M 1", "float32"), ("h", "N", "bfloat16"), ("ids", "M", "int64"), ("mask", "B M N", "bool"),
        ],
        "groups": [
            ("x", "B 12 N", "float32"), ("y", "B 12 N", "float32"), ("w", "K N", "float32"),
            ("b", "12 1", "float32"), ("h", "12 N", "float16"), ("mask", "B 12 1", "bool"),
        ],
        "signal": [
            ("x", "B 4 N", "float32"), ("w", "6 2 3", "float32"), ("b", "6", "float32"),
            ("h", "4 1", "float16"), ("ids", "N", "int64"),
        ],
        "image": [
            ("x", "B 3 M N", "float32"), ("w", "4 3 3 3", "float32"), ("b", "4", "float32"),
            ("y", "M N", "float32"), ("mask", "3 M N", "bool"),
        ],
    }.items()
}  # fmt: skip

Made = tuple[str, tuple[Any, ...], Sequence[Size], str]
"""An operator, its arguments, and the shape and dtype of its result."""


@dataclass
class Composer:
    """Writes one program, statement by statement. A maker gives None where a value does not fit it."""

    inputs: Sequence[Variable]
    choose: random.Random
    statements: list[Statement] = field(default_factory=list)

    @property
    def values(self) -> list[Variable]:
        return [*self.inputs, *(s.result for s in self.statements)]

    def compose(self, length: int) -> None:
        while len(self.statements) < length:
            recent = [s.result for s in self.statements[-2:]]
            a = self.choose.choice([self.inputs[0], *self.values, *recent * len(self.inputs)])
            makers = (
                (Composer.binary, Composer.scaled) if not a.shape else FLOAT_MAKERS if a.is_float else MAKERS
            )
            if made := self.choose.choice(makers)(self, a):
                self.add(*made)

    def add(self, op: str, arguments: tuple[Any, ...], shape: Sequence[Size], dtype: str) -> Variable:
        result = Variable(f"t{len(self.statements)}", tuple(shape), dtype)
        self.statements.append(Statement(result, f"aten.{op}", arguments))
        return result

    def dim(self, a: Variable) -> int:
        return self.choose.randrange(len(a.shape))

    def bounded(self, a: Variable) -> Variable:
        return self.add("tanh.default", (a,), a.shape, a.dtype)

    def nowhere_zero(self, a: Variable) -> Variable:
        """Bounded, and in some programs not 0 where the value is: a factor whose tail has to be masked."""
        small = self.bounded(a)
        if self.choose.random() < 0.5:
            return small
        return self.add("add.Tensor", (small, self.choose.choice((1.5, -2.0))), a.shape, a.dtype)

    # Element by element ------------------------------------------------------------------------------

    def unary(self, a: Variable) -> Made:
        op, *more = self.choose.choice(
            [("tanh",), ("sigmoid",), ("relu",), ("abs",), ("neg",), ("gelu",), ("silu",), ("square",),
             ("leaky_relu", 0.2), ("clamp", -1.5, 2.0), ("softplus",), ("clamp", -0.5)]
        )  # fmt: skip
        return f"{op}.default", (a, *more), a.shape, a.dtype

    def exponential(self, a: Variable) -> Made:
        return "exp.default", (self.bounded(a),), a.shape, a.dtype

    def scaled(self, a: Variable) -> Made:
        ops = (
            ("mul.Tensor", "add.Tensor") if a.dtype == "bool" else ("mul.Tensor", "add.Tensor", "sub.Tensor")
        )
        op = self.choose.choice(ops)
        return op, (a, self.choose.choice((0.5, -1.25, 2.0))), a.shape, a.dtype if a.is_float else "float32"

    def binary(self, a: Variable) -> Made | None:
        fitting = [(v, s) for v in self.values if (s := broadcast(a.shape, v.shape)) is not None]
        b, shape = self.choose.choice(fitting)
        dtype = promoted(a.dtype, b.dtype)
        if dtype == "bool":
            return "bitwise_and.Tensor", (a, b), shape, dtype
        ops = ["add.Tensor", "mul.Tensor", "maximum.default", "minimum.default"]
        if "bool" not in (a.dtype, b.dtype):
            ops.append("sub.Tensor")
        return self.choose.choice(ops), (a, b), shape, dtype

    def quotient(self, a: Variable) -> Made:
        below = self.add("square.default", (a,), a.shape, a.dtype)
        below = self.add("add.Tensor", (below, 1.0), a.shape, a.dtype)
        return "div.Tensor", (a, below), a.shape, a.dtype

    def chosen(self, a: Variable) -> Made | None:
        masks = [v for v in self.inputs if v.dtype == "bool"]
        masks += [s.result for s in self.statements if s.op.startswith(("aten.gt", "aten.lt"))]
        fitting = [(v, s) for v in masks if (s := broadcast(a.shape, v.shape)) is not None]
        if not fitting:
            return None
        mask, shape = self.choose.choice(fitting)
        other = self.choose.choice([v for v in self.values if broadcast(shape, v.shape) == shape] or [a])
        if broadcast(shape, other.shape) is None:
            return None
        return "where.self", (mask, a, other), shape, promoted(a.dtype, other.dtype)

    def compared(self, a: Variable) -> Made | None:
        if a not in self.inputs:
            return None
        return self.choose.choice(("gt.Scalar", "lt.Scalar")), (a, 0), a.shape, "bool"

    def cast(self, a: Variable) -> Made | None:
        if a not in self.inputs:
            return None
        dtype = self.choose.choice(("float32", "float16") if a.is_float else ("float32", "int64"))
        return None if dtype == a.dtype else ("to.dtype", (a, Dtype(dtype)), a.shape, dtype)

    # Views and joins ---------------------------------------------------------------------------------

    def turned(self, a: Variable) -> Made:
        order = self.choose.sample(range(len(a.shape)), len(a.shape))
        return "permute.default", (a, order), [a.shape[d] for d in order], a.dtype

    def widened(self, a: Variable) -> Made | None:
        if len(a.shape) > 3:
            return None
        at = self.choose.randint(0, len(a.shape))
        return "unsqueeze.default", (a, at), (*a.shape[:at], size(1), *a.shape[at:]), a.dtype

    def cut(self, a: Variable) -> Made | None:
        d = self.dim(a)
        if equal(a.shape[d], size(1)):
            return None
        if self.choose.random() < 0.4:
            return "select.int", (a, d, self.choose.choice((0, 1, -1))), without(a.shape, d), a.dtype
        start, step = self.choose.choice((0, 1)), self.choose.choice((1, 1, 2))
        left = FloorDiv(a.shape[d] - start + step - 1, size(step))
        if traced(left) < 2:
            return None
        return "slice.Tensor", (a, d, start, 2**63 - 1, step), put(a.shape, d, left), a.dtype

    def merged(self, a: Variable) -> Made | None:
        if len(a.shape) < 2:
            return None
        d = self.choose.randrange(len(a.shape) - 1)
        shape = (*a.shape[:d], a.shape[d] * a.shape[d + 1], *a.shape[d + 2 :])
        return "reshape.default", (a, list(shape)), shape, a.dtype

    def split(self, a: Variable) -> Made | None:
        """A dimension as groups, as more than one program does that has a literal one."""
        even = [d for d, n in enumerate(a.shape) if n.is_Integer and int(n) > 3]
        if not even or len(a.shape) > 4:
            return None
        d = self.choose.choice(even)
        n = int(a.shape[d])
        outer = self.choose.choice([f for f in range(2, n) if n % f == 0] or [1])
        shape = (*a.shape[:d], size(outer), size(n // outer), *a.shape[d + 1 :])
        return "reshape.default", (a, list(shape)), shape, a.dtype

    def regrouped(self, a: Variable) -> Made | None:
        """The shape of another value of as many elements, in which the two can meet again."""
        count = product(a.shape)
        shapes = [v.shape for v in self.values if equal(product(v.shape), count) and v.shape != a.shape]
        if not shapes:
            return None
        shape = self.choose.choice(shapes)
        return "reshape.default", (a, list(shape)), shape, a.dtype

    def moved(self, a: Variable) -> Made:
        d = self.dim(a)
        if self.choose.random() < 0.5:
            return "flip.default", (a, [d]), a.shape, a.dtype
        return "roll.default", (a, [self.choose.choice((1, -2))], [d]), a.shape, a.dtype

    def padded(self, a: Variable) -> Made:
        before, after = self.choose.choice(((1, 0), (0, 2), (1, 1), (-1, 1)))
        if traced(a.shape[-1]) < 2:
            before = 1
        filler = self.choose.choice((0.0, 1.5)) if a.is_float else 0
        shape = put(a.shape, len(a.shape) - 1, a.shape[-1] + before + after)
        return "constant_pad_nd.default", (a, [before, after], filler), shape, a.dtype

    def triangle(self, a: Variable) -> Made | None:
        if len(a.shape) < 2:
            return None
        diagonal = self.choose.choice((-1, 0, 1))
        return self.choose.choice(("triu.default", "tril.default")), (a, diagonal), a.shape, a.dtype

    def joined(self, a: Variable) -> Made | None:
        d = self.dim(a)
        fitting = [v for v in self.values if same(v.shape, a.shape) and v.dtype == a.dtype]
        parts = [a, *self.choose.choices(fitting, k=self.choose.choice((1, 2)))]
        return "cat.default", (parts, d), put(a.shape, d, a.shape[d] * len(parts)), a.dtype

    def gathered(self, a: Variable) -> Made | None:
        d = self.dim(a)
        indices = [v for v in self.inputs if v.name == "ids"]
        if not indices or traced(a.shape[d]) < RANGES["ids"][1]:
            return None
        if len(a.shape) == 2 and self.choose.random() < 0.5:
            return "embedding.default", (a, indices[0]), (*indices[0].shape, a.shape[1]), a.dtype
        return "index_select.default", (a, d, indices[0]), put(a.shape, d, indices[0].shape[0]), a.dtype

    # Reductions and scans ----------------------------------------------------------------------------

    def reduced(self, a: Variable) -> Made:
        dims = sorted(self.choose.sample(range(len(a.shape)), self.choose.randint(1, len(a.shape))))
        keep = self.choose.random() < 0.5
        op = self.choose.choice(
            ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default", "logsumexp.default")
        )
        x = self.bounded(a) if op.startswith("logsumexp") else a
        return op, (x, dims, keep), kept(a.shape, dims, keep), a.dtype

    def variance(self, a: Variable) -> Made:
        d = self.dim(a)
        return "var.dim", (a, [d], False, True), kept(a.shape, [d], True), a.dtype

    def multiplied(self, a: Variable) -> Made:
        d = self.dim(a)
        return "prod.dim_int", (self.bounded(a), d), without(a.shape, d), a.dtype

    def position(self, a: Variable) -> Made | None:
        if a not in self.inputs or a.dtype != "float32":
            return None
        d = self.dim(a)
        return "argmax.default", (a, d), without(a.shape, d), "int64"

    def counted(self, a: Variable) -> Made | None:
        if a.dtype not in ("bool", "int64"):
            return None
        d = self.dim(a)
        if self.choose.random() < 0.5:
            return "any.dim", (a, d, True), kept(a.shape, [d], True), "bool"
        return "sum.dim_IntList", (a, [d]), without(a.shape, d), "int64"

    def normalised(self, a: Variable) -> Made:
        op = self.choose.choice(("softmax.int", "log_softmax.int"))
        return op, (self.bounded(a), self.dim(a)), a.shape, a.dtype

    def normed(self, a: Variable) -> Made:
        rank = self.choose.randint(1, min(2, len(a.shape)))
        return "layer_norm.default", (a, list(a.shape[-rank:]), None, None, 0.25), a.shape, a.dtype

    def scanned(self, a: Variable) -> Made:
        op = self.choose.choice(
            ("cumsum.default", "cumsum.default", "cumprod.default", "logcumsumexp.default")
        )
        return op, (self.bounded(a), self.dim(a)), a.shape, a.dtype

    # Products and windows ----------------------------------------------------------------------------

    def contracted(self, a: Variable) -> Made | None:
        if len(a.shape) == 3 and self.choose.random() < 0.4:
            a = self.bounded(a)
            turned = self.add(
                "permute.default", (a, [0, 2, 1]), [a.shape[0], a.shape[2], a.shape[1]], a.dtype
            )
            return "bmm.default", (a, turned), (a.shape[0], a.shape[1], a.shape[1]), a.dtype
        weights = [
            v
            for v in self.values
            if len(v.shape) == 2 and v.dtype == a.dtype and equal(v.shape[1], a.shape[-1])
        ]
        if not weights:
            return None
        weight = self.choose.choice(weights)
        if self.choose.random() < 0.5:
            weight = self.nowhere_zero(weight)
        return "linear.default", (self.nowhere_zero(a), weight), (*a.shape[:-1], weight.shape[0]), a.dtype

    def convolved(self, a: Variable) -> Made | None:
        rank = len(a.shape) - 2
        weights = [v for v in self.inputs if v.name == "w" and len(v.shape) == rank + 2]
        if rank < 1 or not weights or a.dtype != "float32":
            return None
        (w,) = weights
        groups = FloorDiv(a.shape[1], w.shape[1])
        if not (groups.is_Integer and equal(groups * w.shape[1], a.shape[1])) or int(w.shape[0]) % int(
            groups
        ):
            return None
        stride, padding, dilation = (
            self.choose.choice((1, 2)),
            self.choose.choice((1, 2)),
            self.choose.choice((1, 2)),
        )
        spatial = [windows(n, 3, stride, padding, dilation) for n in a.shape[2:]]
        if any(traced(n) < 2 for n in spatial):
            return None
        bias = next((v for v in self.inputs if v.name == "b" and same(v.shape, w.shape[:1])), None)
        numbers = tuple([n] * rank for n in (stride, padding, dilation))
        arguments = (self.bounded(a), w, bias, *numbers, False, [0] * rank, int(groups))
        return "convolution.default", arguments, (a.shape[0], w.shape[0], *spatial), a.dtype

    def pooled(self, a: Variable) -> Made | None:
        rank = len(a.shape) - 2
        if rank < 1 or a.dtype != "float32":
            return None
        stride, padding = self.choose.choice((1, 2)), self.choose.choice((0, 1))
        spatial = [windows(n, 2, stride, padding, 1) for n in a.shape[2:]]
        if any(traced(n) < 2 for n in (*spatial, *a.shape[2:])):
            return None
        how = self.choose.choice(("max", "avg"))
        numbers = tuple([n] * rank for n in (2, stride, padding))
        return f"{how}_pool{rank}d.default", (a, *numbers), (*a.shape[:2], *spatial), a.dtype


Maker = Callable[[Composer, Variable], Made | None]
MAKERS: Sequence[Maker] = (
    Composer.binary, Composer.binary, Composer.scaled, Composer.turned, Composer.widened, Composer.cut,
    Composer.merged, Composer.split, Composer.regrouped, Composer.moved, Composer.padded, Composer.joined,
    Composer.counted, Composer.cast,
)  # fmt: skip
FLOAT_MAKERS: Sequence[Maker] = (
    *MAKERS, Composer.unary, Composer.unary, Composer.exponential, Composer.quotient, Composer.chosen,
    Composer.compared, Composer.triangle, Composer.gathered, Composer.reduced, Composer.reduced,
    Composer.variance, Composer.multiplied, Composer.position, Composer.normalised, Composer.normed,
    Composer.scanned,
    Composer.contracted, Composer.contracted, Composer.convolved, Composer.convolved, Composer.pooled,
    Composer.pooled, Composer.scanned, Composer.normalised, Composer.reduced, Composer.gathered,
)  # fmt: skip


@dataclass(frozen=True)
class Dtype:
    """A dtype as an argument."""

    name: str


def traced(n: Size) -> int:
    return value(n, DIMS)


def same(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return len(a) == len(b) and all(map(equal, a, b))


def without(shape: Sequence[Size], d: int) -> tuple[Size, ...]:
    return (*shape[:d], *shape[d + 1 :])


def put(shape: Sequence[Size], d: int, n: Size) -> tuple[Size, ...]:
    return (*shape[:d], n, *shape[d + 1 :])


def kept(shape: Sequence[Size], dims: Sequence[int], keep: bool) -> tuple[Size, ...]:
    return tuple(size(1) if d in dims else n for d, n in enumerate(shape) if keep or d not in dims)


def windows(n: Size, width: int, stride: int, padding: int, dilation: int) -> Size:
    return FloorDiv(n + 2 * padding - dilation * (width - 1) - 1, size(stride)) + 1


def promoted(*dtypes: str) -> str:
    if set(dtypes) >= {"float16", "bfloat16"}:
        return "float32"
    return min(dtypes, key=PROMOTED.index)


def broadcast(a: Sequence[Size], b: Sequence[Size]) -> tuple[Size, ...] | None:
    """By PyTorch's rule; None where they do not fit."""
    rank, one = max(len(a), len(b)), size(1)
    a, b = ((*[one] * (rank - len(s)), *s) for s in (a, b))
    if not all(equal(m, n) or one in (m, n) for m, n in zip(a, b, strict=True)):
        return None
    return tuple(n if m == one else m for m, n in zip(a, b, strict=True))
