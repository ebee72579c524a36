"""The wrapper asks the GPU, and a compiled kernel, for their resources, as Triton's tutorials do."""

import torch
import triton
import triton.language as tl
from triton.runtime import driver

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4096]}
PROPERTIES = driver.active.utils.get_device_properties(torch.cuda.current_device())


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK, num_stages=3):
        i = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


def run(x):
    assert x.is_cuda
    out = torch.empty_like(x, device="cuda")
    compiled = scale_kernel.warmup(x, out, x.numel(), 2.0, BLOCK=1024, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0
    major, _ = torch.cuda.get_device_capability()
    programs = PROPERTIES["multiprocessor_count"] if major >= 9 else 1
    scale_kernel[(programs,)](x, out, x.numel(), 3.0, BLOCK=1024)
    return out
