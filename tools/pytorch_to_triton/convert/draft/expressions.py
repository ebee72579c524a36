"""How each pointwise operator is written in Triton: one row an operator, composed as syntax trees.

`_0`, `_1`, ... stand for the operands. Templates that mention an operand twice get it as a name, so nothing
is computed twice. Values are float32 (float64 in a float64 function) unless they are whole numbers or bools.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAN = "propagate_nan=tl.PropagateNan.ALL"

TEMPLATES: Mapping[str, str] = {
    "abs": "tl.abs(_0)",
    "add": "_0 + _1",
    "and": "_0 & _1",
    "ceil": "tl.ceil(_0)",
    "clamp": f"tl.clamp(_0, _1, _2, {NAN})",
    "clamp_max": f"tl.minimum(_0, _1, {NAN})",
    "clamp_min": f"tl.maximum(_0, _1, {NAN})",
    "cos": "tl.cos(_0)",
    "div": "_0 / _1",
    "eq": "_0 == _1",
    "erf": "tl.erf(_0)",
    "exp": "tl.exp(_0)",
    "exp2": "tl.exp2(_0)",
    "expm1": "libdevice.expm1(_0)",
    "floor": "tl.floor(_0)",
    "ge": "_0 >= _1",
    "gelu": "0.5 * _0 * (1.0 + tl.erf(0.7071067811865476 * _0))",
    "gelu_tanh": "0.5 * _0 * (1.0 + libdevice.tanh(0.7978845608028654 * (_0 + 0.044715 * _0 * _0 * _0)))",
    "gt": "_0 > _1",
    "hardsigmoid": f"tl.minimum(tl.maximum(_0 + 3.0, 0.0, {NAN}), 6.0, {NAN}) / 6.0",
    "hardswish": f"_0 * tl.minimum(tl.maximum(_0 + 3.0, 0.0, {NAN}), 6.0, {NAN}) / 6.0",
    "le": "_0 <= _1",
    "leaky_relu": "tl.where(_0 > 0.0, _0, _1 * _0)",
    "log": "tl.log(_0)",
    "log1p": "libdevice.log1p(_0)",
    "log2": "tl.log2(_0)",
    "lt": "_0 < _1",
    "masked_fill": "tl.where(_1, _2, _0)",
    "maximum": f"tl.maximum(_0, _1, {NAN})",
    "minimum": f"tl.minimum(_0, _1, {NAN})",
    "mish": "_0 * libdevice.tanh(tl.where(_0 > 20.0, _0, libdevice.log1p(tl.exp(_0))))",
    "mul": "_0 * _1",
    "ne": "_0 != _1",
    "neg": "-_0",
    "not": "~_0",
    "or": "_0 | _1",
    "pow": "libdevice.pow(_0, _1)",
    "reciprocal": "1.0 / _0",
    "relu": f"tl.maximum(_0, 0.0, {NAN})",
    "rsqrt": "tl.rsqrt(_0)",
    "rsub": "_1 - _0",
    "sigmoid": "tl.sigmoid(_0)",
    "sign": "tl.where(_0 > 0.0, 1.0, tl.where(_0 < 0.0, -1.0, 0.0))",
    "silu": "_0 * tl.sigmoid(_0)",
    "sin": "tl.sin(_0)",
    "softplus": "tl.where(_0 * _1 > _2, _0, libdevice.log1p(tl.exp(_0 * _1)) / _1)",
    "softplus_1": "tl.where(_0 > _1, _0, libdevice.log1p(tl.exp(_0)))",
    "sqrt": "tl.sqrt(_0)",
    "square": "_0 * _0",
    "sub": "_0 - _1",
    "tanh": "libdevice.tanh(_0)",
    "where": "tl.where(_0, _1, _2)",
}

POWERS: Mapping[float, str] = {
    -1.0: "1.0 / _0",
    -0.5: "tl.rsqrt(_0)",
    0.5: "tl.sqrt(_0)",
    1.0: "_0",
    2.0: "_0 * _0",
    3.0: "_0 * _0 * _0",
    4.0: "_0 * _0 * (_0 * _0)",
}
"""`pow` with a constant exponent."""


@dataclass(frozen=True)
class Text:
    """A piece of an expression."""

    tree: ast.expr

    @classmethod
    def of(cls, text: str) -> Text:
        return cls(ast.parse(text, mode="eval").body)

    def __str__(self) -> str:
        return ast.unparse(self.tree)

    @property
    def is_atom(self) -> bool:
        """A name or a number, which may be written twice."""
        return isinstance(self.tree, ast.Name | ast.Constant)

    @property
    def weight(self) -> int:
        """How much there is to read."""
        return sum(
            isinstance(n, ast.BinOp | ast.Call | ast.UnaryOp | ast.Compare) for n in ast.walk(self.tree)
        )


def filled(template: str, operands: Sequence[Text]) -> Text:
    """The template with its operands in place."""
    tree = ast.parse(template, mode="eval").body
    places = {f"_{i}": operand.tree for i, operand in enumerate(operands)}
    return Text(_Fill(places).visit(tree))


def repeated(template: str) -> frozenset[int]:
    """Positions of the operands that the template mentions more than once."""
    names = [n.id for n in ast.walk(ast.parse(template)) if isinstance(n, ast.Name)]
    return frozenset(i for i in range(4) if names.count(f"_{i}") > 1)


class _Fill(ast.NodeTransformer):
    def __init__(self, places: Mapping[str, ast.expr]) -> None:
        self.places = places

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.places.get(node.id, node)
