"""What is constant in a traced graph: tensors that hold one number everywhere, and tables that the code made.

`torch.full((), n)`, `torch.tensor(0.5)` and what is computed from them are numbers to a kernel, not tensors:
the number is text over the dims. A table of weights becomes operators that make it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from ..loading.written_out import even_steps, has_few_numbers
from .size_guards import tidy

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
    """Whether a tensor's shape matters: as a result, or to a call that takes it."""
    if not _is_tensor(node):
        return False
    return any(user.op == "output" or (_is_tensor(user) and _needs_shape(user, node)) for user in node.users)


def _needs_shape(user: Node, operand: Node) -> bool:
    if str(user.target) in MOVED:
        return is_joined(user)
    if torch.Tag.pointwise not in getattr(user.target, "tags", ()):
        return True
    if not isinstance(user.meta["val"], torch.Tensor):  # torch.frexp gives two.
        return True
    return not _is_shaped_by(user, [n for n in user.all_input_nodes if n is not operand]) and is_joined(user)


def _is_shaped_by(user: Node, operands: list[Node]) -> bool:
    """Whether a pointwise result has the shape to which these operands alone are broadcast."""
    shapes = [tuple(n.meta["val"].shape) for n in operands if isinstance(n.meta.get("val"), torch.Tensor)]
    shape = tuple(user.meta["val"].shape)
    lengths = [{str(s[-i]) for s in shapes if len(s) >= i} for i in range(1, len(shape) + 1)]
    return all(str(n) in known for n, known in zip(reversed(shape), lengths, strict=True))


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


def made(name: str, tensor: torch.Tensor) -> list[dict[str, Any]]:
    """The nodes that make the tensor, the last one under its name; none where it is too large."""
    flat = tensor.flatten()
    shaped = [_node(name, "aten.view.default", [_node_named(f"{name}_flat"), _list(tensor.shape)], tensor)]
    inner = f"{name}_flat" if tensor.dim() > 1 else name
    rest = shaped if tensor.dim() > 1 else []
    if (steps := even_steps(flat)) is not None:
        made_in = {"dtype": _literal(str(flat.dtype).removeprefix("torch."))}
        arange = _node(inner, "aten.arange.start_step", [_literal(n) for n in steps], flat)
        return [{**arange, "kwargs": made_in}, *rest]
    if not has_few_numbers(flat):
        return []
    each = [
        _node(f"{name}_{i}", "aten.full.default", [_list([1]), _literal(n.item())], flat[i : i + 1])
        for i, n in enumerate(flat)
    ]
    parts = {"form": "list", "items": [_node_named(node["name"]) for node in each]}
    return [*each, _node(inner, "aten.cat.default", [parts], flat), *rest]


def known_constants(program: ExportedProgram, state: set[str], wanted: set[Node]) -> list[dict[str, Any]]:
    """The nodes that make all constant tensors that a result depends on, as far as their values are known.

    Those are the tensors that are neither arguments nor `state`.
    """
    needed = {node.name for node in wanted}
    signature = program.graph_signature
    keys = {**signature.inputs_to_lifted_tensor_constants, **signature.inputs_to_buffers}
    values = {n: program.constants.get(key) for n, key in keys.items() if n in needed and key not in state}
    return [n for name, v in values.items() if type(v) is torch.Tensor and v.dim() for n in made(name, v)]


def _node(name: str, op: str, arguments: list[dict[str, Any]], tensor: torch.Tensor) -> dict[str, Any]:
    shape = list(tensor.shape)
    return {
        "name": name,
        "op": op,
        "args": arguments,
        "kwargs": {},
        "shape": {"expressions": [str(n) for n in shape], "traced": shape},
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "line": None,
    }


def _literal(value: float | str) -> dict[str, Any]:
    return {"form": "literal", "value": value}


def _list(values: Any) -> dict[str, Any]:
    return {"form": "list", "items": [_literal(n) for n in values]}


def _node_named(name: str) -> dict[str, Any]:
    return {"form": "node", "name": name}
