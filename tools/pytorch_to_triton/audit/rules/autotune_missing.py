"""A kernel with tl.dot is launched with fixed block sizes.

The best tile of a matrix product depends on the shapes and the GPU; between a fitting and an unfitting one
lies a factor of two to five.

Instead, put triton.autotune with a handful of tiles above it, or choose the tile by shape from a table.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

SEVERITY = "info"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i[:, None] * n + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))
"""
BAD = (
    _KERNEL
    + """
def run(a, b, out):
    kernel[(1,)](a, b, out, a.shape[0], B=64)
""",
    _KERNEL
    + """
def run(a, b, out):
    BLOCK = 32
    kernel[(1,)](a, b, out, a.shape[0], BLOCK, num_warps=4)
""",
)
GOOD = (
    '@triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])'
    + _KERNEL
    + """
def run(a, b, out):
    kernel[(1,)](a, b, out, a.shape[0])
""",
    _KERNEL
    + """
def run(a, b, out):
    block = 32 if a.shape[0] < 1024 else 128
    kernel[(1,)](a, b, out, a.shape[0], B=block)
""",
    _KERNEL.replace("tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at))", "tl.load(a_ptr + at)")
    + """
def run(a, b, out):
    kernel[(1,)](a, b, out, a.shape[0], B=64)
""",
    _KERNEL
    + """
def test_kernel(a, b, out):
    kernel[(1,)](a, b, out, a.shape[0], B=64)
""",
)
_LEAST = 16
"""Smaller numbers are modes and flags."""


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Kernels with tl.dot and no decorator but triton.jit, always launched with the same literal sizes."""
    if len(kernel.decorators) > 1 or not kernel.plain or not kernel.launches:
        return
    if not any(path == "triton.language.dot" for path, _ in kernel.calls()):
        return
    fixed = [_fixed(kernel, launch) for launch in kernel.launches]
    hot = [launch for launch in kernel.launches if launch.function and "test" not in launch.function.name]
    if hot and all(fixed) and all(one == fixed[0] for one in fixed):
        told = ", ".join(f"{name} = {size}" for name, size in fixed[0].items())
        yield Fault(
            hot[0].call,
            f"{kernel.node.name} multiplies matrices with {told} for every shape and GPU.",
            "Put triton.autotune with a handful of tiles above the kernel.",
        )


def _fixed(kernel: SourceKernel, launch: LaunchSite) -> dict[str, int]:
    """The block sizes; empty where one is not a literal."""
    given = launch.given(kernel)
    sizes = {
        name: literal_integer(launch.flow.resolved(given[name]))
        for name in kernel.parameters
        if name in kernel.constexprs & given.keys()
    }
    blocks = {name: size for name, size in sizes.items() if size is None or size >= _LEAST}
    return {} if None in blocks.values() else {name: size for name, size in blocks.items() if size}
