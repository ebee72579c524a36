"""A benchmark as a whole, from recorded answers: nothing that was asked for goes missing without a word."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton.benchmark.benchmark import benchmark_of, refuse_nothing_to_freeze
from pytorch_to_triton.benchmark.ceilings import kept_at, read
from pytorch_to_triton.benchmark.plan import BenchmarkPlan, label_targets
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.roofline import bytes_taken, work_of_passes
from pytorch_to_triton.benchmark.trust import Measurement
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.conditions import monitored_device
from pytorch_to_triton.hardware.versions import Device, Versions
from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.schema.benchmark import KERNEL, Benchmark, Conditions
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import Ceilings, MinimalWork

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KERNEL_FILE = Target(path=ROOT / "reference_kernels" / "softmax.py")
CEILINGS = Ceilings(
    device="NVIDIA H200",
    provenance="measured",
    source="driver 580.159.04",
    copy_gbytes_per_s=4257.0,
    matmul_tflops={"float32": 51.0},
)
DESCRIPTION = Description(
    target=KERNEL_FILE,
    kind="kernel_file",
    name="run",
    parameters=(),
    inputs={"x": "bfloat16[M, N]"},
    dims={},
    requires=[],
    bytes_moved="2 * M * N * itemsize",
    generates_inputs=False,
    state=(),
    examples=None,
)


def case(rows: int) -> Case:
    x = TensorArgument(name="x", dtype="bfloat16", shape=(rows, 4096))
    return Case(name=f"M={rows} N=4096", group="declared", dims={"M": rows, "N": 4096}, arguments=(x,))


def judged(rows: tuple[int, ...], ended: str = "") -> Benchmark:
    """The recorded run of a softmax of 8192 rows, where sizes of these numbers of rows had been asked for."""
    recorded = json.loads((HERE / "recorded" / "softmax.json").read_text())
    measurement = Measurement.model_validate({**recorded, "ended": ended})
    request = BenchmarkRequest(candidate=KERNEL_FILE)
    plan = BenchmarkPlan(
        request, KERNEL_FILE, (DESCRIPTION, DESCRIPTION), tuple(map(case, rows)), None, None, "", 7
    )
    devices = (Device(name="NVIDIA H200", capability=(9, 0), memory_bytes=1),)
    found = Versions(
        python="3.12", torch="2.11", triton="3.6", interpreter=False, cuda="13.0", rocm=None, devices=devices
    )
    conditions = Conditions(driver="580.159.04", provenance="NVML")
    return benchmark_of(plan, found, CEILINGS, conditions, measurement)


def test_a_run_that_reached_every_size_is_judged_by_its_figures() -> None:
    found = judged((8192,))
    assert found.verdict == "faster"
    assert "NVIDIA H200, driver 580.159.04, torch 2.11, Triton 3.6" in found.device
    kernel = found.tables[0].of(KERNEL)
    assert kernel is not None
    assert kernel.share_of_limit == pytest.approx(0.84, abs=0.02)


def test_a_size_that_was_not_reached_voids_the_verdict_and_is_reported_with_the_reason() -> None:
    found = judged((8192, 16384), ended="not done within 500 s")
    assert found.verdict == "void"
    assert "M=16384 N=4096" in found.summary
    assert "not done within 500 s" in found.summary
    assert found.tables[1].failed == {KERNEL: "the run ended before: not done within 500 s"}


def test_a_table_of_configurations_is_refused_at_once_where_no_kernel_is_autotuned(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no autotuned kernel"):
        refuse_nothing_to_freeze(BenchmarkRequest(candidate=KERNEL_FILE, freeze=tmp_path / "frozen.py"))
    autotuned = Target(path=HERE / "kernels" / "autotuned_softmax.py")
    refuse_nothing_to_freeze(BenchmarkRequest(candidate=autotuned, freeze=tmp_path / "frozen.py"))


def test_targets_of_one_name_are_told_apart() -> None:
    targets = [
        Target(path=Path("/a/k.py")),
        Target(path=Path("/b/k.py")),
        Target(path=Path("/b/k.py"), name="f"),
    ]
    assert [label for label, _ in label_targets(targets)] == ["k", "k 2", "k:f"]


def test_a_backward_pass_that_was_not_traced_moves_inputs_twice_and_outputs_once() -> None:
    forward = MinimalWork(bytes_moved=300, flops={"bfloat16": 10}, provenance="counted")
    moved = bytes_taken(forward, 200)
    backward = work_of_passes(forward, moved, "taken", "backward")
    assert (backward.bytes_moved, backward.flops) == (500, {"bfloat16": 20})
    both = work_of_passes(forward, moved, "taken", "both")
    assert (both.bytes_moved, both.flops) == (800, {"bfloat16": 30})


def test_ceilings_are_kept_for_each_driver_and_damaged_ones_are_measured_again(tmp_path: Path) -> None:
    assert kept_at("NVIDIA H200", "580.1") != kept_at("NVIDIA H200", "590.2")
    file = tmp_path / "kept.json"
    assert read(file) is None
    file.write_text(CEILINGS.model_dump_json())
    assert read(file) == CEILINGS
    file.write_text(file.read_text()[:40])
    assert read(file) is None


@pytest.mark.anyio
async def test_conditions_that_cannot_be_read_say_why() -> None:
    async with monitored_device("00000000-no-such-device") as monitor:
        pass
    assert monitor.conditions.provenance.startswith("not available: ")
    assert monitor.conditions.sm_clock_mhz is None
