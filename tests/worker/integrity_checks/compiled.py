"""Compiling for a GPU, which starts Triton's assembler; Triton is not interpreted in this process."""

import triton
from author import Author

from pytorch_to_triton.worker.integrity.kernel_source import uses_atomics
from pytorch_to_triton.worker.integrity.operators import Launches, Operators
from pytorch_to_triton.worker.integrity.settings import Patches

SOURCE = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def add(x_ptr, value):
    tl.atomic_add(x_ptr, value)

@triton.jit
def counting_kernel(x_ptr):
    add(x_ptr, 1)

def act():
    source = ASTSource(counting_kernel, {"x_ptr": "*i32"})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))
"""


def compiling_is_no_violation() -> None:
    with triton.knobs.cache.scope(), triton.knobs.compilation.scope():
        triton.knobs.compilation.always_compile = True
        author, operators, patches = Author(SOURCE), Operators(), Patches()
        triton.knobs.cache.dir = str(author.folder / "cache")
        with author.sandbox.watching(), operators, Launches(operators) as launches:
            assert author.load().act().asm["cubin"]
        assert author.sandbox.violations == []
        assert launches.launched == []
        assert patches.changed() == ()


def atomics_are_found_in_compiled_kernels() -> None:
    module = Author(SOURCE).load()
    assert uses_atomics(module.counting_kernel.fn)
