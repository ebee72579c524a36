"""What a graph must do at least: the bytes it moves, what is needed of each input read once and each output
written once, and its floating-point operations."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pytorch_to_triton.graph.joint import backward_half, gradients_alone
from pytorch_to_triton.graph.skeleton import operands
from pytorch_to_triton.inputs.expression import value_of
from pytorch_to_triton.schema.dtype import ITEM_BYTES
from pytorch_to_triton.schema.graph import Graph, Literal_, Node, NodeArgument, NodeRef, Shape, TensorInput

Sizes = tuple[int, ...]


def bytes_moved(graph: Graph, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> int:
    """Bytes of all outputs, and of what they need of the inputs, at these dims; `dtypes` by input name where
    they differ from the trace.

    Of a tensor that is only looked up in, what is looked up, though it may be the same again. An output has
    the traced dtype, or, where it shares that of the first input, the first input's; one that is an input
    moves nothing.
    """
    known_dtypes, read = _dtypes_of(graph, dtypes), elements_read(graph, dims)
    shapes = {node.name: node.shape for node in graph.nodes if node.shape is not None}
    written = {o.name: elements(shapes[o.name], dims) for o in graph.outputs if o.name in shapes}
    moved = [*((i.name, read[i.name]) for i in graph.inputs), *written.items()]
    return sum(count * ITEM_BYTES[known_dtypes[name]] for name, count in moved)  # type: ignore[index, misc]


def gradient_bytes(joint: Graph, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> int:
    """Bytes that the backward pass of a joint graph moves: it reads the gradients of results, and what was
    saved or the inputs, whichever is less, and writes the inputs' gradients."""
    known_dtypes = _dtypes_of(joint, dtypes)
    return min(
        bytes_moved(half, dims, known_dtypes) for half in (backward_half(joint), gradients_alone(joint))
    )


def elements_read(graph: Graph, dims: Mapping[str, int]) -> Counter[str]:
    """How many elements of each tensor, or of a call's several ones, the outputs need."""
    sizes = {name: math.prod(shape) for name, shape in _shapes_of(graph, dims).items()}
    computed = {node.name for node in graph.nodes}
    needed = Counter({o.name: sizes.get(o.name, 1) for o in graph.outputs if o.name in computed})
    for node in reversed(graph.nodes):
        needed_of_node = needed[node.name]
        for place, name in enumerate(operands(node) if needed_of_node else ()):
            shown = place == 0 and _operator(node) in SHOWING
            total = needed[name] + (needed_of_node if shown else sizes.get(name, 1))
            needed[name] = min(total, sizes.get(name, total))
    return needed


def largest_value_bytes(graph: Graph, dims: Mapping[str, int]) -> int:
    """Bytes of the largest tensor at these dims in the traced dtypes, be it an intermediate result."""
    tensors: list[TensorInput | Node] = [*graph.inputs, *graph.nodes]
    held = (elements(t.shape, dims) * ITEM_BYTES[t.dtype] for t in tensors if t.shape and t.dtype)
    return max(held, default=0)


def held_bytes(*graphs: Graph | None) -> Callable[[Mapping[str, int]], int] | None:
    """`largest_value_bytes` of all the graphs as a function of dims; None without any."""
    known = [graph for graph in graphs if graph]
    return (lambda dims: max(largest_value_bytes(graph, dims) for graph in known)) if known else None


def flops(graph: Graph, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> dict[str, int]:
    """Floating-point operations at these dims: those of products by the dtype of their operands, all others
    under `float32`, in which the vector units compute them."""
    total = Counter(product_flops(graph, dims, dtypes))
    total["float32"] += vector_flops(graph, dims)
    return {dtype: count for dtype, count in total.items() if count}


def product_flops(graph: Graph, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> dict[str, int]:
    """Operations of matrix products, convolutions and attention by operand dtype: two for a multiply-add.

    A bias that is added on the way is not counted. Operands have the traced dtype, or, where they share that
    of the first input, the first input's: a product whose factors are cast to a wider dtype first may thus
    count in the narrower one, so that the time it needs is underestimated, never overestimated.
    """
    shapes, known_dtypes = _shapes_of(graph, dims), _dtypes_of(graph, dtypes)
    total: Counter[str] = Counter()
    for node in graph.nodes:
        if _operator(node) in PRODUCTS:
            tensors = _tensors(node)
            operands = [shapes[name] for name in tensors]
            count = PRODUCTS[_operator(node)](node, operands, shapes.get(node.name, ()))
            total[known_dtypes[tensors[_first_factor(node)]]] += count
    return {dtype: count for dtype, count in total.items() if count}


def vector_flops(graph: Graph, dims: Mapping[str, int]) -> int:
    """Floating-point operations of everything but products: one for an element of the result, PER_INPUT for
    an element of what is reduced or normalised, none for views and copies, and none between integers. A
    transcendental function counts as one."""
    shapes, known_dtypes = _shapes_of(graph, dims), _dtypes_of(graph, {})
    return sum(_vector_flops(node, shapes) for node in graph.nodes if not _is_of_integers(node, known_dtypes))


def _is_of_integers(node: Node, dtypes: Mapping[str, str]) -> bool:
    """Whether an operator neither reads nor returns a floating-point tensor."""
    used_dtypes = {dtypes[name] for name in (node.name, *_tensors(node)) if name in dtypes}
    return bool(used_dtypes) and not any("float" in dtype or "complex" in dtype for dtype in used_dtypes)


def _vector_flops(node: Node, shapes: Mapping[str, Sizes]) -> int:
    name = _operator(node)
    operands = [shapes[tensor] for tensor in _tensors(node) if tensor in shapes]
    if name in ATTENTION:
        return PER_INPUT["softmax"] * _scores(node, operands)
    if name in FREE or name in PRODUCTS:
        return 0
    if operands and (name in PER_INPUT or node.name not in shapes):
        return PER_INPUT.get(name, 1) * math.prod(operands[0])
    return math.prod(shapes.get(node.name, (0,)))


def elements(shape: Shape, dims: Mapping[str, int]) -> int:
    """The number of elements of a shape at these dims."""
    return math.prod(_sizes(shape, dims))


PER_INPUT: Mapping[str, int] = {
    "all": 1, "amax": 1, "amin": 1, "any": 1, "argmax": 1, "argmin": 1, "cumprod": 1, "cumsum": 1, "max": 1,
    "mean": 1, "min": 1, "prod": 1, "sum": 1,
    "linalg_vector_norm": 2,
    # Maximum, difference, exponential, sum; softmax divides, log_softmax subtracts.
    "logsumexp": 4, "softmax": 5, "_softmax": 5, "log_softmax": 5, "_log_softmax": 5,
    # Sum, difference, square and its sum; the norms scale, weigh and shift.
    "var": 4, "layer_norm": 7, "native_layer_norm": 7, "native_group_norm": 7,
    # Square, sum, scale, weight.
    "rms_norm": 4, "_fused_rms_norm": 4,
    # The statistics are given: difference, scale, weight, shift.
    "_native_batch_norm_legit_no_training": 4,
}  # fmt: skip
"""Operations for each element of the first tensor."""

SHOWING = frozenset({
    "_to_copy", "_unsafe_view", "alias", "as_strided", "chunk", "clone", "constant_pad_nd", "contiguous",
    "detach", "diagonal", "embedding", "expand", "flip", "gather", "getitem", "index", "index_select",
    "narrow", "permute", "repeat", "reshape", "roll", "select", "slice", "split", "split_with_sizes",
    "squeeze", "t", "to", "transpose", "unbind", "unfold", "unsqueeze", "upsample_nearest2d", "view",
})  # fmt: skip
"""Operators of whose results each element is one of the first operand's, or a constant."""

FREE = SHOWING | {
    "arange", "cat", "copy", "empty", "empty_like", "full", "full_like", "lift_fresh_copy", "ones",
    "ones_like", "scalar_tensor", "stack", "zeros", "zeros_like",
}  # fmt: skip
"""Operators that move elements, or say where they are, without computing with them."""

ATTENTION: Mapping[str, int] = {
    "scaled_dot_product_attention": 5,
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_flash_attention_for_cpu": 4,
    "_scaled_dot_product_efficient_attention": 6,
    "_scaled_dot_product_cudnn_attention": 6,
}
"""Position of `is_causal`."""


def _contraction(node: Node, operands: Sequence[Sizes], result: Sizes) -> int:
    """Every element of the result is a dot product along the last dim of the first factor."""
    return 2 * math.prod(result) * operands[_first_factor(node)][-1]


def _convolution(node: Node, operands: Sequence[Sizes], result: Sizes) -> int:
    """x: [B, C, ...], weight: [out, C / groups, ...], or [C, out / groups, ...] where it is transposed: each
    position of the result, or of x where it is transposed, meets the whole weight."""
    x, weight = operands[:2]
    transposed = "transpose" in _operator(node) or _is_true(node, 6)
    positions = x[2:] if transposed else result[2:]
    return 2 * x[0] * math.prod(positions) * math.prod(weight)


def _attention(node: Node, operands: Sequence[Sizes], result: Sizes) -> int:
    """q: [..., S, D], k: [..., T, D], v: [..., T, E]: two products over the scores."""
    q, _, v = operands[:3]
    return 2 * _scores(node, operands) * (q[-1] + v[-1])


def _scores(node: Node, operands: Sequence[Sizes]) -> int:
    """How many scores attention needs; a causal one has no use for those above the diagonal."""
    queries, keys = operands[0][-2], operands[1][-2]
    pairs = queries * keys
    if _is_true(node, ATTENTION[_operator(node)]):
        attended = min(queries, keys)
        pairs = attended * (attended + 1) // 2 + (queries - attended) * keys
    return math.prod(operands[0][:-2]) * pairs


Count = Callable[[Node, Sequence[Sizes], Sizes], int]

PRODUCTS: Mapping[str, Count] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "mv", "dot"), _contraction),
    **dict.fromkeys(("convolution", "conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _convolution),
    **dict.fromkeys(ATTENTION, _attention),
}
"""What products cost, from the node, the sizes of its tensor arguments and those of its result."""


def _first_factor(node: Node) -> int:
    """Which tensor argument is the first factor: those that add start with what is added."""
    return 1 if _operator(node) in ("addmm", "baddbmm") else 0


def _operator(node: Node) -> str:
    """`mm` of `aten.mm.default`."""
    return node.op.split(".")[1] if "." in node.op else node.op


def _tensors(node: Node) -> list[str]:
    return [argument.name for argument in node.args if isinstance(argument, NodeRef)]


def _is_true(node: Node, position: int) -> bool:
    argument: NodeArgument | None = node.args[position] if position < len(node.args) else None
    return isinstance(argument, Literal_) and argument.value is True


def _sizes(shape: Shape, dims: Mapping[str, int]) -> Sizes:
    return tuple(int(value_of(expression, dims)) for expression in shape.expressions)


def _shapes_of(graph: Graph, dims: Mapping[str, int]) -> dict[str, Sizes]:
    """The sizes of all inputs and results that are one tensor."""
    tensors: list[TensorInput | Node] = [*graph.inputs, *graph.nodes]
    return {t.name: _sizes(t.shape, dims) for t in tensors if t.shape is not None}


def _dtypes_of(graph: Graph, dtypes: Mapping[str, str]) -> dict[str, str]:
    """The dtypes of all inputs and results that are one tensor, where those named in `dtypes` have these."""
    first = graph.inputs[0]
    chosen = dtypes.get(first.name, first.dtype)
    gradients = graph.joint.cotangents if graph.joint else {}
    results = {node.name: node.dtype for node in graph.nodes if node.dtype is not None}
    results |= {tensor.name: tensor.dtype for tensor in graph.inputs if tensor.name in gradients}
    follow = {name: chosen if dtype == first.dtype else dtype for name, dtype in results.items()}
    return {**{tensor.name: tensor.dtype for tensor in graph.inputs}, **follow, **dtypes}
