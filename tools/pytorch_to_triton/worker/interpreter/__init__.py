"""Triton's interpreter, patched so that it computes what a GPU would.

`install()` replaces pieces of `triton.runtime.interpreter` in this process. The memory guard and the fake GPU
are for a while only, and not among them.
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
