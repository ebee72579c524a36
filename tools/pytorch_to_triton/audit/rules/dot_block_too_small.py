"""tl.dot multiplies blocks whose inner size is below 16.

NVIDIA's tensor cores take at least 16 elements along the inner axis (32 of one byte each), and Triton
refuses less when the kernel is compiled for them.

Instead, use an inner block of 16 or more and mask what lies beyond the end with `other=0.0`, or multiply
with `tl.sum(a[:, :, None] * b[None, :, :], axis=1)`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import setting
from pytorch_to_triton.audit.analysis.movement import dims
from pytorch_to_triton.audit.call_arguments import argument, literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_BODY = """
    m = tl.arange(0, M)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * M + m[None, :])
    tl.store(out_ptr + m[:, None] * M + m[None, :], tl.dot(a, b))
"""
_KERNEL = f"""
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
{_BODY}
"""
BAD = (
    f"""
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr):
    K: tl.constexpr = 8
    a_ptr += tl.program_id(0) * M * K
{_BODY}
""",
    f"""
{_KERNEL}
def run(a, b, out):
    kernel[(1,)](a, b, out, M=32, K=8)
""",
    f"""
@triton.autotune([triton.Config({{"M": 32, "K": 8}}), triton.Config({{"M": 32, "K": 16}})], key=["M"])
{_KERNEL}
""",
    """
@triton.jit
def kernel(out_ptr, x_ptr):
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    acc = tl.dot(tl.zeros((16, 4), tl.float16), tl.zeros((4, 16), tl.float16), acc)
    tl.store(out_ptr + i[:, None] * 16 + i[None, :], acc)
""",
)
GOOD = (
    f"""
{_KERNEL}
def run(a, b, out):
    kernel[(1,)](a, b, out, M=8, K=16)
""",
    f"""
{_KERNEL}
def run(a, b, out, K):
    kernel[(1,)](a, b, out, 16, max(16, K))
""",
    _KERNEL,
    """
@triton.jit
def kernel(a_ptr, out_ptr, K: tl.constexpr):
    k = tl.arange(0, K)
    a = tl.load(a_ptr + k[:, None] * K + k[None, :])
    tl.store(out_ptr + k, tl.sum(a, axis=1))

def run(a, out):
    kernel[(1,)](a, out, K=8)
""",
)
_LEAST = 16


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Products whose inner size is a literal, or a constexpr that is given one."""
    for path, call in kernel.calls():
        if path != "triton.language.dot":
            continue
        for inner in _inner_sizes(kernel, call):
            small = [size for size in _values(kernel, inner) if size < _LEAST]
            if small:
                name = ast.unparse(inner)
                size = f"{name} = {small[0]}" if name != str(small[0]) else name
                yield Fault(
                    call,
                    f"The inner size of this tl.dot is {size}; on NVIDIA GPUs Triton compiles none below 16.",
                    "Use an inner block of at least 16, and mask what lies beyond the end with other=0.0.",
                )
                break


def _inner_sizes(kernel: SourceKernel, call: ast.Call) -> Iterator[ast.expr]:
    for operand, name, axis in ((0, "input", -1), (1, "other", -2)):
        block = argument(call, operand, name)
        sizes = dims(block, kernel) if block else None
        if sizes and len(sizes) > 1 and (size := sizes[axis]) is not None:
            yield size


def _values(kernel: SourceKernel, size: ast.expr) -> Iterator[int]:
    """What a size may be: a literal, or those that launches and configurations give it."""
    given = kernel.flow.resolved(size)
    if (literal := literal_integer(given)) is not None:
        yield literal
    if not isinstance(size, ast.Name) or size.id not in kernel.constexprs:
        return
    for launch in kernel.launches:
        passed = launch.given(kernel).get(size.id)
        literal = literal_integer(passed)
        if literal is not None:
            yield literal
    configs = setting(kernel, "configs")
    for config in configs.elts if isinstance(configs, ast.List | ast.Tuple) else []:
        match config:
            case ast.Call(args=[ast.Dict(keys=keys, values=values), *_]):
                chosen = {ast.unparse(key): value for key, value in zip(keys, values, strict=True) if key}
                literal = literal_integer(chosen.get(repr(size.id)))
                if literal is not None:
                    yield literal
