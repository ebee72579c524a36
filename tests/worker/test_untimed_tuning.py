"""While a candidate is validated, its autotuned kernels take the case's configuration, and none is timed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROCESS = Path(__file__).with_name("untimed_tuning_process.py")
BEFORE, TRIALS = 100.0, 2


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cache = tmp_path_factory.mktemp("cache")
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(cache)}
    ran = subprocess.run(
        [sys.executable, str(PROCESS)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return {**found, "files": [str(path) for path in cache.rglob("*.json")]}


def test_a_key_is_tuned_by_runs_on_trial_once(tuned: dict[str, Any]) -> None:
    first = [64, 4]
    assert tuned["of the first"] == [[first] * (TRIALS + 1), [first], [first] * (TRIALS + 1)]


def test_each_case_tunes_afresh_and_takes_the_next_one_where_its_own_cannot_be_run(
    tuned: dict[str, Any],
) -> None:
    third = [128, 4]
    assert tuned["of the refused"] == [[third] * (TRIALS + 1), [third], [third] * (TRIALS + 1)]


def test_configurations_are_counted_from_the_first_one_left_and_those_of_other_warps_come_last(
    tuned: dict[str, Any],
) -> None:
    assert tuned["counted past the last"] == 64
    assert tuned["of those left"] == [32, 128, 32]
    assert tuned["of the best by a model"] == [128, 64, 128]
    assert tuned["of other warps"] == [64, 1]
    name = "BLOCK=128 num_warps=4 num_stages=3"
    assert tuned["reported"] == [{"kernel": "named", "configuration": name, "of": 3, "unsettled": []}]


def test_nothing_is_kept_on_disk(tuned: dict[str, Any]) -> None:
    assert tuned["cached on disk"] == 64
    assert tuned["files"] == []


def test_what_runs_on_trial_leave_is_what_the_author_lets_them_leave(tuned: dict[str, Any]) -> None:
    assert tuned["left"] == {
        "as it is": BEFORE + TRIALS + 1,
        "known key": BEFORE + 1,
        "reset_to_zero": 1.0,
        "reset_to_zero, known key": BEFORE + 1,
        "restore_value": BEFORE + 1,
        "pre_hook": 1.0,
        "undone": BEFORE + 1,
    }
    assert tuned["unsettled"] == ["y"]
