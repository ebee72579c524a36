"""A call of triton.language has a keyword that the function does not take.

The names are PyTorch's or NumPy's. The compiler refuses them; where the call was meant to mask, nothing else
does it.

Instead, use Triton's own: axis, keep_dims, other.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Kernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, n):
    i = tl.arange(0, 16)
    s = tl.sum(tl.load(x_ptr + i), mask=i < n)
""",
    """
@triton.jit
def kernel(x_ptr):
    m = tl.max(tl.load(x_ptr + tl.arange(0, 16)), dim=0)
""",
    """
@triton.jit
def kernel(x_ptr):
    m = tl.min(tl.zeros((2, 4), tl.float32), axis=1, keepdim=True)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    x = tl.load(x_ptr, mask=n > 0, padding=0.0)
""",
    """
@triton.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, 1.0, mask=n > 0, other=0.0)
""",
    """
@triton.jit
def kernel(x_ptr):
    x = tl.zeros((16,), dtype=tl.float32, device='cuda')
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0, eviction_policy='evict_first')
    tl.store(x_ptr, tl.sum(x, axis=0, keep_dims=False), mask=n > 0)
""",
    """
@triton.jit
def kernel(x_ptr):
    x = tl.sort(tl.load(x_ptr + tl.arange(0, 16)), dim=0, descending=True)
""",
    """
def run(x):
    return x.sum(dim=0, keepdim=True)
""",
)

_REDUCTION = {
    "mask": "First fill the masked lanes with what it ignores: tl.where(mask, x, 0.0) for a sum.",
    "dim": "The keyword is `axis`.",
    "keepdim": "The keyword is `keep_dims`.",
    "keepdims": "The keyword is `keep_dims`.",
}
_SCAN = {name: _REDUCTION[name] for name in ("mask", "dim")}
_OTHER = "The keyword is `other`."
_NEW_BLOCK = {"device": "Leave it out: blocks live in registers.", "size": "The keyword is `shape`."}
_KEYWORDS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("sum", "max", "min", "argmax", "argmin", "xor_sum"), _REDUCTION),
    **dict.fromkeys(("cumsum", "cumprod"), _SCAN),
    "load": dict.fromkeys(("padding", "padding_value", "default", "fill", "fill_value", "pad"), _OTHER),
    "store": {
        "other": "Leave it out: masked lanes are not stored.",
        "val": "The keyword is `value`.",
    },
    "arange": {
        "step": "Multiply: tl.arange(0, N) * step.",
        "dtype": "Cast it: tl.arange(0, N).to(tl.int64).",
        "device": _NEW_BLOCK["device"],
    },
    "zeros": _NEW_BLOCK,
    "full": _NEW_BLOCK | {"fill_value": "The keyword is `value`."},
    "dot": {
        "trans_a": "Transpose the operand: tl.dot(tl.trans(a), b).",
        "trans_b": "Transpose the operand: tl.dot(a, tl.trans(b)).",
        "accumulator": "The keyword is `acc`.",
        "precision": "The keyword is `input_precision`.",
    },
    "atomic_add": {"value": "The keyword is `val`.", "other": "Leave it out: masked lanes are not added."},
    "program_id": {"dim": "The keyword is `axis`."},
    "num_programs": {"dim": "The keyword is `axis`."},
}


def check(kernel: Kernel) -> Iterator[Fault]:
    """Keywords that no Triton since 3.6 takes."""
    for path, call in kernel.calls():
        owner, _, function = path.rpartition(".")
        if owner != "triton.language":
            continue
        unknown = _KEYWORDS.get(function, {})
        for keyword in call.keywords:
            if keyword.arg in unknown:
                message = f"tl.{function} takes no keyword `{keyword.arg}`."
                yield Fault(keyword.value, message, unknown[keyword.arg])
