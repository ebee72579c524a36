"""While a candidate is validated, autotuned kernels take all configurations in turn, and none is timed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKS = Path(__file__).with_name("rotation_checks.py")


def told(turn: int) -> dict[str, Any]:
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    ran = subprocess.run(
        [sys.executable, str(CHECKS), str(turn)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_each_new_key_takes_the_next_configuration_that_compiles() -> None:
    found = told(turn=0)
    # Two runs on trial, as a tuner would make many, and the one that counts; a known key is not tried again.
    assert found["chosen"] == [
        {"n": 1, "runs": [64, 64, 64]},
        {"n": 2, "runs": [128, 128, 128]},
        {"n": 3, "runs": [128, 128, 128]},
        {"n": 3, "runs": [128]},
        {"n": 4, "runs": [64, 64, 64]},
    ]


def test_what_was_run_is_reported_of_all_that_there_is() -> None:
    [facts] = told(turn=0)["facts"]
    assert facts["of"] == 3
    assert [config["BLOCK"] for config in facts["tried"]] == [64, 128]


def test_processes_that_share_the_cases_start_apart() -> None:
    assert told(turn=2)["chosen"][0] == {"n": 1, "runs": [128, 128, 128]}
