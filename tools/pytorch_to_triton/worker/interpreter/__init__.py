"""Triton's interpreter, patched so that it computes what a GPU would.

`install()` replaces pieces of `triton.runtime.interpreter` in this process. What each file fixes:

    formats.py       bfloat16 and float8 values behind the bit patterns in which Triton keeps them
    arithmetic.py    operations and casts on those formats, NaN in minimum and maximum, TF32, bfloat16 atomics
    reductions.py    reduce and scan: rounding, NaN, and custom combine functions on whole blocks at once
    syntax.py        `and`, `or`, `not` on blocks, loop indices as tensors, conditions that a compiler refuses
    launching.py     a kernel's arguments, its programs in order, calls between kernels, numpy's warnings
    libdevice.py     libdevice functions
    promises.py      promises to the compiler, for the guard to check
    block_types.py   types and tensors made from what blocks of one shape share
    autotuning.py    @triton.autotune without timing, static assertions, and a driver without a device
    cuda_autocast.py torch.autocast("cuda") on tensors of the CPU

What else is here, and not installed by it:

    memory_guard.py  keeps loads and stores inside the tensors they may touch, and reports races
    bounds.py        the memory that one launch may touch
    races.py         programs, and threads of one program, that conflict over an element
    happens_before.py  who touched what, and which programs atomic operations order
    fake_cuda.py     code written for one CUDA GPU runs on CPU tensors
    cuda_answers.py  what torch.cuda answers there
"""

import torch

from . import (
    arithmetic,
    autotuning,
    block_types,
    cuda_autocast,
    formats,
    launching,
    libdevice,
    promises,
    reductions,
    syntax,
)


def install() -> None:
    """Patch Triton's interpreter in this process, once.

    `TRITON_INTERPRET=1` must have been set before triton was imported; kernels must not have run before. No
    tensor operation is run and no thread started, so the process may fork afterwards.
    """
    formats.install()
    block_types.install()
    arithmetic.install()
    reductions.install()
    launching.install()
    promises.install()
    syntax.install()
    libdevice.install()
    autotuning.install()
    cuda_autocast.install()
    # What poses as a GPU here convolves in float32, as the references on the CPU do.
    torch.backends.cudnn.allow_tf32 = False
