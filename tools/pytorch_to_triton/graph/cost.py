"""What a graph must move at least: each input read once, each output written once."""

import math
from collections.abc import Mapping

from pytorch_to_triton.schema.case import ITEM_BYTES
from pytorch_to_triton.schema.expression import value_of
from pytorch_to_triton.schema.graph import Graph, Shape


def bytes_moved(graph: Graph, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> int:
    """Bytes of all inputs and outputs at these dims; `dtypes` by input name where they differ from the trace.

    An output has the traced dtype, or, where it shares that of the first input, the first input's.
    """
    first = graph.inputs[0]
    shapes = {n.name: (n.shape, n.dtype) for n in graph.nodes if n.shape is not None}
    total = 0
    for tensor in graph.inputs:
        total += elements(tensor.shape, dims) * ITEM_BYTES[dtypes.get(tensor.name, tensor.dtype)]  # type: ignore[index]
    for output in graph.outputs:
        if output.name not in shapes:
            continue
        shape, dtype = shapes[output.name]
        assert shape is not None
        assert dtype is not None
        chosen = dtypes.get(first.name, dtype) if dtype == first.dtype else dtype
        total += elements(shape, dims) * ITEM_BYTES[chosen]  # type: ignore[index]
    return total


def elements(shape: Shape, dims: Mapping[str, int]) -> int:
    """The number of elements of a shape at these dims."""
    return math.prod(int(value_of(e, dims)) for e in shape.expressions)
