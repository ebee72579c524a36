"""Who computes convolutions and products: kernels of the draft, or PyTorch's libraries with a drafted tail.

Which is fastest depends on sizes, dtype and device: the last stage measures. What is taken where nothing is
measured follows one H200 (2026-11, torch 2.11, Triton 3.6): a dense 3x3 convolution as an implicit matrix
product reaches 0.28 to 0.6 of cuDNN's speed, a depthwise one 2.5 times it, and cuDNN takes less than half its
own time where channels come last in memory and no bias is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pytorch_to_triton.schema.graph import Graph, Literal_, Node, NodeRef, Shape

Way = Literal["own kernels", "library", "library, channels last"]
CHANNELS_LAST: Way = "library, channels last"
CONVOLUTION = "aten.convolution.default"
PRODUCTS = frozenset({
    "aten.mm.default", "aten.bmm.default", "aten.addmm.default", "aten.baddbmm.default",
    "aten.linear.default", "aten.matmul.default", "aten.scaled_dot_product_attention.default",
})  # fmt: skip


@dataclass(frozen=True)
class Ways:
    """Who computes each family; whatever else has a row is drafted."""

    convolutions: Way = "own kernels"
    products: Way = "own kernels"
    left: tuple[tuple[str, str], ...] = ()
    """Names of nodes that are left to PyTorch whatever they compute, each with the reason."""

    def of(self, node: Node, shapes: Mapping[str, Shape]) -> Way:
        """Who computes this call."""
        if node.op in PRODUCTS:
            return self.products
        if node.op == CONVOLUTION and not is_depthwise(node, shapes):
            return self.convolutions
        return "own kernels"

    def __str__(self) -> str:
        """What stays a library's, e.g. `convolutions by library, channels last`."""
        families = {"convolutions": self.convolutions, "products": self.products}
        left = [f"{family} by {way}" for family, way in families.items() if way != "own kernels"]
        return "; ".join(left) or "own kernels"


PURE = Ways()
"""No library computes what a row lowers."""


def ways_of(graph: Graph) -> tuple[Ways, ...]:
    """What is worth measuring for the graph, one family apart from the other; the first where nothing is."""
    shapes = shapes_of(graph)
    dense = [n for n in graph.nodes if n.op == CONVOLUTION and not is_depthwise(n, shapes)]
    convolutions: tuple[Way, ...] = ("own kernels",)
    if dense:
        convolutions = ("library", "own kernels")
        if any(has_channels_last(n, shapes) for n in dense):
            convolutions = (CHANNELS_LAST, *convolutions)
    products: tuple[Way, ...] = ("own kernels",)
    if any(n.op in PRODUCTS for n in graph.nodes):
        products = ("own kernels", "library")
    first = Ways(convolutions[0], products[0])
    return (
        first,
        *(replace(first, convolutions=way) for way in convolutions[1:]),
        *(replace(first, products=way) for way in products[1:]),
    )


def shapes_of(graph: Graph) -> dict[str, Shape]:
    """The shapes of all tensors of the graph."""
    inputs = {i.name: i.shape for i in graph.inputs}
    return inputs | {n.name: n.shape for n in graph.nodes if n.shape is not None}


def is_depthwise(node: Node, shapes: Mapping[str, Shape]) -> bool:
    """Whether each channel of a convolution is computed from one of the input's."""
    weight, transposed, groups = node.args[1], node.args[6], node.args[8]
    assert isinstance(weight, NodeRef)
    per_group = shapes[weight.name].traced[1]
    return per_group == 1 and transposed == Literal_(value=False) and groups != Literal_(value=1)


def has_channels_last(node: Node, shapes: Mapping[str, Shape]) -> bool:
    """Whether PyTorch has such an order for the convolution's tensors: two or three dims of space."""
    x, weight = node.args[:2]
    assert isinstance(x, NodeRef)
    return len(shapes[x.name].traced) > 3 and x != weight
