"""Finding a Python that has what the checkout needs, and running the checkout in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "server" / "launch.py"
OLDEST_PYTHON = "3.11"
_PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
VERSION = re.findall(r'^version = "([^"]+)"$', _PROJECT, re.MULTILINE)[0]
REQUIREMENTS = re.findall(
    r'"([^"]+)"', re.findall(r"^dependencies = \[(.*?)^\]", _PROJECT, re.MULTILINE | re.DOTALL)[0]
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
    """Why the program cannot be started, and what to do about it: two arguments, both whole sentences."""


def usable_python() -> str | None:
    """The first that has everything: the named one alone if there is one, else the candidates."""
    named = os.environ.get(NAMED_BY)
    pythons = [path_of(named)] if named else list(dict.fromkeys(_candidates()))
    with ThreadPoolExecutor() as pool:
        lacks = zip(pythons, pool.map(lacking, pythons))
        return next((python for python, missing in lacks if missing == []), None)


def path_of(python: str) -> str:
    """Of a Python that is named by its path or as a command."""
    return os.path.abspath(shutil.which(os.path.expanduser(python)) or python)


def lacking(python: str) -> list[str] | None:
    """What a Python lacks, in words; None if it cannot be run."""
    probe = [python, str(Path(__file__).with_name("probe.py")), f"Python>={OLDEST_PYTHON}", *REQUIREMENTS]
    try:
        done = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS)
        missing: list[str] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return missing


def environments() -> Path:
    """The folder of the environments that launches made, below `places.cache()`: a test compares the two."""
    named = os.environ.get("PYTORCH_TO_TRITON_CACHE")
    if named:
        return Path(named).expanduser().resolve() / "environments"
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    base = "" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME", "").strip()
    return Path(base or usual) / "pytorch-to-triton" / "environments"


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
    yield from (sys.executable, made_before())
