"""Questions that authors of kernels ask, with the pages that answer each.

An answer is a page's name, or `NAME#WORD` for a section of it whose headings have that word.
"""

from typing import NamedTuple


class Asked(NamedTuple):
    """A question, and what would be a right answer to it."""

    question: str
    answers: tuple[str, ...]


OWN = (
    Asked("accumulate in fp32", ("guides/fusion", "guides/reductions", "guides/stability")),
    Asked("load with boundary", ("guides/masks", "triton.language.load")),
    Asked("warp specialisation", ("guides/pipelining", "triton.language.range")),
    Asked("atomic max float", ("guides/reductions", "triton.language.atomic_max")),
    Asked("persistent matmul", ("guides/pipelining",)),
    Asked("masked reduction", ("guides/masks", "guides/reductions")),
    Asked(
        "how do I print a value from inside a kernel", ("guides/debugging", "triton.language.device_print")
    ),
    Asked("replacement for block pointers", ("guides/descriptors",)),
    Asked("tanh is missing from tl", ("guides/libdevice", "triton.language.extra.libdevice.tanh")),
    Asked("kernel recompiles for every new size", ("guides/constexpr", "guides/dynamic_shapes")),
    Asked("autotuning takes too long, fewer configs", ("guides/autotune", "triton.autotune")),
    Asked("softmax over rows that do not fit into one block", ("guides/stability", "guides/reductions")),
    Asked("numerically stable variance", ("guides/stability",)),
    Asked("backward pass in torch.autograd.Function", ("guides/autograd",)),
    Asked("register spills", ("guides/occupancy",)),
    Asked("2D grid of programs", ("guides/tiles", "triton.language.program_id")),
    Asked("coalesced memory access", ("guides/memory_access",)),
    Asked("reorder tiles for L2 cache reuse", ("guides/pipelining", "triton.language.swizzle2d")),
    Asked(
        "random dropout mask", ("triton.language.rand", "triton.language.philox", "triton.language.randint4x")
    ),
    Asked("float8e4nv cast rounding saturation", ("guides/stability",)),
    Asked("host time of a launch", ("guides/profiling",)),
    Asked("convert to bfloat16", ("triton.language.cast", "guides/fusion", "triton.language.bfloat16")),
)
"""Written together with the search."""

STRANGERS = (
    Asked(
        "out of resource: shared memory, Required",
        ("triton.OutOfResources", "guides/occupancy", "guides/pipelining", "guides/autotune"),
    ),
    Asked(
        "arange's range must be a power of 2",
        ("triton.language.arange", "guides/tiles", "triton.next_power_of_2"),
    ),
    Asked(
        "optimise kernel recompiling for every sequence length",
        ("guides/dynamic_shapes", "guides/autotune", "guides/constexpr", "triton.autotune"),
    ),
    Asked(
        "softmax overflow gives nan for fully masked row",
        ("guides/stability", "guides/masks", "triton.language.softmax"),
    ),
    Asked(
        "tma descriptor allocator not set",
        ("triton.set_allocator", "triton.language.make_tensor_descriptor", "guides/descriptors"),
    ),
    Asked("dot allow_tf32 input_precision ieee", ("triton.language.dot", "guides/stability")),
    Asked(
        "fast approximate hyperbolic tangent",
        (
            "triton.language.extra.libdevice.fast_tanhf",
            "triton.language.extra.libdevice.tanh",
            "guides/libdevice",
        ),
    ),
    Asked(
        "print values inside kernel interpreter mode", ("guides/debugging", "triton.language.device_print")
    ),
    Asked("L2 cache reuse grouped program ordering", ("triton.language.swizzle2d", "guides/memory_access")),
    Asked(
        "generalized prefix scan with custom combine",
        ("triton.language.associative_scan", "guides/reductions"),
    ),
)
"""Written by somebody who had not seen the search."""

QUESTIONS = OWN + STRANGERS
