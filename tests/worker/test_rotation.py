"""While a candidate is validated, autotuned kernels take each configuration, and none is timed."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROTATION = Path(__file__).with_name("rotation_process.py")


@functools.cache
def rotated(start: int) -> dict[str, Any]:
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    ran = subprocess.run(
        [sys.executable, str(ROTATION), str(start)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_each_new_key_takes_the_next_configuration_that_compiles() -> None:
    found = rotated(start=0)
    # Two runs on trial, as a tuner would make many, and the one that counts; a known key is not tried again.
    assert found["chosen"] == [
        {"n": 1, "runs": [64, 64, 64]},
        {"n": 2, "runs": [128, 128, 128]},
        {"n": 3, "runs": [128, 128, 128]},
        {"n": 3, "runs": [128]},
        {"n": 4, "runs": [64, 64, 64]},
    ]


def test_what_was_run_is_reported() -> None:
    [taken] = rotated(start=0)["summary"]
    assert taken["of"] == 3
    assert [config["BLOCK"] for config in taken["tried"]] == [64, 128]


def test_processes_that_share_the_cases_start_at_different_configurations() -> None:
    assert rotated(start=2)["chosen"][0] == {"n": 1, "runs": [128, 128, 128]}
