"""The roofline: what a call has to do at least, and how long that takes on a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pytorch_to_triton.errors import BadDeclaration, BadInput
from pytorch_to_triton.graph.cost import bytes_moved, gradient_bytes, product_flops, vector_flops
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.inputs.expression import parse_size, point_name, value_of
from pytorch_to_triton.inputs.text_span import TextSpan
from pytorch_to_triton.schema.benchmark import Passes
from pytorch_to_triton.schema.dtype import ITEM_BYTES
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.timing import Ceilings, MinimalWork, Roofline

ITEM_SIZE = "itemsize"
"""In a declared expression: the bytes of an element of the first tensor."""

SAME_RATE = {"float8_e5m2": "float8_e4m3fn"}
"""Dtypes whose products are as fast as those of another."""
PRODUCTS_BACKWARD = 2
"""A product needs two of its size in the backward pass, one for each operand's gradient."""


@dataclass(frozen=True)
class DeclaredWork:
    """What a kernel file declares: `BYTES` and `FLOPS`, expressions over its dims and `itemsize`."""

    source: str
    """The file's name."""
    bytes_moved: str | None = None
    flops: str | None = None


def work_of(
    graph: Graph | None, dims: Mapping[str, int], dtypes: Mapping[str, str], declared: DeclaredWork | None
) -> MinimalWork | None:
    """What the forward pass has to do at these dims; `dtypes` by tensor name, in the order of the arguments.

    What is declared goes before what is counted in the graph. Declared operations belong to the dtype that
    most of the counted ones have, or, without a graph, to that of the first floating-point tensor. None where
    the bytes are neither declared nor counted. Raises BadDeclaration for an expression that does not parse,
    names no dim, or is negative here.
    """
    moved = bytes_moved(graph, dims, dtypes) if graph else None
    products = product_flops(graph, dims, dtypes) if graph else {}
    vector = vector_flops(graph, dims) if graph else 0
    if declared and declared.bytes_moved is not None:
        moved = declared_count("BYTES", declared.bytes_moved, dims, dtypes)
    if declared and declared.flops is not None:
        count = declared_count("FLOPS", declared.flops, dims, dtypes)
        # A graph without products has its work in the vector units, and so has what is declared for it.
        is_vector = graph is not None and max(products.values(), default=0) <= vector
        products, vector = ({}, count) if is_vector else ({_main(products, dtypes): count}, 0)
    if moved is None:
        return None
    flops = dict(products)
    if vector:
        flops["float32"] = flops.get("float32", 0) + vector
    return MinimalWork(bytes_moved=moved, flops=flops, vector_flops=vector, provenance=_how(graph, declared))


def declared_count(label: str, text: str, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> int:
    """A declared expression at these dims, e.g. of `BYTES = "3 * M * N * itemsize"`.

    Raises BadInput that points at what does not parse, names no dim, divides by zero or is negative.
    """
    first = next(iter(dtypes.values()), "float32")
    known = {ITEM_SIZE: ITEM_BYTES[first], **dims}  # type: ignore[index]
    try:
        parsed = parse_size(TextSpan.of(label, text), known)
    except BadDeclaration as refusal:
        names = ", ".join([*dims, ITEM_SIZE])
        raise BadInput(refusal.message, f"Write numbers, + - * // and brackets over {names}.") from refusal
    count = int(value_of(parsed, known))
    if count < 0:
        problem = f"{label}: {text} is {count:,} at {point_name(dims)}."
        raise BadDeclaration(problem, text, 0, "Bytes and operations are 0 or more at every size.")
    return count


def _main(products: Mapping[str, int], dtypes: Mapping[str, str]) -> str:
    """The dtype whose rate counts."""
    if products:
        return max(products, key=lambda dtype: products[dtype])
    return next((dtype for dtype in dtypes.values() if "float" in dtype), "float32")


def _how(graph: Graph | None, declared: DeclaredWork | None) -> str:
    texts = {"bytes": declared.bytes_moved, "operations": declared.flops} if declared else {}
    names = " and ".join(name for name, text in texts.items() if text is not None)
    given = f"{names} declared in {declared.source}" if declared and names else ""
    if names == "bytes and operations" or graph is None:
        return given
    return f"{given}, the rest counted in the traced graph" if given else "counted in the traced graph"


def limit_of(work: MinimalWork, ceilings: Ceilings, *, tf32: bool) -> Roofline | None:
    """The least time for this work: all bytes at the rate of a copy, all operations at the rates of products.

    Products in the matrix units run while the vector units compute the rest, and both while memory is read,
    so the longest of the three is the limit. Products of float32 run in the vector units, whose rate is that
    of such products, unless TF32 is on. None where there is nothing to do or a rate is not known.
    """
    products = products_in(work)
    vector = work.vector_flops + (0 if tf32 else products.pop("float32", 0))
    names = {dtype: "tf32" if dtype == "float32" else SAME_RATE.get(dtype, dtype) for dtype in products}
    if not {*names.values(), *(["float32"] if vector else [])} <= ceilings.matmul_tflops.keys():
        return None
    matrix_ms = sum(n / ceilings.matmul_tflops[names[dtype]] for dtype, n in products.items()) / 1e9
    vector_ms = vector / ceilings.matmul_tflops["float32"] / 1e9 if vector else 0.0
    bytes_ms, flops_ms = work.bytes_moved / ceilings.copy_gbytes_per_s / 1e6, max(matrix_ms, vector_ms)
    if bytes_ms == flops_ms == 0:
        return None
    return Roofline(
        ms=max(bytes_ms, flops_ms),
        binds="memory" if bytes_ms >= flops_ms else "compute",
        bytes_ms=bytes_ms,
        flops_ms=flops_ms,
        provenance=ceilings.provenance,
    )


def precision_of(*, tf32: bool) -> str:
    """The precision set for everybody."""
    return "float32 products in TF32" if tf32 else "float32 products in float32 (TF32 off)"


def products_in(work: MinimalWork) -> dict[str, int]:
    """The operations of products by operand dtype, without those of the vector units."""
    counts = {**work.flops, "float32": work.flops.get("float32", 0) - work.vector_flops}
    return {dtype: count for dtype, count in counts.items() if count}


def work_of_case(
    graph: Graph | None,
    case: Case,
    passes: Passes,
    declared: DeclaredWork | None = None,
    joint: Graph | None = None,
) -> MinimalWork | None:
    """The work of the timed passes of a case, declared or counted in the forward graph; None: not known.

    The bytes of the backward pass are those of the `joint` graph, where there is one.
    """
    forward = work_of(graph, case.dims, case.dtypes, declared)
    if forward is None or passes == "forward":
        return forward
    if joint is not None:
        moved = gradient_bytes(joint, case.dims, case.dtypes)
        how = "bytes are counted in its own traced graph"
    else:
        passed = sum(tensor.bytes for tensor in tensors_in(case.arguments))
        moved = bytes_taken(forward, passed)
        how = "inputs and gradients are taken to move once"
    return work_of_passes(forward, moved, how, passes)


def bytes_taken(forward: MinimalWork, input_bytes: int) -> int:
    """Of a backward pass of which no graph is known: inputs and outputs' gradients read, inputs' written."""
    return 2 * input_bytes + max(forward.bytes_moved - input_bytes, 0)


def work_of_passes(
    forward: MinimalWork, backward_bytes: int, how: str, passes: Literal["backward", "both"]
) -> MinimalWork:
    """The work of the backward pass, in which every operation is done twice, alone or with the forward's."""
    times = PRODUCTS_BACKWARD + (passes == "both")
    return MinimalWork(
        bytes_moved=backward_bytes + (forward.bytes_moved if passes == "both" else 0),
        flops={dtype: times * count for dtype, count in forward.flops.items()},
        vector_flops=times * forward.vector_flops,
        provenance=f"{forward.provenance}; in the backward pass {how}, and operations are taken to double",
    )
