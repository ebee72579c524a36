"""Samples from the device become a table of medians and rates."""

from pathlib import Path

from pydantic import JsonValue

from pytorch_to_triton.benchmark.timing import Trial, table
from pytorch_to_triton.schema.case import Case, TensorArgument

X = TensorArgument(name="x", dtype="bfloat16", shape=(1000, 1000))
TRIAL = Trial(
    subjects=(),
    case=Case(name="timing", group="declared", dims={"M": 1000, "N": 1000}, arguments=(X,)),
    bytes_moved=4_000_000,
    seed=1,
    seconds=1.0,
)
ANSWER: dict[str, JsonValue] = {
    "device": "a GPU",
    "samples_ms": {"PyTorch eager": [4.0, 2.0, 3.0], "stage 1": [1.0, 1.0, 1.0]},
    "failed": {"stage 2": f"RuntimeError in {Path('k.py')}"},
}


def test_each_label_has_its_median_and_rate() -> None:
    found = table(TRIAL, ANSWER)
    eager, stage = found.of("PyTorch eager"), found.of("stage 1")
    assert eager is not None
    assert stage is not None
    assert (eager.median_ms, eager.low_ms, eager.high_ms, eager.calls) == (3.0, 2.0, 4.0, 3)
    assert stage.gbytes_per_s == 4.0


def test_what_failed_is_kept_with_its_reason() -> None:
    found = table(TRIAL, ANSWER)
    assert found.of("stage 2") is None
    assert found.failed == {"stage 2": "RuntimeError in k.py"}


def test_the_table_says_where_it_was_taken() -> None:
    found = table(TRIAL, ANSWER)
    assert (found.device, found.dims, found.dtypes) == ("a GPU", {"M": 1000, "N": 1000}, {"x": "bfloat16"})
