"""An operator call's arguments by the names of torch's schema: what its row uses, and what it leaves alone.

A row may leave an argument out only at the values listed here. A test holds every row against the schemas of
the installed torch, so that nothing is ignored in silence.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    NonFinite,
    ScalarRef,
    SizeRef,
)

Default = float | str | None


@dataclass(frozen=True)
class Signature:
    """What a row does with its operator's arguments; all three together in the order of torch's schema."""

    operands: Mapping[str, NodeArgument | None]
    """Take the places of the row's template, in order; each with its default, None where it has none."""
    options: Mapping[str, NodeArgument | None]
    """Looked up by name."""
    unused: Mapping[str, tuple[Default, ...]]
    """The values at which leaving it out is right, the default first; `any` stands for all."""

    @property
    def names(self) -> tuple[str, ...]:
        """All arguments in order."""
        return (*self.operands, *self.options, *self.unused)


def signature(operands: str, options: str = "", unused: str = "") -> Signature:
    """From `self, alpha=1.0`; the values of an unused argument are separated by `|`."""
    return Signature(
        _with_defaults(operands),
        _with_defaults(options),
        {name: tuple(_value(v) for v in values.split("|")) for name, values in _pairs(unused)},
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return [(name, value) for name, _, value in parts]


def _with_defaults(text: str) -> dict[str, NodeArgument | None]:
    return {name: _default(value) if value else None for name, value in _pairs(text)}


def _default(text: str) -> NodeArgument:
    return ArgumentList(items=()) if text == "[]" else Literal_(value=_value(text))


def _value(text: str) -> Default:
    """A number, None or a bool; else the text itself."""
    try:
        value: Default = ast.literal_eval(text)
    except ValueError:
        return text
    return value


ONE = signature("self")
TWO = signature("self, other")
SCALED = signature("self, other, alpha=1")
CONTIGUOUS = "memory_format=None|preserve_format|contiguous_format"
REDUCED = "dim, keepdim=False"

SIGNATURES: Mapping[str, Signature] = {
    "aten.add.Scalar": SCALED,
    "aten.add.Tensor": SCALED,
    "aten.clamp.default": signature("self, min=None, max=None"),
    "aten.clamp_max.default": signature("self, max"),
    "aten.clamp_min.default": signature("self, min"),
    "aten.elu.default": signature("self, alpha=1.0, scale=1.0, input_scale=1.0"),
    "aten.gelu.default": signature("self", "approximate=none"),
    "aten.hardtanh.default": signature("self, min_val=-1.0, max_val=1.0"),
    "aten.leaky_relu.default": signature("self, negative_slope=0.01"),
    "aten.logical_and.default": TWO,
    "aten.logical_or.default": TWO,
    "aten.masked_fill.Scalar": signature("self, mask, value"),
    "aten.maximum.default": TWO,
    "aten.minimum.default": TWO,
    "aten.pow.Tensor_Scalar": signature("self, exponent"),
    "aten.pow.Tensor_Tensor": signature("self, exponent"),
    "aten.rsub.Scalar": SCALED,
    "aten.softplus.default": signature("self, beta=1.0, threshold=20.0"),
    "aten.sub.Scalar": SCALED,
    "aten.sub.Tensor": SCALED,
    "aten.where.self": signature("condition, self, other"),
    # Every tensor lies on the device of `run`'s inputs, whichever the trace names.
    "aten._to_copy.default": signature(
        "self",
        "dtype=None",
        f"layout=None|strided, device=None|any, pin_memory=None|False, non_blocking=False|True, {CONTIGUOUS}",
    ),
    "aten.to.dtype": signature("self", "dtype", f"non_blocking=False|True, copy=False|True, {CONTIGUOUS}"),
    "aten.sum.default": signature("self", "dtype=None"),
    "aten.sum.dim_IntList": signature("self", f"{REDUCED}, dtype=None"),
    "aten.mean.default": signature("self", "dtype=None"),
    "aten.mean.dim": signature("self", f"{REDUCED}, dtype=None"),
    "aten.prod.default": signature("self", "dtype=None"),
    "aten.prod.dim_int": signature("self", f"{REDUCED}, dtype=None"),
    "aten.amax.default": signature("self", "dim=[], keepdim=False"),
    "aten.amin.default": signature("self", "dim=[], keepdim=False"),
    "aten.max.dim": signature("self", REDUCED),
    "aten.min.dim": signature("self", REDUCED),
    "aten.var.correction": signature("self", "dim=None, correction=None, keepdim=False"),
    "aten.logsumexp.default": signature("self", REDUCED),
    "aten.softmax.int": signature("self", "dim, dtype=None"),
    "aten.log_softmax.int": signature("self", "dim, dtype=None"),
    # Computed in float32 either way; the result's own dtype says in which it is stored.
    "aten._softmax.default": signature("self", "dim", "half_to_float=False|True"),
    "aten._log_softmax.default": signature("self", "dim", "half_to_float=False|True"),
    "aten.layer_norm.default": signature(
        "input, normalized_shape, weight=None, bias=None, eps=1e-5", "", "cudnn_enable=True|False"
    ),
    "aten.clone.default": signature("self", "", CONTIGUOUS),
    "aten.contiguous.default": signature("self", "", "memory_format=contiguous_format"),
    "aten.permute.default": signature("self, dims"),
    "aten.transpose.int": signature("self, dim0, dim1"),
    "aten.unsqueeze.default": signature("self, dim"),
    "aten.squeeze.dim": signature("self, dim"),
    "aten.squeeze.dims": signature("self, dim"),
    "aten.expand.default": signature("self, size", "", "implicit=False"),
    "aten.slice.Tensor": signature("self, dim=0, start=None, end=None, step=1"),
    "aten.select.int": signature("self, dim, index"),
    "aten.view.default": signature("self, size"),
    "aten._unsafe_view.default": signature("self, size"),
    "aten.reshape.default": signature("self, shape"),
    "aten.split_with_sizes.default": signature("self, split_sizes, dim=0"),
}
"""Rows with more arguments than `self`, or than `self, other` of those that end in Tensor or Scalar."""


def signature_of(op: str) -> Signature:
    """What the row of an operator that the drafter knows does with its arguments."""
    plain = TWO if op.endswith((".Tensor", ".Scalar")) else ONE
    return SIGNATURES.get(op, plain)


@dataclass(frozen=True)
class BoundArguments:
    """One call's arguments."""

    operands: tuple[NodeArgument, ...]
    options: Mapping[str, NodeArgument]
    ignored: Mapping[str, NodeArgument]
    """What the call gives and the row does not implement."""


def bound(node: Node) -> BoundArguments:
    """The call's arguments by name, defaults filled in."""
    row = signature_of(node.op)
    given = {**dict(zip(row.names, node.args, strict=False)), **node.kwargs}
    surplus = {f"argument {i + 1}": a for i, a in enumerate(node.args) if i >= len(row.names)}
    unknown = {name: a for name, a in given.items() if name not in row.names}
    return BoundArguments(
        tuple(a for name, default in row.operands.items() if (a := given.get(name, default))),
        {name: a for name, default in row.options.items() if (a := given.get(name, default))},
        {
            **surplus,
            **unknown,
            **{
                n: given[n] for n, values in row.unused.items() if n in given and not _among(given[n], values)
            },
        },
    )


def _among(argument: NodeArgument, values: tuple[Default, ...]) -> bool:
    return isinstance(argument, Literal_) and (argument.value in values or "any" in values)


def written(argument: NodeArgument) -> str:
    """The argument as a person would write it."""
    match argument:
        case Literal_(value=value) | NonFinite(value=value):
            return str(value)
        case ArgumentList(items=items):
            return f"[{', '.join(written(a) for a in items)}]"
        case SizeRef(expression=text) | NodeRef(name=text) | ScalarRef(name=text):
            return text
