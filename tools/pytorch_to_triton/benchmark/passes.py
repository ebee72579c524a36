"""What the backward pass has to do at least."""

from pytorch_to_triton.schema.benchmark import Passes
from pytorch_to_triton.schema.timing import MinimalWork

PRODUCTS_BACKWARD = 2
"""A product needs two of its size in the backward pass, one for each operand's gradient."""


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
