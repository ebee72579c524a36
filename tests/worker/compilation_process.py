"""Run by test_compilation.py in a process of its own: a kernel compiled as JSON on the command line says."""

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from pytorch_to_triton.worker.assemblers import assemblers
from pytorch_to_triton.worker.compilation import compile_otherwise
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


found = [dict(one) for one in assemblers()]
if (how := json.loads(sys.argv[1])) is not None:
    compile_otherwise(Compilation(**how))
target = GPUTarget("cuda", 90, 32)
launched = json.loads(sys.argv[2])
options = make_backend(target).parse_options(launched)
pointers = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
summed = triton.compile(ASTSource(sum_kernel, pointers, {"BLOCK": 128}), target, options.__dict__)
signature = {"out_ptr": "*i32", "BLOCK": "constexpr"}
aligned = {(0,): [["tt.divisibility", 16]]}
source = ASTSource(scattered_kernel, signature, {"BLOCK": 8192}, aligned)
scattered = triton.compile(source, target, options.__dict__)
print(
    json.dumps(
        {
            "num_stages": summed.metadata.num_stages,
            "num_warps": summed.metadata.num_warps,
            "loop_stages": "tt.num_stages" in summed.asm["ttir"],
            "packed_additions": [line for line in scattered.asm["sass"].splitlines() if "VIADD.16x2" in line],
            "assemblers": found,
        }
    )
)
