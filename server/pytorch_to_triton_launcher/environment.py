"""Finding a Python that has what the checkout needs, and running the checkout in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from pytorch_to_triton_launcher.checkout import (
    LAUNCH,
    OLDEST_PYTHON,
    REQUIREMENTS,
    ROOT,
    VERSION,
    environments,
)

NAMED_BY = "PYTORCH_TO_TRITON_PYTHON"
PROGRAM = "PYTORCH_TO_TRITON_PROGRAM"
"""Tells the program by which command it was started, as JSON, for the commands that it prints."""
HINT = f"To use a Python that has what the project needs, set {NAMED_BY} to its path, and start again."
ENTER = (
    f"import runpy, sys; sys.path[:1] = {[str(ROOT / 'server'), str(ROOT / 'tools')]}; "
    "runpy.run_module('pytorch_to_triton_server', run_name='__main__', alter_sys=True)"
)
"""Runs the checkout. PYTHONPATH would lead the processes that run kernels to it as well."""
OF_CHECKOUT = str(ROOT / ".venv" / "bin" / "python")
PROBE_SECONDS = 20.0


class Problem(Exception):
    """Why the program cannot be started; `hint` is what to do about it. Both are whole sentences."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}\n{hint}")
        self.message, self.hint = message, hint


def usable_python() -> str | None:
    """The first that has everything: the named one, the checkout's, the active one, the one that was made.

    Raises Problem where the named one cannot be used.
    """
    if os.environ.get(NAMED_BY):
        return _named(os.environ[NAMED_BY])
    pythons = list(dict.fromkeys(_candidates()))
    with ThreadPoolExecutor() as pool:
        lacks = zip(pythons, pool.map(lacking, pythons))
        return next((python for python, missing in lacks if missing == []), None)


def lacking(python: str) -> list[str] | None:
    """What a Python lacks, in words; None if it cannot be run."""
    probe = [python, str(Path(__file__).with_name("probe.py")), f"Python>={OLDEST_PYTHON}", *REQUIREMENTS]
    try:
        done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS)
        missing: list[str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return missing


def made_before() -> str:
    """The Python of the environment that launches make for this version, whether or not it is there."""
    return str(environments() / VERSION / "bin" / "python")


def become(python: str, arguments: Sequence[str], **variables: str) -> NoReturn:
    """Run a command of the checkout in the place of this process."""
    if python != OF_CHECKOUT:  # which has a program of its own
        lasting = sys.executable if python == made_before() else python
        variables[PROGRAM] = json.dumps([lasting, str(LAUNCH)])
    os.execve(python, [python, "-c", ENTER, *arguments], {**os.environ, **variables})


def _candidates() -> Iterator[str]:
    """The checkout's, those of the shell or editor that started the launcher, its own, one that was made."""
    yield OF_CHECKOUT
    folders = filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX")))
    yield from (os.path.join(folder, "bin", "python") for folder in folders)
    yield from map(os.path.abspath, filter(None, map(shutil.which, ("python3", "python"))))
    yield sys.executable
    yield made_before()


def _named(named: str) -> str:
    python = os.path.abspath(shutil.which(os.path.expanduser(named)) or named)
    missing = lacking(python)
    if missing is None:
        raise Problem(
            f"{NAMED_BY} names {named}, which is no Python that runs.", f"Correct or unset {NAMED_BY}."
        )
    if missing:
        raise Problem(
            f"{NAMED_BY} names {named}, which lacks {', '.join(missing)}.",
            f"Install that into it, or unset {NAMED_BY}: then an environment is made.",
        )
    return python
