"""What a call has to do at least, its backward pass included."""

from pytorch_to_triton.benchmark.roofline import DeclaredWork, work_of
from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.schema.benchmark import Passes
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.timing import MinimalWork

PRODUCTS_BACKWARD = 2
"""A product needs two of its size in the backward pass, one for each operand's gradient."""


def work_of_case(
    graph: Graph | None, case: Case, passes: Passes, declared: DeclaredWork | None = None
) -> MinimalWork | None:
    """The work of the timed passes of a case, declared or counted in the forward graph; None: not known."""
    forward = work_of(graph, case.dims, case.dtypes, declared)
    passed = sum(tensor.bytes for tensor in tensors_in(case.arguments))
    return work_of_passes(forward, passed, passes) if forward else None


def work_of_passes(forward: MinimalWork, input_bytes: int, passes: Passes) -> MinimalWork:
    """The work of the passes that are timed; `forward` is that of the forward pass.

    Backward: the inputs and the outputs' gradients are read once and the inputs' gradients are written once;
    every operation is done twice. Both: the sum.
    """
    if passes == "forward":
        return forward
    output_bytes = max(forward.bytes_moved - input_bytes, 0)
    backward = 2 * input_bytes + output_bytes
    times = PRODUCTS_BACKWARD + (passes == "both")
    return MinimalWork(
        bytes_moved=backward + (forward.bytes_moved if passes == "both" else 0),
        flops={dtype: times * count for dtype, count in forward.flops.items()},
        vector_flops=times * forward.vector_flops,
        provenance=f"{forward.provenance}; the backward pass taken to read inputs and gradients once and do "
        "twice the operations",
    )
