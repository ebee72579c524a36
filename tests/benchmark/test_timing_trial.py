"""Samples from the device become figures; what cannot be believed is flagged and not reported as faster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytorch_to_triton.benchmark.timing_trial import table_of
from pytorch_to_triton.benchmark.trust import SizeMeasured, contradicting_clock
from pytorch_to_triton.inputs.case import Case, TensorArgument
from pytorch_to_triton.schema.timing import MinimalWork, Roofline, TimingTable

X = TensorArgument(name="x", dtype="bfloat16", shape=(1000, 1000))
CASE = Case(name="M=1000 N=1000", group="declared", dims={"M": 1000, "N": 1000}, arguments=(X,))
WORK = MinimalWork(bytes_moved=4_000_000, flops={"float32": 2_000_000}, provenance="counted")
LIMIT = Roofline(ms=0.5, binds="memory", bytes_ms=0.5, flops_ms=0.1, provenance="measured")
RIGHT = {"path": "out", "differs": None, "elements": 9, "failing": 0}


def measured(**changes: Any) -> dict[str, Any]:
    """One callable that took a millisecond in every way."""
    return {
        "first_call_ms": 900.0,
        "peak_bytes": 2_000_000,
        "input_bytes": 2_000_000,
        "output_bytes": 2_000_000,
        "samples_ms": [1.0, 0.9, 1.1],
        "outside_ms": [1.01],
        "wall_ms": [1.2],
        "graph_ms": [0.98],
        "busy_ms": 0.95,
        "kernels": 1.0,
        "check": {"missing": [], "extra": [], "outputs": [RIGHT]},
        **changes,
    }


def table(implementations: Mapping[str, dict[str, Any]], **changes: Any) -> TimingTable:
    size = SizeMeasured.model_validate(
        {
            "case": CASE.name,
            "batch": 3,
            "empty_ms": 0.001,
            "implementations": dict(implementations),
            "failed": {},
            "check_note": "",
            **changes,
        }
    )
    return table_of(size, CASE, "a GPU", WORK, LIMIT)


def kinds(found: TimingTable) -> list[str]:
    return [flag.kind for flag in found.flags]


def test_samples_become_a_median_rates_and_a_share_of_the_limit_with_where_they_were_taken() -> None:
    timing = table({"kernel": measured()}).of("kernel")
    assert timing is not None
    assert (timing.median_ms, timing.low_ms, timing.high_ms, timing.calls) == (1.0, 0.9, 1.1, 3)
    assert (timing.gbytes_per_s, timing.tflops, timing.share_of_limit) == (4.0, 0.002, 0.5)
    assert (timing.wall_ms, timing.graph_ms, timing.first_call_ms) == (1.2, 0.98, 900.0)
    found = table({"kernel": measured()})
    assert (found.device, found.dims, found.dtypes) == ("a GPU", {"M": 1000, "N": 1000}, {"x": "bfloat16"})


def test_honest_figures_are_believed_though_other_processes_delay_most_batches() -> None:
    assert kinds(table({"kernel": measured(), "eager": measured()})) == []
    delayed = measured(outside_ms=[2.0, 1.02, 1.9, 2.2, 1.01, 1.8, 2.4, 1.7])
    assert kinds(table({"kernel": delayed})) == []


def test_what_failed_is_kept_with_its_reason() -> None:
    found = table({"kernel": measured()}, failed={"stage 2": f"RuntimeError in {Path('k.py')}"})
    assert found.of("stage 2") is None
    assert found.failed == {"stage 2": "RuntimeError in k.py"}


def test_work_beside_the_timed_stream_is_reported_with_the_time_that_it_takes() -> None:
    found = table({"kernel": measured(samples_ms=[0.002] * 9, busy_ms=0.9, outside_ms=[1.0])})
    timing = found.of("kernel")
    assert timing is not None
    assert timing.median_ms == 1.0
    assert timing.share_of_limit == 0.5
    assert kinds(found) == ["clock_disagrees"]
    assert (
        "0.0020 ms by its own events, but 1.0000 ms by the clock of another process" in found.flags[0].message
    )


def test_a_forged_clock_is_refuted_by_the_outside_one_where_the_drivers_record_is_missing() -> None:
    found = table({"kernel": measured(samples_ms=[0.1] * 9, busy_ms=None)})
    assert kinds(found) == ["clock_disagrees"]


def test_a_wrong_timed_output_and_a_changed_setting_are_flagged_with_what_it_was() -> None:
    stale = {**RIGHT, "failing": 7}
    found = table({"kernel": measured(check={"missing": [], "extra": [], "outputs": [stale]})})
    assert kinds(found) == ["wrong_outputs"]
    assert "7 of 9 elements of out" in found.flags[0].message
    changed = {"name": "torch.backends.cuda.matmul.allow_tf32", "before": False, "now": True}
    found = table({"kernel": measured(changed=[changed])})
    assert kinds(found) == ["settings_changed"]
    assert "allow_tf32 from False to True" in found.flags[0].message


def test_gaps_between_kernels_and_the_ends_of_a_batch_do_not_refute_a_call() -> None:
    """Seen on an H200: a softmax of 64 rows takes 4 us by its events, 17 us by the outside clock."""
    found = contradicting_clock(0.0043, outside_ms=0.0166, batch=20, busy_ms=0.0012, empty_ms=0.0013)
    assert found is None
    """Seen on an H200: an embedding of 1 GB, 6 calls in a row, takes 71 us by its events and as a graph."""
    found = contradicting_clock(0.0714, outside_ms=0.1060, batch=6, busy_ms=0.0672, empty_ms=0.0013)
    assert found is None


def test_calls_on_another_stream_are_refuted_by_the_outside_clock_or_the_drivers_record() -> None:
    found = contradicting_clock(0.0013, outside_ms=0.1060, batch=6, busy_ms=None, empty_ms=0.0013)
    assert found is not None
    assert found.clock == "the clock of another process"
    """Seen on an H200: the events see nothing but themselves."""
    found = contradicting_clock(0.0013, outside_ms=0.0212, batch=20, busy_ms=0.00127, empty_ms=0.0013)
    assert found is not None
    assert found.clock == "the driver's record of all kernels"
