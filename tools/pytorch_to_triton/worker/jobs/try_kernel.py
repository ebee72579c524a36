"""Job `try_kernel`: compile the smallest of kernels for a GPU, or run it, to see whether that works."""

import os
import time
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from .. import wire
from ..job_report import JobReport
from ..runtime import interpreting

ELEMENTS = 40
"""More than one block, and not a whole number of blocks."""
BLOCK = 32


@triton.jit  # type: ignore[untyped-decorator]
def add_one_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + 1, mask=mask)


def work(report: JobReport, target: wire.Json | None) -> dict[str, Any]:
    """`seconds` and `seen`. `target` None: run it here; else compile it for that GPU, which need not be here.

    Nothing comes out of Triton's cache, so that all its parts are tried: the assembler, the C compiler.
    Raises what they raise, and RuntimeError for a wrong result.
    """
    os.environ["TRITON_CACHE_DIR"] = str(report.folder / "triton_cache")
    began = time.perf_counter()
    report.during("compile" if target else "run")
    place = compile_for_target(target) if target else run_here()
    return {"seconds": time.perf_counter() - began, "seen": place}


def compile_for_target(target: wire.Json) -> str:
    """What the compiler made of it."""
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n_elements": "i32", "BLOCK": "constexpr"}
    source = ASTSource(add_one_kernel, signature, constexprs={(3,): BLOCK})
    gpu = GPUTarget(target["backend"], target["arch"], target["warp_size"])
    compiled = triton.compile(source, target=gpu)
    binary = compiled.asm["cubin" if target["backend"] == "cuda" else "hsaco"]
    return f"{len(binary)} bytes of machine code"


def run_here() -> str:
    """Where it ran. Raises RuntimeError where its result is wrong."""
    device = "cpu" if interpreting() else "cuda"
    x = torch.arange(ELEMENTS, dtype=torch.float32, device=device)
    out = torch.zeros_like(x)
    add_one_kernel[(triton.cdiv(ELEMENTS, BLOCK),)](x, out, ELEMENTS, BLOCK=BLOCK)
    if out.tolist() != [i + 1 for i in range(ELEMENTS)]:
        raise RuntimeError(f"1 was added to 0, 1, 2, ... {ELEMENTS - 1}, and the result is {out.tolist()}")
    return "under the interpreter" if interpreting() else f"on {torch.cuda.get_device_name()}"
