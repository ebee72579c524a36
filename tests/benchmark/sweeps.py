"""Benchmarks as a run on an NVIDIA H200 gives them: the medians were measured there, the rest is made up."""

from collections.abc import Mapping, Sequence

from pytorch_to_triton.benchmark.flags import add_flags
from pytorch_to_triton.benchmark.roofline import limit_of, precision_of
from pytorch_to_triton.benchmark.verdict import next_step_of, summary_of, verdict_of
from pytorch_to_triton.schema.benchmark import Benchmark, Conditions, TunedConfig
from pytorch_to_triton.schema.timing import Ceilings, MinimalWork, RedFlag, Timing, TimingTable

H200 = Ceilings(
    device="NVIDIA H200",
    provenance="measured",
    source="driver 580.159, 2026-11-21",
    copy_gbytes_per_s=4283,
    matmul_tflops={"bfloat16": 712.0, "tf32": 370.0, "float32": 51.6},
)


def timing(label: str, milliseconds: float, *, within: float = 0.01, spread: float = 0.02) -> Timing:
    """A median whose interval reaches so far, as a share of it, to either side."""
    return Timing(
        label=label,
        median_ms=milliseconds,
        low_ms=milliseconds * (1 - within),
        high_ms=milliseconds * (1 + within),
        calls=400,
        spread=spread,
        wall_ms=milliseconds + 0.02,
    )


def table(dims: Mapping[str, int], work: MinimalWork, timings: Sequence[Timing]) -> TimingTable:
    """One size on the H200, with rates and shares."""
    limit = limit_of(work, H200, tf32=False)
    assert limit is not None
    total = sum(work.flops.values())
    rated = [
        t.model_copy(
            update={
                "gbytes_per_s": work.bytes_moved / t.median_ms / 1e6,
                "tflops": total / t.median_ms / 1e9,
                "share_of_limit": limit.ms / t.median_ms,
            }
        )
        for t in timings
    ]
    return TimingTable(
        device=H200.device,
        dims=dict(dims),
        dtypes={"x": "bfloat16"},
        bytes_moved=work.bytes_moved,
        timings=tuple(rated),
        failed={},
        work=work,
        limit=limit,
    )


def softmax(rows: int, columns: int, **milliseconds: float) -> TimingTable:
    """Softmax of a bfloat16 matrix; `max_autotune` stands for its label."""
    count = 5 * rows * columns
    work = MinimalWork(
        bytes_moved=4 * rows * columns,
        flops={"float32": count},
        vector_flops=count,
        provenance="counted in the traced graph",
    )
    return table({"M": rows, "N": columns}, work, timings_of(milliseconds))


def matmul(m: int, n: int, k: int, **milliseconds: float) -> TimingTable:
    """A product of bfloat16 matrices."""
    work = MinimalWork(
        bytes_moved=2 * (m * k + k * n + m * n),
        flops={"bfloat16": 2 * m * n * k},
        provenance="declared in matmul.py",
    )
    return table({"M": m, "N": n, "K": k}, work, timings_of(milliseconds))


def timings_of(milliseconds: Mapping[str, float]) -> list[Timing]:
    labels = {"max_autotune": "compile max-autotune", "liger": "liger_kernel"}
    return [timing(labels.get(label, label), ms) for label, ms in milliseconds.items()]


def softmax_sweep() -> list[TimingTable]:
    """Four sizes, in which the kernel is as fast as liger-kernel was."""
    return [
        softmax(16384, 1024, kernel=0.0223, eager=0.0354, compile=0.0225),
        softmax(8192, 4096, kernel=0.0367, eager=0.1096, compile=0.0824),
        softmax(4096, 32768, kernel=0.1717, eager=0.2447, compile=0.2786),
        softmax(2048, 131072, kernel=0.3955, eager=0.5614, compile=0.5413),
    ]


def benchmark(kernel: str, tables: Sequence[TimingTable], flags: tuple[RedFlag, ...] = ()) -> Benchmark:
    """The whole result, as the caller of these modules puts it together."""
    tables = add_flags(tables)
    return Benchmark(
        summary=summary_of(kernel, tables, flags),
        next_step=next_step_of(kernel, tables, flags),
        verdict=verdict_of(tables, flags),
        kernel=kernel,
        device="NVIDIA H200, driver 580.159, torch 2.11.0, Triton 3.6.0, 2026-11-21",
        passes="forward",
        precision=precision_of(tf32=False),
        provenance="measured with device events",
        tables=tables,
        flags=flags,
        ceilings=H200,
        conditions=Conditions(
            driver="580.159", provenance="NVML", sm_clock_mhz=(1830, 1980), max_sm_clock_mhz=1980
        ),
        tuned=(TunedConfig(kernel="softmax_kernel", key={"N": 4096}, config={"num_warps": 8}),),
        seed=7,
        replay=f"pytorch-to-triton benchmark {kernel} --seed 7",
    )
