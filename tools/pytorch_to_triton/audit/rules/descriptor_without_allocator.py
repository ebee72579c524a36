"""The first descriptor that a kernel makes, where the file launches kernels and names no allocator."""

import ast
import itertools
from collections.abc import Iterator

from pytorch_to_triton.audit.examples import jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import file_rule
from pytorch_to_triton.audit.source import SourceFile

_DESCRIPTORS = frozenset(
    f"triton.language.{name}" for name in ("make_tensor_descriptor", "_experimental_make_tensor_descriptor")
)
_MADE = jit(
    "x = tl.make_tensor_descriptor(x_ptr, shape=[n, n], strides=[n, 1], block_shape=[B, B])",
    "x.store([tl.program_id(0) * B, 0], tl.zeros((B, B), tl.float32))",
) + run("kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], B=64)")


@file_rule(
    "low",
    "correctness",
    bad=(_MADE,),
    good=("from project.memory import install_allocator\n" + _MADE,),
)
def descriptor_without_allocator(file: SourceFile) -> Iterator[Fault]:
    """A kernel makes tensor descriptors, and the file sets no allocator.

    tl.make_tensor_descriptor keeps each descriptor in global memory that Triton asks an allocator for, and
    it has none by itself: the launch raises "Kernel requires a runtime memory allocation, but no allocator
    was set" unless other code has set one.

    Fix: call triton.set_allocator before the launch, or make the descriptors outside of the kernel with
    triton.tools.tensor_descriptor.TensorDescriptor.
    """
    if not file.launches or "allocator" in "\n".join(_names(file)).lower():
        return
    made = (call for kernel in file.kernels for path, call in kernel.calls() if path in _DESCRIPTORS)
    for call in itertools.islice(made, 1):
        yield Fault(
            call,
            "The descriptor needs global memory from an allocator, and this file sets none: the launch "
            "fails unless other code has called triton.set_allocator.",
            "Call triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, "
            'device="cuda")) before the launch.',
        )


def _names(file: SourceFile) -> Iterator[str]:
    """All names that the file uses or imports, attributes included."""
    for node in ast.walk(file.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
