"""Without a device there are limits from a data sheet, each marked as estimated, and no timings."""

from pathlib import Path

from pytorch_to_triton.benchmark.estimate import estimate_speed
from pytorch_to_triton.benchmark.pictures import draw
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.speed_report import brief_table, markdown
from pytorch_to_triton.hardware.datasheets import datasheet
from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import MinimalWork


def of_copy(gpu: str, *, flops: dict[str, int] | None = None, tf32: bool = False) -> Benchmark:
    """Two sizes of 4.8 MB and 4.8 GB, the larger given first."""
    x = TensorArgument(name="x", dtype="bfloat16", shape=(1,))
    sizes = [
        (
            Case(name="", group="declared", dims={"N": moved}, arguments=(x,)),
            MinimalWork(bytes_moved=moved, flops=flops or {}, provenance="counted in the traced graph"),
        )
        for moved in (4_800_000_000, 4_800_000)
    ]
    request = BenchmarkRequest(candidate=Target(path=Path("k.py")), tf32=tf32)
    return estimate_speed(request, datasheet(gpu), sizes)


def test_an_estimate_has_limits_and_no_timings() -> None:
    whole = of_copy("H200")
    assert (whole.verdict, whole.conditions) == ("estimated", None)
    assert [table.timings for table in whole.tables] == [(), ()]
    limits = [table.limit for table in whole.tables]
    assert [(limit.ms, limit.binds, limit.provenance) for limit in limits if limit] == [
        (0.001, "memory", "estimated"),
        (1.0, "memory", "estimated"),
    ]


def test_tf32_lowers_the_limit_of_products_of_float32() -> None:
    slow, fast = (
        of_copy("H200", flops={"float32": 10**15}, tf32=tf32).tables[0].limit for tf32 in (False, True)
    )
    assert slow is not None
    assert fast is not None
    assert fast.ms < slow.ms / 2


def test_every_time_of_an_estimate_says_so() -> None:
    whole = of_copy("H200", flops={"bfloat16": 10})
    assert whole.summary == (
        "k.py on H200 (forward pass), estimated from its data sheet: any kernel takes at least a launch "
        "(a few microseconds) at N=4800000, and at least 1.0000 ms (estimated, memory-bound) at N=4800000000."
    )
    report = markdown(whole)
    rows = [line for line in report.splitlines() if line.startswith("| N=")]
    assert [row.split(" | ")[2] for row in rows] == ["0.0010 (estimated)", "1.0000 (estimated)"]
    assert all(row.endswith("| not measured |") for row in rows)
    assert "memory 4,800 GB/s" in report
    assert "(estimated, data sheet of H200)" in report
    assert "Red flags" not in report
    assert brief_table(whole)[1][0] == ("N=4800000", "0.0010 (estimated)", "memory")


def test_a_rate_missing_in_the_sheet_leaves_the_limit_open() -> None:
    whole = of_copy("V100 SXM", flops={"bfloat16": 10})
    assert [table.limit for table in whole.tables] == [None, None]
    assert "no limit is known" in whole.summary
    assert "not known" in markdown(whole)
    assert brief_table(whole)[1] == []


def test_an_estimate_draws_the_roofline_alone(tmp_path: Path) -> None:
    assert draw(of_copy("H200", flops={"bfloat16": 10}), tmp_path) == (tmp_path / "roofline.png",)
