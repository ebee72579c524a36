"""What the source of a kernel contains."""

import triton
import triton.language as tl
from triton.language import atomic_add

from pytorch_to_triton.worker.integrity.kernel_source import uses_atomics


@triton.jit
def by_name(out_ptr):  # type: ignore[no-untyped-def]
    atomic_add(out_ptr, 1.0)


@triton.jit
def without(out_ptr):  # type: ignore[no-untyped-def]
    tl.store(out_ptr, 1.0)


def test_an_atomic_operation_that_is_imported_by_name_is_seen() -> None:
    assert uses_atomics(by_name.fn)
    assert not uses_atomics(without.fn)
