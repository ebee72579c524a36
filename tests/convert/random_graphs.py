"""Random PyTorch functions for the drafter, each written out as the source of a target file."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TWO_DIMS = ("M", "N")
THREE_DIMS = ("B", "S", "H")
SIZES = {"M": [5], "N": [19], "B": [3], "S": [5], "H": [7]}

UNARY = (
    "torch.tanh({a})",
    "torch.sigmoid({a})",
    "torch.relu({a})",
    "F.gelu({a})",
    "F.silu({a})",
    "F.softplus({a})",
    "F.leaky_relu({a}, 0.2)",
    "{a}.abs()",
    "-{a}",
    "{a} * 0.5 + 1.25",
    "1.0 - {a}",
    "{a}.clamp(-1.5, 2.0)",
    "{a}.clamp(min=-0.5)",
    "{a}.square()",
    "torch.exp(torch.tanh({a}))",
    "torch.log1p({a}.abs())",
    "torch.rsqrt({a} * {a} + 0.5)",
    "torch.sqrt({a}.abs() + 0.1)",
)
BINARY = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / ({b}.abs() + 1.0)",
    "torch.maximum({a}, {b})",
    "torch.minimum({a}, {b})",
    "torch.where(x > 0.0, {a}, {b})",
)
REDUCTIONS = ("sum", "mean", "amax", "amin", "logsumexp")
NORMALISATIONS = (
    "torch.softmax({a}, dim={dim})",
    "F.log_softmax({a}, dim={dim})",
    "{a} * torch.rsqrt({a}.pow(2).mean({dim}, keepdim=True) + 1e-2)",
    "{a} - {a}.mean(dim={dim}, keepdim=True)",
)


@dataclass(frozen=True)
class Value:
    """A variable of the function and its shape, as names of dims; a kept reduced dim is `1`."""

    name: str
    shape: tuple[str, ...]


@dataclass
class Composer:
    """Writes one function, statement by statement.

    Discontinuous operators read inputs only, and what is exponentiated is bounded first, so that a right
    kernel differs from PyTorch by rounding alone.
    """

    dims: tuple[str, ...]
    choose: random.Random
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inputs = (Value("x", self.dims), Value("w", self.dims[-1:]), Value("v", self.dims[-2:-1]))

    def statement(self) -> None:
        """One more assignment."""
        a = self.choose.choice([self.inputs[0], *self.values, *self.values[-2:]])
        makers = [self._unary, self._binary, self._binary]
        if len(a.shape) > 1 and "1" not in a.shape:
            makers += [self._reduced, self._normalised, self._layer_norm]
        text, shape = self.choose.choice(makers)(a)
        name = f"t{len(self.values)}"
        self.lines.append(f"{name} = {text}")
        self.values.append(Value(name, shape))

    def _unary(self, a: Value) -> tuple[str, tuple[str, ...]]:
        return self.choose.choice(UNARY).format(a=a.name), a.shape

    def _binary(self, a: Value) -> tuple[str, tuple[str, ...]]:
        """`a` with any value, both first brought to all dims where their shapes do not fit as they are."""
        b = self.choose.choice([*self.inputs, *self.values])
        template = self.choose.choice(BINARY)
        if a.shape == b.shape and "x >" not in template:
            return template.format(a=a.name, b=b.name), a.shape
        text = template.format(a=self._spread(a), b=self._spread(b))
        both = zip(self._spread_shape(a), self._spread_shape(b), self.dims, strict=True)
        full = "x >" in template
        return text, tuple(d if full or d in (p, q) else "1" for p, q, d in both)

    def _spread(self, value: Value) -> str:
        """The value indexed so that each of its dims stands in its place."""
        if len(value.shape) == len(self.dims) or value.shape == self.dims[-len(value.shape) :]:
            return value.name
        marks = [":" if d in value.shape else "None" for d in self.dims]
        return f"{value.name}[{', '.join(marks)}]"

    def _spread_shape(self, value: Value) -> tuple[str, ...]:
        return tuple(d if d in value.shape else "1" for d in self.dims)

    def _reduced(self, a: Value) -> tuple[str, tuple[str, ...]]:
        dim = self.choose.randrange(len(a.shape))
        keep = self.choose.random() < 0.5
        how = self.choose.choice(REDUCTIONS)
        shape = tuple("1" if i == dim else d for i, d in enumerate(a.shape) if keep or i != dim)
        return f"{a.name}.{how}(dim={dim}, keepdim={keep})", shape

    def _normalised(self, a: Value) -> tuple[str, tuple[str, ...]]:
        dim = self.choose.randrange(len(a.shape))
        return self.choose.choice(NORMALISATIONS).format(a=a.name, dim=dim - len(a.shape)), a.shape

    def _layer_norm(self, a: Value) -> tuple[str, tuple[str, ...]]:
        if a.shape[-1] != self.dims[-1]:
            return self._normalised(a)
        weights = self.choose.choice(("", ", w", ", w, w"))
        return f"F.layer_norm({a.name}, {a.name}.shape[-1:]{weights}, eps=1e-2)", a.shape


def random_target(seed: int) -> str:
    """A file with a function `f` of 3 to 8 statements and its declaration; always the same for a seed."""
    choose = random.Random(seed)
    composer = Composer(choose.choice((TWO_DIMS, TWO_DIMS, THREE_DIMS)), choose)
    for _ in range(choose.randint(3, 8)):
        composer.statement()
    returned = ", ".join(_returned(composer))
    body = "\n".join(f"    {line}" for line in (*composer.lines, f"return {returned}"))
    used = [i for i in composer.inputs if any(i.name in _words(line) for line in composer.lines)]
    dims = list(dict.fromkeys(d for value in used for d in value.shape))
    inputs = {value.name: f"float32[{', '.join(value.shape)}]" for value in used}
    return (
        f"import torch\nimport torch.nn.functional as F\n\nINPUTS = {inputs!r}\n"
        f"DIMS = { ({d: SIZES[d] for d in dims})!r}\n\n\ndef f({', '.join(inputs)}):\n{body}\n"
    )


def _returned(composer: Composer) -> Iterator[str]:
    """The last value and, half of the time, the last of those that nothing reads."""
    text = "\n".join(composer.lines)
    *others, last = composer.values
    yield last.name
    unread = [v.name for v in others if _words(text).count(v.name) == 1]
    if unread and composer.choose.random() < 0.5:
        yield unread[-1]


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
