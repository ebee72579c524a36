"""A report with all severities and kinds of evidence, a baseline, a suspicion, and hostile source text."""

from pathlib import Path
from typing import Any

from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.finding import (
    SEVERITIES,
    AuditReport,
    Category,
    CategoryStatus,
    CompiledFigures,
    Examination,
    Finding,
    Recommendation,
    Severity,
    Suppressed,
    Unread,
)
from pytorch_to_triton.schema.timing import Ceilings, Roofline, Timing, TimingTable

ROOT = Path("/repository")
SOFTMAX = ROOT / "kernels" / "softmax.py"
SUMS = ROOT / "kernels" / "row sums.py"
HOSTILE = "</script></pre><img src=x onerror=alert(1)> | ``` **bold** `tick` &lt; \u202e"
"""Text in a file that may break a report."""

SOURCE = f"""import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({{"BLOCK": 1024}}), triton.Config({{"BLOCK": 2048}})], key=["n"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, 1000)
    x = tl.load(x_ptr + row * n + columns)  # {HOSTILE}
    shifted = x - tl.max(x, axis=0)
    numerator = tl.exp(shifted)
    tl.store(out_ptr + row * n + columns, numerator / tl.sum(numerator, axis=0), mask=columns < n)


{"".join(f"LIMIT_{number} = {number}" + chr(10) for number in range(30))}

def run(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
    torch.cuda.synchronize()
    return out
"""


def line_of(text: str) -> int:
    """Where a text first stands in the source."""
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def excerpt_at(line: int) -> str:
    return SOURCE.splitlines()[line - 1].strip()


def finding(rule: str, severity: Severity, category: Category, text: str, **more: Any) -> Finding:
    """A finding in softmax.py where a text first stands."""
    line = line_of(text)
    page = "references/auditing_rules.md#rule"
    place = {"file": SOFTMAX, "line": line, "column": 5, "excerpt": excerpt_at(line), "page": page}
    fingerprint = f"{SEVERITIES.index(severity)}123456789abcdef"
    usual = {"rule": rule, "severity": severity, "category": category, "evidence": "source", **place}
    return Finding(**{**usual, "fingerprint": fingerprint, **more})


FINDINGS = (
    finding(
        "block_not_power_of_two",
        "critical",
        "correctness",
        "tl.arange(0, 1000)",
        kernel="softmax_kernel",
        message="The length of tl.arange must be a power of two; 1000 is not.",
        suggestion="Use 1024 and mask what lies beyond the end.",
        fix="columns = tl.arange(0, 1024)",
    ),
    finding(
        "access_without_mask",
        "high",
        "correctness",
        "tl.load",
        evidence="measured",
        kernel="softmax_kernel",
        message=f"softmax_kernel[grid](x, n) reads <b>{HOSTILE}</b> beyond x_ptr, says @triton.jit {{0}}.",
        proof=f"x_ptr: element 1000 of 1000 in case M=7 N=1000\n{HOSTILE}",
        suggestion="Mask the load: `tl.load(..., mask=columns < n, other=float('-inf'))`.",
    ),
    finding(
        "host_sync_in_run",
        "medium",
        "performance",
        "torch.cuda.synchronize()",
        kernel="run",
        message="torch.cuda.synchronize() in run stops the CPU until the GPU has done all queued work.",
        suggestion="Wait where results are used.",
        known=True,
    ),
    finding(
        "autotune_without_reset",
        "low",
        "performance",
        "@triton.autotune",
        suspected=True,
        message="Whether out_ptr is written more than once is not certain.",
        suggestion="Name what has to be restored.",
    ),
    finding(
        "deprecated_api",
        "info",
        "best practices",
        "import torch",
        evidence="compiled",
        file=SUMS,
        line=3,
        column=1,
        excerpt="tl.libdevice.exp(x)",
        message="Loads of x are 32 bits wide.",
        proof="ld.global.b32 in sm_90",
        suggestion="Say that n is a multiple of 16.",
        page="https://example.org/rules#deprecated_api",
    ),
)

TIMING = Benchmark(
    summary="softmax.py takes 0.0367 ms where eager takes 0.1096 ms.",
    next_step="Use it.",
    verdict="faster",
    kernel="softmax.py",
    device="NVIDIA H200, driver 580.159, torch 2.11.0, Triton 3.6.0, 2026-11-21",
    passes="forward",
    precision="float32 products in float32 (TF32 off)",
    provenance="measured with device events",
    tables=(
        TimingTable(
            device="NVIDIA H200",
            dims={"M": 8192, "N": 4096},
            dtypes={"x": "bfloat16"},
            bytes_moved=134_217_728,
            timings=(
                Timing(label="kernel", median_ms=0.0367, low_ms=0.0363, high_ms=0.0371, calls=400),
                Timing(label="eager", median_ms=0.1096, low_ms=0.109, high_ms=0.11, calls=400),
            ),
            failed={},
            limit=Roofline(ms=0.0313, binds="memory", bytes_ms=0.0313, flops_ms=0.003, provenance="measured"),
        ),
    ),
    flags=(),
    ceilings=Ceilings(
        device="NVIDIA H200",
        provenance="measured",
        source="driver 580.159, 2026-11-21",
        copy_gbytes_per_s=4283,
        matmul_tflops={"bfloat16": 712.0},
    ),
    conditions=None,
    pictures=(ROOT / "timings" / "speedup.png",),
    replay="pytorch-to-triton benchmark softmax.py --seed 7",
)

SAMPLE = AuditReport(
    summary="5 findings (1 critical, 1 high, 1 medium, 1 low, 1 info) in 2 Triton functions in 2 files.",
    next_step="Fix softmax.py:10 first: use 1024 and mask what lies beyond the end.",
    verdict="faulty",
    date="2026-11-21T22:30:00Z",
    categories=(
        CategoryStatus(category="correctness", status="faulty", counts={"critical": 1, "high": 1}),
        CategoryStatus(category="performance", status="worth a look", counts={"medium": 1, "low": 1}),
        CategoryStatus(category="memory access", status="clean", counts={}),
        CategoryStatus(category="numerical stability", status="clean", counts={}),
        CategoryStatus(category="best practices", status="worth a look", counts={"info": 1}),
    ),
    findings=FINDINGS,
    recommendations=(
        Recommendation(
            rule="block_not_power_of_two",
            severity="critical",
            title="A block has a size that is no power of two.",
            suggestion="Use 1024 and mask what lies beyond the end.",
            places=("softmax.py:10",),
        ),
        Recommendation(
            rule="host_sync_in_run",
            severity="medium",
            title="A function that launches a kernel makes the CPU wait for the GPU.",
            suggestion="Wait where results are used.",
            places=("softmax.py:52",),
        ),
    ),
    files=(SOFTMAX, SUMS),
    kernels=2,
    unread=(
        Unread(file=ROOT / "kernels" / "old.py", why="old.py is not Python 3: line 2 says print x | y."),
    ),
    suppressed=(
        Suppressed(
            finding=FINDINGS[2].model_copy(update={"rule": "deprecated_api", "known": False}),
            reason="needed | until 3.8",
        ),
    ),
    examined=(
        Examination(
            target="softmax.py",
            kind="measured",
            summary="18 of 20 cases passed.",
            provenance="under Triton's interpreter",
            replay="pytorch-to-triton validate softmax.py --seed 7",
        ),
        Examination(target="row sums.py", kind="compiled", summary="It declares no inputs.", provenance=""),
        Examination(target="softmax.py", kind="compiled", summary="Compiled.", provenance="for sm_90"),
    ),
    compiled=(
        CompiledFigures(
            kernel="softmax_kernel",
            where="sm_90, BLOCK=1024 num_warps=4",
            registers=40,
            spill_bytes=0,
            shared_bytes=16,
            occupancy=0.75,
            widest_load_bits=128,
            widest_store_bits=None,
        ),
    ),
    timings=(TIMING,),
    commands=(
        "pytorch-to-triton audit kernels",
        "pytorch-to-triton benchmark softmax.py --seed 7",
        "pytorch-to-triton validate softmax.py --seed 7",
    ),
    fail_on="medium",
    notes=("A note with a | in it.",),
)
