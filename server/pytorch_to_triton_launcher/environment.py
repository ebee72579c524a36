"""Finding a Python that has what the checkout needs, and how it is started."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton_launcher import checkout
from pytorch_to_triton_launcher.problem import Problem

HERE = Path(__file__).resolve().parent
NAMED_BY = "PYTORCH_TO_TRITON_PYTHON"
PROGRAM = "PYTORCH_TO_TRITON_PROGRAM"
"""Tells the program by which command it was started, as JSON, for the commands that it prints."""
PROBE_SECONDS = 20.0


@dataclass(frozen=True)
class Environment:
    """A Python that can run the checkout."""

    python: str
    shown_as: tuple[str, ...]
    """The command that starts the program in it from any folder; empty where it has a program of its own."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """What runs a command of the checkout."""
        return [self.python, str(HERE / "enter.py"), *arguments]

    def variables(self) -> dict[str, str]:
        """The environment variables of that command."""
        shown = {PROGRAM: json.dumps(self.shown_as)} if self.shown_as else {}
        return {**os.environ, **shown}


def find() -> Environment | None:
    """The first usable environment: the named one, the checkout's, the active one, one that a launch made.

    Raises Problem where the named one cannot be used.
    """
    named = os.environ.get(NAMED_BY)
    if named:
        return _named(named)
    own = checkout.ROOT / ".venv" / "bin" / "python"
    made = made_before()
    candidates = [python for python in (own, *_active(), made) if python is not None]
    probes = {python: _Probe(python) for python in dict.fromkeys(map(str, candidates))}
    try:
        for python, probe in probes.items():
            if probe.lacking() == []:
                return environment_of(python)
    finally:
        for probe in probes.values():
            probe.end()
    return None


def environment_of(python: str) -> Environment:
    """The environment of a usable Python, with the command that finds it again."""
    if Path(python) == checkout.ROOT / ".venv" / "bin" / "python":
        return Environment(python, ())
    ours = checkout.environments() in Path(python).parents
    return Environment(
        python, (sys.executable if ours else python, str(checkout.ROOT / "server" / "launch.py"))
    )


def made_before() -> Path | None:
    """The Python of the environment that an earlier launch made for this version, if it is whole."""
    for pointer in sorted(checkout.environments().glob(f"{checkout.version()}-py*.json")):
        try:
            python = Path(json.loads(pointer.read_text(encoding="utf-8"))["python"])
        except (OSError, ValueError, KeyError):
            continue
        if python.exists():
            return python
    return None


def lacking(python: str) -> list[str] | None:
    """What a Python lacks, in words; None if it cannot be run."""
    return _Probe(python).lacking()


def own_python_hint() -> str:
    """How to do without an environment of the launcher's own."""
    return f"To use a Python that has what the project needs, set {NAMED_BY} to its path, and start again."


def _named(named: str) -> Environment:
    python = shutil.which(os.path.expanduser(named))
    missing = lacking(python) if python else None
    if python is None or missing is None:
        raise Problem(
            f"{NAMED_BY} names {named}, which is no Python that runs.", f"Correct or unset {NAMED_BY}."
        )
    if missing:
        raise Problem(
            f"{NAMED_BY} names {named}, which lacks {', '.join(missing)}.",
            f"Install that into it, or unset {NAMED_BY}: then an environment is made.",
        )
    return environment_of(os.path.abspath(python))


def _active() -> Iterator[Path]:
    """The Pythons of the shell or the editor that started the launcher, and its own."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "bin" / "python"
    for name in ("python3", "python"):
        found = shutil.which(name)
        if found:
            yield Path(found).absolute()
    yield Path(sys.executable)


class _Probe:
    """One Python that is asked what it lacks, while others are."""

    def __init__(self, python: str) -> None:
        oldest = ".".join(map(str, checkout.OLDEST_PYTHON))
        command = [python, str(HERE / "probe.py"), oldest, *checkout.requirements()]
        self._process: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # there is no such Python
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )

    def lacking(self) -> list[str] | None:
        """What it lacks, in words; None if it cannot be run."""
        if self._process is None:
            return None
        try:
            printed, _ = self._process.communicate(timeout=PROBE_SECONDS)
            missing: list[str] = json.loads(printed)
        except (subprocess.TimeoutExpired, ValueError):
            return None
        finally:
            self.end()
        return missing

    def end(self) -> None:
        """End the process if it still runs."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
