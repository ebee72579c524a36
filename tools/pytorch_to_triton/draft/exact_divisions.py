"""Which divisions round as PyTorch's do: those whose quotient is rounded to a whole number afterwards.

Triton's / is fast, and off by up to two units in the last place: a quotient of 63.5 that comes out just below
would be rounded to 63 in place of 64. tl.div_rn is the division of IEEE 754.
"""

from __future__ import annotations

from pytorch_to_triton.draft.ir.rewriting import rewrite
from pytorch_to_triton.draft.ir.values import Map, Value, kind_of
from pytorch_to_triton.graph.tensor_dtypes import operands
from pytorch_to_triton.schema.graph import Graph, Node

ROUNDING = frozenset({"ceil", "floor", "floor_divide", "fmod", "frac", "remainder", "round", "trunc"})
DIVISION = "aten.div."


def exact_divisions(graph: Graph) -> frozenset[str]:
    """The names of the divisions that something rounded is computed from."""
    behind: set[str] = set()
    found = []
    for node in reversed(graph.nodes):
        if node.name in behind or _rounds(node):
            behind.update(operands(node))
            if node.op.startswith(DIVISION) and node.dtype != "float64":
                found.append(node.name)
    return frozenset(found)


def _rounds(node: Node) -> bool:
    if node.op.startswith("aten._to_copy"):
        return node.dtype is not None and node.dtype.startswith(("int", "uint"))
    return node.op.partition(".")[2].partition(".")[0] in ROUNDING or node.op.endswith("_mode")


def divided_exactly(v: Value) -> Value:
    """The value with exact divisions of floating-point numbers."""

    def exact(x: Value) -> Value | None:
        match x:
            case Map(fn="div", args=(a, b)) if kind_of(a) == kind_of(b) == "float":
                return Map("div_rn", (a, b), x.name)
        return None

    return rewrite(v, exact)
