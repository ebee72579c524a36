"""Answers of a real GPU, an H200 (Triton 3.6.0, torch 2.11.0, 2026-11-21), are judged again here."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton.benchmark.flags import add_flags
from pytorch_to_triton.benchmark.roofline import limit_of
from pytorch_to_triton.benchmark.timing_trial import table_of
from pytorch_to_triton.benchmark.trust import Measurement
from pytorch_to_triton.benchmark.verdict import summary_of, verdict_of
from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.schema.benchmark import COMPILE, EAGER, KERNEL
from pytorch_to_triton.schema.timing import Ceilings, MinimalWork, TimingTable

RECORDED = Path(__file__).parent / "recorded"
CEILINGS = Ceilings(
    device="NVIDIA H200",
    provenance="measured",
    source="driver 580.159.04, 2026-11-21",
    copy_gbytes_per_s=4257.0,
    matmul_tflops={"float32": 51.0, "bfloat16": 786.0},
)


def recorded(name: str, dtype: str, rows: int) -> TimingTable:
    """The table of a recorded softmax of 4096 columns."""
    measurement = Measurement.model_validate(json.loads((RECORDED / f"{name}.json").read_text()))
    x = TensorArgument.model_validate({"name": "x", "dtype": dtype, "shape": (rows, 4096)})
    case = Case(name="", group="declared", dims={"M": rows, "N": 4096}, arguments=(x,))
    work = MinimalWork(bytes_moved=2 * x.bytes, flops={}, provenance="counted")
    limit = limit_of(work, CEILINGS, tf32=False)
    table = table_of(measurement.sizes[0], case, "NVIDIA H200", work, limit)
    [judged] = add_flags([table])
    return judged


def test_a_recorded_softmax_is_judged_as_it_was_on_the_gpu() -> None:
    table = recorded("softmax", "bfloat16", 8192)
    kernel, eager, compiled = (table.of(label) for label in (KERNEL, EAGER, COMPILE))
    assert kernel is not None
    assert eager is not None
    assert compiled is not None
    assert eager.median_ms / kernel.median_ms == pytest.approx(2.9, abs=0.1)
    assert compiled.median_ms / kernel.median_ms == pytest.approx(2.2, abs=0.1)
    assert kernel.share_of_limit == pytest.approx(0.84, abs=0.02)
    assert kernel.kernels == 1.0
    assert table.limit is not None
    assert table.limit.binds == "memory"
    assert table.flags == ()
    assert verdict_of([table], []) == "faster"
    assert "2.9" in summary_of("softmax.py", [table], [])


def test_what_the_autotuner_chose_is_in_the_recorded_answer() -> None:
    measurement = Measurement.model_validate(json.loads((RECORDED / "softmax.json").read_text()))
    [config] = measurement.sizes[0].implementations["autotuned_softmax"].tuned
    assert config.kernel == "softmax_kernel"
    assert config.key["n_cols"] == 4096


def test_a_recorded_cheat_on_another_stream_is_void_and_not_faster() -> None:
    table = recorded("side_stream", "float32", 4096)
    kernel = table.of(KERNEL)
    assert kernel is not None
    assert kernel.share_of_limit is not None
    assert kernel.share_of_limit < 1.0
    assert "clock_disagrees" in [flag.kind for flag in table.flags]
    assert verdict_of([table], []) == "void"
