"""Run by test_compilation.py: kernels compiled as JSON on the command line says, each time in a process."""

import json
import os
import sys
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from pytorch_to_triton.worker.compilation import assemblers, compile_otherwise
from pytorch_to_triton.worker.runtime import warm_up_triton
from pytorch_to_triton.worker.wire.validation import Compilation


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=3):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


@triton.jit
def scattered_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    same = i // 784 * 784 + i // 28 % 28 * 28 + i % 28
    tl.store(out_ptr + same, i, mask=i < 7840)


POINTERS = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
TARGET = GPUTarget("cuda", 90, 32)


def compiled(how: dict[str, Any] | None, launch: dict[str, int]) -> dict[str, Any]:
    """What becomes of both kernels."""
    found = [dict(assembler) for assembler in assemblers()]
    if how is not None:
        compile_otherwise(Compilation(**how))
    options = make_backend(TARGET).parse_options(launch).__dict__
    if how == {"other_warps": True}:
        return {"num_warps": options["num_warps"]}
    summed = triton.compile(ASTSource(sum_kernel, POINTERS, {"BLOCK": 128}), TARGET, options)
    signature = {"out_ptr": "*i32", "BLOCK": "constexpr"}
    aligned = {(0,): [["tt.divisibility", 16]]}
    scattered = triton.compile(
        ASTSource(scattered_kernel, signature, {"BLOCK": 8192}, aligned), TARGET, options
    )
    return {
        "num_stages": summed.metadata.num_stages,
        "num_warps": summed.metadata.num_warps,
        "loop_stages": "tt.num_stages" in summed.asm["ttir"],
        "packed_additions": [line for line in scattered.asm["sass"].splitlines() if "VIADD.16x2" in line],
        "assemblers": found,
    }


warm_up_triton()
for case in json.loads(sys.argv[1]):
    if (child := os.fork()) == 0:
        print(json.dumps(compiled(*case)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
