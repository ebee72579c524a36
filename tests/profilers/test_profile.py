"""Profilers: what their reports say, and what is said where they cannot work. Nothing here needs a GPU."""

import stat
import sys
from pathlib import Path
from typing import get_args

import pytest

from pytorch_to_triton.errors import MissingRequirement, TargetNotFound
from pytorch_to_triton.hardware.versions import Device
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.profilers import profile as profilers
from pytorch_to_triton.profilers.profile import METRICS, STALL, complaint, parse_ncu, parse_proton
from pytorch_to_triton.schema.job import Runtime

GPU = Device(name="some GPU", capability=(9, 0), memory_bytes=2**34)
COLUMNS = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
           "Grid Size", "Device", "CC")  # fmt: skip
MEASURED = {
    "dram__bytes_read.sum": ("byte", "40,000,000"),
    "dram__bytes_write.sum": ("byte", "40,000,000"),
    "dram__bytes_op_read.sum": ("", "n/a"),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "83.50"),
    "gpu__time_duration.sum": ("nsecond", "25,000"),
    "launch__registers_per_thread": ("register/thread", "39"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": ("%", "0"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "71.25"),
    STALL.format("long_scoreboard"): ("inst", "17.9"),
    STALL.format("barrier"): ("inst", "2.5"),
    STALL.format("gmma"): ("", "n/a"),
}


def report(*kernels: str) -> str:
    """A table as ncu writes it, with lines of its own and of the program around it."""
    rows = [
        [*COLUMNS, *MEASURED],
        [""] * len(COLUMNS) + [unit for unit, _ in MEASURED.values()],
        *(
            [str(n), "7", "python", "host", name, "1", "7", "(512, 1, 1)", "(256, 1, 1)", "0", "9.0"]
            + [value for _, value in MEASURED.values()]
            for n, name in enumerate(kernels)
        ),
    ]
    table = [",".join(f'"{cell}"' for cell in row) for row in rows]
    return "\n".join(["==PROF== Connected to process 7", *table, "==PROF== Disconnected", ""])


def test_ncus_table_gives_bandwidth_occupancy_and_stalls() -> None:
    (kernel,) = parse_ncu(report("softmax_kernel"))
    assert (kernel.name, kernel.launches, kernel.microseconds) == ("softmax_kernel", 1, 25.0)
    assert kernel.dram_bytes == 80_000_000
    assert kernel.dram_gbytes_per_s == pytest.approx(3200.0)
    assert kernel.dram_share == pytest.approx(0.835)
    assert kernel.achieved_occupancy == pytest.approx(0.7125)
    assert kernel.registers == 39
    assert kernel.tensor_share == 0.0
    assert list(kernel.stalls.items()) == [("long_scoreboard", 17.9), ("barrier", 2.5)]


def test_launches_of_one_kernel_are_reported_together_and_none_where_there_are_none() -> None:
    kernels = parse_ncu(report("once", "twice", "twice"))
    assert [(k.name, k.launches, k.microseconds) for k in kernels] == [("twice", 2, 50.0), ("once", 1, 25.0)]
    assert kernels[0].dram_gbytes_per_s == pytest.approx(3200.0)
    text = "==PROF== Connected\n==WARNING== No kernels were profiled.\n"
    assert parse_ncu(text) == ()
    assert complaint(text) == ""
    assert complaint("==ERROR== ERR_NVGPUCTRPERM - no permission\n") == "ERR_NVGPUCTRPERM - no permission"


def test_other_units_of_time_are_microseconds_too_and_a_counter_that_a_gpu_lacks_is_not_zero() -> None:
    text = report("k").replace('"nsecond"', '"second"').replace('"25,000"', '"2.5e-05"')
    assert parse_ncu(text)[0].microseconds == pytest.approx(25.0)
    (kernel,) = parse_ncu(report("k").replace('"83.50"', '"n/a"').replace('"39"', '"n/a"'))
    assert kernel.dram_share is None
    assert kernel.registers is None


def test_protons_tree_gives_the_time_of_each_kernel() -> None:
    def leaf(name: str, **metrics: float) -> dict[str, object]:
        return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": []}

    tree = [
        {
            "frame": {"name": "ROOT", "type": "function"},
            "metrics": {"count": 0},
            "children": [
                leaf("softmax_kernel", **{"time (ns)": 250_000, "count": 10}),
                leaf("matmul", **{"time (ns)": 900_000, "count": 10, "flops16": 2e9, "bytes": 3e6}),
                {
                    "frame": {"name": "run", "type": "function"},
                    "metrics": {},
                    "children": [leaf("softmax_kernel", **{"time (ns)": 10_000})],
                },
            ],
        },
        {"CUDA": {"0": {"arch": "90", "num_sms": 132}}},
    ]
    matmul, softmax = parse_proton(tree)
    assert (matmul.name, matmul.launches, matmul.microseconds) == ("matmul", 10, 900.0)
    assert (matmul.flops, matmul.bytes_moved) == (2e9, 3e6)
    assert (softmax.launches, softmax.microseconds, softmax.flops) == (11, 260.0, None)


def test_without_a_gpu_or_without_ncu_it_is_said_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for profiler in get_args(profilers.Profiler):
        with pytest.raises(MissingRequirement, match="none that torch can use"):
            profilers.require(profiler, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(profilers, "INSTALLED", ())
    if profilers.find_ncu() is None:
        with pytest.raises(MissingRequirement, match=r"ncu.*is not installed"):
            profilers.require("ncu", GPU)
    profilers.require("proton", GPU)


TOOL = f"""#!{sys.executable}
# Runs a program as ncu does, and writes what lies beside it as the report.
import json, subprocess, sys
from pathlib import Path
here = Path(__file__).parent
options = sys.argv[1 : sys.argv.index({sys.executable!r})]
(here / "options.json").write_text(json.dumps(options))
Path(options[options.index("--log-file") + 1]).write_text((here / "report.csv").read_text())
sys.exit(subprocess.run(sys.argv[1 + len(options) :]).returncode)
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ncu on PATH; its report lies beside it."""
    program = tmp_path / "ncu"
    program.write_text(TOOL)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return program


@pytest.mark.anyio
async def test_a_report_without_kernels_is_reported_with_what_the_tool_or_the_job_said(
    tool: Path,
    worker: WorkerClient,
    interpreter: Runtime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tool.parent / "report.csv").write_text("==ERROR== ERR_NVGPUCTRPERM - no permission\n")
    runtime = interpreter.model_copy(update={"interpreter": False})
    missing = {"path": str(tmp_path / "absent.py"), "name": None}
    arguments = {"candidate": missing, "reference": None, "case": {}}
    # What the tool said comes before what became of the job.
    (tmp_path / "torch.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingRequirement, match="performance counters"):
        await profilers.run_profiler(worker, "ncu", arguments, runtime, seconds=60)
    options = (tool.parent / "options.json").read_text()
    assert all(metric in options for metric in METRICS)
    assert '"--clock-control", "none"' in options
    monkeypatch.delenv("PYTHONPATH")
    (tool.parent / "report.csv").write_text("==WARNING== No kernels were profiled.\n")
    with pytest.raises(TargetNotFound, match="There is no file"):
        await profilers.run_profiler(worker, "ncu", arguments, runtime, seconds=60)


def test_a_report_of_a_real_gpu_is_read() -> None:
    """Nsight Compute of CUDA 13.0 on an H200: softmax of 8192 rows of 4096 float32."""
    [kernel] = parse_ncu((Path(__file__).parent / "recorded" / "ncu_softmax_h200.csv").read_text())
    assert kernel.name == "softmax_kernel"
    assert kernel.registers == 32
    assert kernel.dram_gbytes_per_s == pytest.approx(3827, abs=1)
    assert kernel.dram_share == pytest.approx(0.796, abs=0.001)
    assert kernel.achieved_occupancy == pytest.approx(0.93, abs=0.001)
    assert next(iter(kernel.stalls)) == "long_scoreboard"
