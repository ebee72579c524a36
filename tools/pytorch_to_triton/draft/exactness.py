"""Which steps round as PyTorch's do: those whose last bits a later step brings to light.

Triton's /, tl.exp and tl.sqrt are fast, and off by up to two units in the last place. A quotient of 63.5 that
comes out just below would be rounded to 63 in place of 64; the sine of an angle of 1000 is off by 1e-4. Where
neighbours are divided by the same, as a row by its scale, an exact quotient is nearly as fast as another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytorch_to_triton.draft.ir.rewriting import rewrite
from pytorch_to_triton.draft.ir.values import Axis, Map, Value, axes_of, const, kind_of
from pytorch_to_triton.graph.skeleton import operands
from pytorch_to_triton.schema.graph import Graph, Literal_, Node

EXACT: Mapping[str, str] = {"div": "div_rn", "exp": "exp_full", "sqrt": "sqrt_rn"}
"""The function that rounds as PyTorch's does in place of the fast one."""
QUOTIENTS = frozenset({"div", "reciprocal"})
APPROXIMATED = QUOTIENTS | {"exp", "sqrt"}
"""The operators that are computed by a fast function."""
ROUNDING = frozenset({"ceil", "floor", "floor_divide", "fmod", "frac", "remainder", "round", "trunc"})
PERIODIC = frozenset({"cos", "sin", "tan"})
COMPARING = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})


def exact_steps(graph: Graph) -> frozenset[str]:
    """Fast steps, by name, that a rounding, a sine or its like, or, if quotients, a comparison depends on."""
    fast = [n for n in graph.nodes if _operator(n) in APPROXIMATED and n.dtype != "float64"]
    rounded, compared = _behind(graph, _rounds), _behind(graph, _compares)
    return frozenset(
        n.name for n in fast if n.name in rounded or (n.name in compared and _operator(n) in QUOTIENTS)
    )


def _behind(graph: Graph, shows: Callable[[Node], bool]) -> set[str]:
    """What the nodes are computed from that show the last bits of it."""
    behind: set[str] = set()
    for node in reversed(graph.nodes):
        if node.name in behind or shows(node):
            behind.update(operands(node))
    return behind


def _rounds(node: Node) -> bool:
    if _operator(node) == "_to_copy":
        return node.dtype is not None and node.dtype.startswith(("int", "uint", "float8"))
    return _operator(node) in ROUNDING | PERIODIC or node.op.endswith("_mode")


def _compares(node: Node) -> bool:
    """Whether more is asked than a sign, which is right however a step rounds."""
    return _operator(node) in COMPARING and Literal_(value=0) not in node.args


def _operator(node: Node) -> str:
    return node.op.partition(".")[2].partition(".")[0]


def made_exact(v: Value, lanes: Axis | None) -> Value:
    """The value with floating-point functions that round as PyTorch's do.

    `lanes`: the axis along which neighbours lie.
    """

    def exact(x: Value) -> Value | None:
        match x:
            case Map(fn="reciprocal", args=(a,)) if kind_of(a) == "float":
                return Map("div_rn", (const(1.0), a), x.name)
            case Map(fn="div", args=(a, b)) if lanes in axes_of(a) - axes_of(b) and kind_of(b) == "float":
                return Map("quotient_rn", (a, b), x.name)
            case Map(fn=fn, args=args) if fn in EXACT and all(kind_of(a) == "float" for a in args):
                return Map(EXACT[fn], args, x.name)
        return None

    return rewrite(v, exact)
