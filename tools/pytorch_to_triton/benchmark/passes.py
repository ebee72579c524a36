"""What a call has to do at least, its backward pass included."""

from typing import Literal

from pytorch_to_triton.benchmark.roofline import DeclaredWork, work_of
from pytorch_to_triton.graph.cost import gradient_bytes
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.schema.benchmark import Passes
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.timing import MinimalWork

PRODUCTS_BACKWARD = 2
"""A product needs two of its size in the backward pass, one for each operand's gradient."""


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
