"""Finding a Python that an environment can be made of."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

from pytorch_to_triton_launcher import checkout
from pytorch_to_triton_launcher.environment import own_python_hint
from pytorch_to_triton_launcher.problem import Problem

FALLBACK_PYTHON = "3.12"
"""What uv is asked for where no Python here is new enough."""


def base_python() -> tuple[str | None, str]:
    """A Python to make the environment of, and its version as 3.12; None where uv has to find one.

    Raises Problem where there is none, or nothing to make an environment with.
    """
    uv = shutil.which("uv")
    for python in _pythons():
        found = _version(python)
        if found is None or found < checkout.OLDEST_PYTHON:
            continue
        if uv is None and not _has_venv(python):
            raise Problem(
                f"{python} has no venv module, and there is no uv.",
                f"Install one of them (on Debian: apt install python3-venv). {own_python_hint()}",
            )
        return python, "{}.{}".format(*found)
    if uv is not None:
        return None, FALLBACK_PYTHON
    oldest = "{}.{}".format(*checkout.OLDEST_PYTHON)
    raise Problem(
        "{} is Python {}.{}; Python ".format(sys.executable, *sys.version_info[:2])
        + f"{oldest} or newer is needed, and there is neither one on PATH nor uv, which would fetch one.",
        f"Install Python {oldest} or newer, or uv. {own_python_hint()}",
    )


def _pythons() -> Iterator[str]:
    yield sys.executable
    for name in ("python3.12", "python3.13", "python3.11", "python3.14", "python3"):
        found = shutil.which(name)
        if found:
            yield found


def _version(python: str) -> tuple[int, int] | None:
    code = "import sys; print(*sys.version_info[:2])"
    try:
        printed = subprocess.run([python, "-c", code], capture_output=True, check=True, timeout=20).stdout
        major, minor = printed.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return int(major), int(minor)


def _has_venv(python: str) -> bool:
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
