"""Timing without a device: timed processes may fail, and inputs change from call to call."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pytorch_to_triton.worker.calls.exchange import CallInputs
from pytorch_to_triton.worker.device import MOST_COVER, ColdCall, Flush
from pytorch_to_triton.worker.timing import timed_process
from pytorch_to_triton.worker.timing.input_pool import Pool, roll, variant
from pytorch_to_triton.worker.timing.rounds import BATCH, batch_size
from pytorch_to_triton.worker.timing.timed_process import union

PROCESSES = Path(__file__).with_name("timing_processes.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Results of real processes."""
    command = [sys.executable, str(PROCESSES), str(tmp_path_factory.mktemp("run"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_process_that_ends_or_hangs_is_lost_and_one_that_raises_takes_more_commands(
    found: dict[str, Any],
) -> None:
    then = found["endings"].pop("then")
    assert found["endings"] == {
        "die": "killed by SIGSEGV",
        "leave": "ended with exit code 3",
        "hang": "not done within 0.2 s",
        "alive after a time-out": False,
        "raise": "ValueError: not today",
        "alive after an exception": True,
    }
    assert then["samples_ms"] == [1.0]


def test_each_callable_is_timed_in_a_process_of_its_own(found: dict[str, Any]) -> None:
    assert found["rounds"]["processes"] == 4
    assert found["rounds"]["here"] is False


WANTED = 300
"""Samples that timing_processes.py asks for."""


def test_all_processes_get_as_many_samples_of_the_same_inputs(found: dict[str, Any]) -> None:
    samples, seen = found["rounds"]["samples"], found["rounds"]["seen"]
    assert set(samples) == {"slow", "fast", "late"}
    assert len(samples["slow"]) == len(samples["fast"]) >= WANTED
    assert set(samples["slow"]) == {3.0}
    assert seen["slow"] == seen["fast"]
    assert len(set(seen["slow"])) == found["rounds"]["batch"]
    assert seen["slow"][-1] == found["rounds"]["last"]


def test_rounds_begin_when_every_launch_is_hidden_and_each_batch_is_timed_from_outside_too(
    found: dict[str, Any],
) -> None:
    batches = len(found["rounds"]["samples"]["slow"]) / found["rounds"]["batch"]
    assert found["rounds"]["outside"] == dict.fromkeys(("slow", "fast", "late"), batches)
    assert len(found["rounds"]["samples"]["late"]) == len(found["rounds"]["samples"]["slow"])
    assert found["rounds"]["idle"] == {"2": batches, "8": batches}  # nothing, behind as many flushes


@pytest.mark.parametrize(
    ("cover", "waited", "kept", "then", "hidden"),
    [
        (2, [False, False, False], [1.0, 2.0, 3.0], 2, True),
        (2, [False, True, False], [1.0, 3.0], 4, False),
        (2, [True, True, True], [1.0, 2.0, 3.0], 4, False),
        (MOST_COVER, [True, True, False], [1.0, 2.0, 3.0], MOST_COVER, True),
    ],
)
def test_a_call_whose_launch_the_device_waited_for_does_not_count_and_more_flushes_hide_the_next(
    cover: int,
    waited: list[bool],
    kept: list[float],
    then: int,
    hidden: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = [ColdCall(1.0 + n, hidden=not each, follows=True) for n, each in enumerate(waited)]
    monkeypatch.setattr(timed_process, "cold_calls", lambda *_: calls)
    process = timed_process.TimedImplementation(tmp_path, {"passes": "forward", "tf32": False})
    process.cover, process.timed, process.flush = cover, [dict] * len(calls), Flush.__new__(Flush)
    answer = process.go()
    assert (answer["samples_ms"], answer["cover"], process.cover) == (kept, cover, then)
    assert answer["hidden"] is hidden


def test_a_device_that_waits_between_calls_leaves_them_to_their_own_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's clock would count what the host does from call to call."""
    calls = [ColdCall(1.0 + n, hidden=True, follows=n != 1) for n in range(3)]
    monkeypatch.setattr(timed_process, "cold_calls", lambda *_: calls)
    process = timed_process.TimedImplementation(tmp_path, {"passes": "forward", "tf32": False})
    process.cover, process.timed, process.flush = 2, [dict] * len(calls), Flush.__new__(Flush)
    answer = process.go()
    assert answer["samples_ms"] == [1.0, 2.0, 3.0]
    assert answer["hidden"] is False
    assert process.cover == 4


def test_a_process_that_failed_at_one_size_takes_part_in_the_next_unless_it_could_not_be_loaded(
    found: dict[str, Any],
) -> None:
    lost = {"unlucky": "ValueError: not today"}
    assert found["rounds"]["lost"] == found["none"]["lost"] == lost
    assert found["rounds"]["later"]["unlucky"] == found["rounds"]["later"]["fast"] > 0
    assert found["none"]["said"] == ["first calls of unlucky"]
    assert found["ended"] == {"running": ["fine"], "lost": lost}


def started(**changes: float) -> dict[str, float]:
    return {"input_bytes": 1e6, "output_bytes": 1e6, "free_bytes": 1e12, "call_ms": 0.1, **changes}


def test_a_batch_is_as_large_as_memory_and_time_allow() -> None:
    assert batch_size({"a": started()}) == BATCH
    assert batch_size({"a": started(free_bytes=120e6), "b": started()}) == 5
    assert batch_size({"a": started(), "b": started(call_ms=50.0)}) == 4
    assert batch_size({"a": started(call_ms=5000.0)}) == 1


def test_inputs_of_another_call_are_the_same_values_elsewhere() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.float8_e4m3fn):
        tensor = torch.arange(12, dtype=torch.float32).view(3, 4).to(dtype)
        moved = roll(tensor, 5)
        assert (moved.shape, moved.dtype) == (tensor.shape, tensor.dtype)
        assert not moved.float().equal(tensor.float())
        assert moved.float().flatten().sort().values.equal(tensor.float().flatten().sort().values)


def test_integers_stay_where_they_are_since_they_may_be_offsets() -> None:
    offsets = torch.tensor([0, 3, 7, 12])
    assert roll(offsets, 2).equal(offsets)


def test_a_slot_keeps_its_address_and_version_when_it_gets_other_values() -> None:
    pool = Pool([CallInputs({"x": torch.arange(8.0)}, {})])
    first = pool.filled(0, 1).arguments["x"]
    place, version, values = first.data_ptr(), first._version, first.clone()
    again = pool.filled(0, 2).arguments["x"]
    assert (again.data_ptr(), again._version) == (place, version)
    assert not again.equal(values)
    assert pool.filled(1, 2).arguments["x"].data_ptr() != place


def test_inputs_that_a_file_makes_itself_are_taken_as_they_are() -> None:
    bases = [CallInputs({"x": torch.full((4,), float(n))}, {}) for n in range(3)]
    assert [variant(bases, n).arguments["x"][0].item() for n in range(4)] == [0.0, 1.0, 2.0, 0.0]


def test_kernels_that_overlap_are_counted_once() -> None:
    assert union([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)]) == 4.0
    assert union([]) == 0.0
