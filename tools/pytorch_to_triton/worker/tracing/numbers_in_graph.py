"""Tensors of a traced graph that hold one number everywhere: what the number is, as text over the dims.

`torch.full((), n)`, `torch.tensor(0.5)` and what is computed from them are numbers to a kernel, not tensors.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from .size_text import tidy

Value = float | int | bool
FLOATS = (torch.float32, torch.float64)

FILLED = {"aten.full.default": 1, "aten.full_like.default": 1, "aten.scalar_tensor.default": 0}
"""Operators that fill a tensor, and where the number stands."""
MOVED = frozenset({
    "aten._to_copy.default", "aten.alias.default", "aten.clone.default", "aten.detach.default",
    "aten.expand.default", "aten.lift_fresh_copy.default", "aten.permute.default", "aten.reshape.default",
    "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default",
    "aten.view.default", "aten._unsafe_view.default",
})  # fmt: skip
"""Operators that keep the number; a cast may round it."""
COMPUTED = {
    "aten.add.Tensor": "{} + {}", "aten.sub.Tensor": "{} - {}", "aten.mul.Tensor": "{} * {}",
    "aten.div.Tensor": "{} / {}", "aten.neg.default": "-{}", "aten.abs.default": "abs({})",
    "aten.reciprocal.default": "1.0 / {}", "aten.sqrt.default": "math.sqrt({})",
    "aten.rsqrt.default": "1.0 / math.sqrt({})", "aten.exp.default": "math.exp({})",
    "aten.expm1.default": "math.expm1({})", "aten.log.default": "math.log({})",
    "aten.log1p.default": "math.log1p({})", "aten.log2.default": "math.log2({})",
    "aten.sin.default": "math.sin({})", "aten.cos.default": "math.cos({})",
    "aten.tanh.default": "math.tanh({})", "aten.pow.Tensor_Scalar": "{} ** {}",
    "aten.pow.Tensor_Tensor": "{} ** {}", "aten.maximum.default": "max({}, {})",
    "aten.minimum.default": "min({}, {})",
}  # fmt: skip
"""Operators on numbers as Python computes them."""


@dataclass(frozen=True)
class Number:
    """A number as text, and its value in this trace; a `literal` has the same value in every trace."""

    text: str
    value: Value
    literal: bool

    @classmethod
    def of(cls, value: Value) -> "Number":
        return cls(repr(value), value, True)


class Numbers:
    """Which nodes of one program hold one number."""

    def __init__(self, lifted: Mapping[str, Value], size: Callable[[Any], Number]) -> None:
        self.known: dict[str, Number | None] = {name: Number.of(value) for name, value in lifted.items()}
        self.size = size

    def of(self, value: Any) -> Number | None:
        """The number behind an argument; None for a tensor of many values, or anything else."""
        if isinstance(value, bool | int | float):
            return Number.of(value)
        if not isinstance(value, Node):
            return None
        if value.name not in self.known:
            self.known[value.name] = None if is_joined(value) else self.everywhere(value)
        return self.known[value.name]

    def everywhere(self, node: Node) -> Number | None:
        """The number that a node is, or that all elements of its tensor are."""
        held = node.meta.get("val")
        if isinstance(held, int | float | torch.SymInt | torch.SymFloat):
            return self.size(held)
        if node.op != "call_function" or not isinstance(held, torch.Tensor):
            return None
        name = str(node.target)
        if name in FILLED:
            return rounded(self.of(node.args[FILLED[name]]), held.dtype)
        if name in MOVED:
            return rounded(self.of(node.args[0]), held.dtype)
        operands = [self.of(a) for a in node.args]
        if name in COMPUTED and not node.kwargs and all(operands):
            return rounded(computed(COMPUTED[name], [o for o in operands if o]), held.dtype)
        return None


def is_joined(node: Node) -> bool:
    """Whether a tensor's shape matters: as a result, or to a call that takes it and is not pointwise."""
    if not _is_tensor(node):
        return False
    return any(user.op == "output" or (_is_tensor(user) and _needs_shape(user)) for user in node.users)


def _needs_shape(user: Node) -> bool:
    if str(user.target) in MOVED:
        return is_joined(user)
    return torch.Tag.pointwise not in getattr(user.target, "tags", ())


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor | tuple | list)


def computed(template: str, operands: list[Number]) -> Number | None:
    """The template's result; None where it is no finite number here."""
    text = tidy(template.format(*(f"({o.text})" for o in operands)))
    try:
        value = eval(template.format(*(f"({o.value!r})" for o in operands)), {"math": math})
    except (ArithmeticError, ValueError, NameError):
        return None
    if not isinstance(value, float | int):
        return None
    return Number.of(value) if all(o.literal for o in operands) else Number(text, value, False)


def rounded(number: Number | None, dtype: torch.dtype) -> Number | None:
    """The number as a tensor of that dtype holds it; None where that would round what a size gives."""
    if number is None or dtype in FLOATS:
        return number
    if number.literal:
        return Number.of(torch.tensor(number.value, dtype=dtype).item())
    return number if isinstance(number.value, int) and dtype in (torch.int32, torch.int64) else None
