"""Each tl.dot that leaves its precision open and certainly is of float32."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.pointer_dtypes import dtypes_of, loaded_from
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, B: tl.constexpr):
    i = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    a = tl.load(a_ptr + i)
    b = tl.load(b_ptr + i)
    {steps}
    tl.store(c_ptr + i, c)
"""
BAD = (
    _KERNEL.format(steps="c = tl.dot(a.to(tl.float32), b.to(tl.float32))"),
    _KERNEL.format(steps="p = tl.exp(a.to(tl.float32))\n    c = tl.dot(p, b)"),
)
GOOD = (_KERNEL.format(steps='c = tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")'),)
_FILE = """
INPUTS = {"x": "%s[M, M]"}
DIMS = {"M": [32]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.dot(x, x%s))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=32)
    return out
"""
BAD_COMPILED = (_FILE % ("float32", ""), _FILE % ("float32", ', input_precision="tf32"'))
GOOD_COMPILED = (_FILE % ("float32", ', input_precision="tf32x3"'), _FILE % ("float16", ""))
_SETTINGS = frozenset({"input_precision", "allow_tf32", None})


_COMPILED = remark_check(
    "tf32_product",
    "{kernel} rounds the float32 operands of tl.dot to TF32: errors of about 1e-3.",
    'Pass input_precision="ieee", or "tf32x3" where speed matters.',
    BAD_COMPILED,
    GOOD_COMPILED,
)


@kernel_rule("low", "numerical stability", BAD, GOOD, also=_COMPILED)
def tf32_product(kernel: SourceKernel) -> Iterator[Fault]:
    """A tl.dot of float32 operands rounds them to TF32.

    That is Triton's default on NVIDIA GPUs from Ampere on: of each operand 11 bits count, as in float16.
    PyTorch multiplies in full float32 unless torch.backends.cuda.matmul.allow_tf32 is set; results differ
    by about 1e-3.

    Fix: pass input_precision="ieee", or "tf32x3" and "bf16x6", which are about as precise and faster; pass
    "tf32" where speed matters more.
    """
    found = values(kernel)
    for call in found.operations:
        if call.name != "dot" or len(call.operands) > 3:
            continue
        if any(keyword.arg in _SETTINGS for keyword in call.call.keywords):
            continue
        given = [one for one in call.operands[:2] if _is_given_float32(one, found)]
        exact = given or [one for one in call.operands[:2] if found.dtype(one) == "float32"]
        if exact:
            yield Fault(
                call.call,
                f"{ast.unparse(exact[0])} is float32, and this tl.dot rounds it to TF32, 11 bits.",
                'Pass input_precision: "ieee" or "tf32x3" for float32 results, "tf32" for speed.',
                severity="medium" if given else None,
            )


def _is_given_float32(value: ast.expr, found: KernelValues) -> bool:
    """Whether it is loaded from a tensor that is float32, or loaded and cast to that."""
    pointer = loaded_from(value, found)
    if pointer is not None:
        return dtypes_of(pointer, found.kernel) == {"float32"}
    return found.dtype(value) == "float32" and found.is_a(_untransposed(value, found), "load")


def _untransposed(value: ast.expr, found: KernelValues) -> ast.expr:
    return found.bare(found.operand(value, "trans") or value)
