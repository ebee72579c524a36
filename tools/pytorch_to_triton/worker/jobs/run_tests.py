"""Job `run_tests`: run a file of tests as its owner would, with pytest, in a Python of its own."""

import importlib.util
import os
import subprocess
import sys
from typing import Any

from ..job_report import JobReport

MOST_CHARACTERS = 4000
"""Of the output's end."""


def work(report: JobReport, file: str) -> dict[str, Any]:
    """pytest's exit status and the end of its output; no status where pytest is missing."""
    report.during("test")
    if importlib.util.find_spec("pytest") is None:
        return {"status": None, "output": ""}
    # Without what this process has set for kernels: the file itself chooses between GPU and interpreter.
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short",
         "--show-capture=no", "-p", "no:cacheprovider", "--rootdir", os.path.dirname(file), "-c", os.devnull,
         file],
        cwd=os.path.dirname(file),
        # The file needs no plugins of pytest; some of those that are installed take seconds to import.
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )  # fmt: skip
    return {"status": done.returncode, "output": done.stdout[-MOST_CHARACTERS:]}
