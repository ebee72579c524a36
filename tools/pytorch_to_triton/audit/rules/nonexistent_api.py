"""A kernel uses a name that triton.language does not have.

Such names come from PyTorch, CUDA or long gone releases; the compiler stops at them.

Instead, use the name that each finding gives. Functions of one number that tl lacks are mostly in libdevice:
`from triton.language.extra import libdevice`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Kernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.relu(tl.load(x_ptr)))
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.math.tanh(tl.load(x_ptr)))
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.libdevice.exp(tl.load(x_ptr)))
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.debug_print('x', tl.load(x_ptr))
""",
    """
@triton.jit
def kernel(x_ptr):
    tl.async_copy(x_ptr, x_ptr)
    tl.syncthreads()
""",
    """
@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr, other=-tl.inf)
""",
)
GOOD = (
    """
from triton.language.extra import libdevice

@triton.jit
def kernel(x_ptr):
    x = tl.math.exp(libdevice.tanh(tl.load(x_ptr)))
    tl.device_print('x', x)
    tl.debug_barrier()
""",
    """
def run(x):
    return getattr(tl.math, 'tanh', None) or tl.math.tanh
""",
    """
@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, relu(tl.load(x_ptr)))
""",
)

_LIBDEVICE = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "erfc", "erfinv", "exp10",
    "expm1", "fmod", "hypot", "isinf", "isnan", "lgamma", "log10", "log1p", "pow", "round", "sinh", "tan",
    "tanh", "tgamma", "trunc",
)  # fmt: skip
_OWN = {
    "async_copy": "Write plain tl.load in a tl.range loop: num_stages makes its copies asynchronous.",
    "warp_specialize": "Write `for ... in tl.range(..., warp_specialize=True)`.",
    "debug_print": "Use tl.device_print, or tl.static_print for constants.",
    "print": "Use tl.device_print, or tl.static_print for constants.",
    "syncthreads": "Leave it out: Triton places barriers itself. Where one is needed, use tl.debug_barrier.",
    "barrier": "Leave it out: Triton places barriers itself. Where one is needed, use tl.debug_barrier.",
    "thread_id": "Programs work on blocks: use tl.program_id and tl.arange.",
    "block_id": "Use tl.program_id.",
    "shared_memory": "Leave it out: the compiler places blocks in shared memory.",
    "next_power_of_2": "Use triton.next_power_of_2 where the kernel is launched, and pass a tl.constexpr.",
    "relu": "Use tl.maximum(x, 0.0).",
    "gelu": "Use 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)).",
    "silu": "Use x * tl.sigmoid(x).",
    "leaky_relu": "Use tl.where(x > 0, x, slope * x).",
    "log_softmax": "Subtract tl.max first, then tl.log of the tl.sum of tl.exp.",
    "logsumexp": "Subtract tl.max first; add it again to tl.log of the tl.sum of tl.exp.",
    "mean": "Divide tl.sum by the count.",
    "var": "Use the mean of the squared deviations from the mean.",
    "std": "Use tl.sqrt of the mean of the squared deviations from the mean.",
    "prod": "Use tl.reduce with a @triton.jit function that multiplies.",
    "any": "Use tl.max of the mask as tl.int32.",
    "all": "Use tl.min of the mask as tl.int32.",
    "amax": "Use tl.max.",
    "amin": "Use tl.min.",
    "square": "Use x * x.",
    "sign": "Use tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0)).",
    "reciprocal": "Use 1.0 / x.",
    "clip": "Use tl.clamp.",
    "select": "Use tl.where.",
    "logical_and": "Use `&`.",
    "logical_or": "Use `|`.",
    "logical_not": "Use `~` on a mask.",
    "ones": "Use tl.full(shape, 1.0, dtype).",
    "empty": "Use tl.zeros.",
    "full_like": "Use tl.full(x.shape, value, x.dtype).",
    "ones_like": "Use tl.full(x.shape, 1.0, x.dtype).",
    "matmul": "Use tl.dot.",
    "transpose": "Use tl.trans, or tl.permute.",
    "concat": "Use tl.cat or tl.join.",
    "concatenate": "Use tl.cat or tl.join.",
    "stack": "Use tl.join.",
    "inf": 'Use float("inf").',
    "nan": 'Use float("nan").',
    "half": "Use tl.float16.",
    "bool": "Use tl.int1.",
    "libdevice": "Use `from triton.language.extra import libdevice`.",
}
_NAMES: dict[str, str] = {
    **{
        f"triton.language.{module}{name}": f"Use libdevice.{name} of triton.language.extra."
        for module in ("", "math.")
        for name in _LIBDEVICE
    },
    **{f"triton.language.{name}": instead for name, instead in _OWN.items()},
    "triton.language.math.sigmoid": "Use tl.sigmoid.",
    "triton.language.math.maximum": "Use tl.maximum.",
    "triton.language.math.minimum": "Use tl.minimum.",
    "triton.language.math.max": "Use tl.maximum of two values, or tl.max along an axis.",
    "triton.language.math.min": "Use tl.minimum of two values, or tl.min along an axis.",
}


def check(kernel: Kernel) -> Iterator[Fault]:
    """Names that no Triton since 3.6 has."""
    for node in kernel.nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            path = kernel.scope.path(node) or ""
            if path in _NAMES:
                shown = path.replace("triton.language", "tl", 1)
                yield Fault(node, f"There is no {shown} in Triton.", _NAMES[path])
