"""Making an environment in the user's cache folder: locked, logged, and whole before anyone uses it.

Each attempt has a folder of its own; a small file that is put in place last points to the one that succeeded.
An attempt that ended early is therefore never used, and the next one removes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pytorch_to_triton_launcher import checkout
from pytorch_to_triton_launcher.base_python import FALLBACK_PYTHON, base_python
from pytorch_to_triton_launcher.environment import (
    HERE,
    Environment,
    environment_of,
    lacking,
    made_before,
    own_python_hint,
)
from pytorch_to_triton_launcher.problem import Problem

WAIT_SECONDS = 0.5
FOREIGN = ("PYTHONPATH", "PYTHONHOME")
"""What would let an installer take another environment's packages for this one's."""
CAUSES = (
    (
        r"No space left on device|Disk quota",
        "The disk is full: PyTorch with its CUDA libraries takes several GB.",
    ),
    (
        r"[Nn]ame resolution|[Cc]onnection|[Tt]imed? ?out|sending request|dns error|Network is unreach",
        "The package index was not reached: check the network, the proxy and the configuration of pip or uv.",
    ),
    (
        r"No matching distribution|Could not find a version|no wheels|No solution found",
        "A package has no build for this Python or this machine: PyTorch and Triton need Linux.",
    ),
    (r"Permission denied|Read-only file system", "The cache folder cannot be written."),
)


@dataclass(frozen=True)
class Progress:
    """How far the making is."""

    stage: str
    log: Path | None = None

    def last_line(self) -> str:
        """The log's last line, or nothing."""
        lines = self.tail(1)
        return lines[-1] if lines else ""

    def tail(self, count: int) -> list[str]:
        """The log's last lines that are not empty."""
        try:
            text = self.log.read_bytes()[-8192:].decode("utf-8", "replace") if self.log else ""
        except OSError:
            return []
        return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()][-count:]


class Making:
    """One making of an environment, in this process; `progress` may be read from any thread."""

    def __init__(self) -> None:
        self.passed: list[Progress] = []
        """Every stage so far, for whoever looks too seldom to see each."""
        self.progress = Progress("looking for an environment")
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()

    @property
    def progress(self) -> Progress:
        """The stage that it is in."""
        return self.passed[-1]

    @progress.setter
    def progress(self, now: Progress) -> None:
        if not self.passed or self.passed[-1].stage != now.stage:
            self.passed.append(now)

    def run(self) -> Environment:
        """Make the environment, or wait until another launch has. Raises Problem."""
        folder = checkout.environments()
        base, spec = base_python()
        key = f"{checkout.version()}-py{spec}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._lock(folder / f"{key}.lock", folder / f"{key}.log"):
                made = made_before()
                if made is None or lacking(str(made)) != []:
                    made = self._make(folder, key, base)
        except OSError as error:
            raise Problem(
                f"The environment cannot be made in {folder}: {error.strerror or error}.",
                "Name another folder with PYTORCH_TO_TRITON_CACHE.",
            ) from error
        return environment_of(str(made))

    def end(self) -> None:
        """End the installer, from another thread; what it left is removed by the next attempt."""
        self._ending.set()
        process = self._process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def _lock(self, file: Path, log: Path) -> Iterator[None]:
        with open(file, "a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self.progress = Progress("waiting for another launch, which is making it", log)
                if self._ending.wait(WAIT_SECONDS):
                    raise Problem("The set-up was ended.", "Start it again.")
            yield

    def _make(self, folder: Path, key: str, base: str | None) -> Path:
        for unfinished in folder.glob(f"{key}-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        place, log = folder / f"{key}-{secrets.token_hex(4)}", folder / f"{key}.log"
        log.write_text("", encoding="utf-8")
        python = place / "bin" / "python"
        uv = shutil.which("uv")
        self.progress = Progress(f"creating an environment with {'uv' if uv else 'venv'}", log)
        if uv:
            create = [uv, "venv", "--no-project", "--python", base or FALLBACK_PYTHON, str(place)]
            install = [uv, "pip", "install", "--python", str(python), "--compile-bytecode"]
        else:
            create = [base or sys.executable, "-m", "venv", str(place)]
            install = [
                str(python),
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--progress-bar",
                "off",
            ]
        self._done(create, log)
        self.progress = replace(self.progress, stage="installing PyTorch, Triton and what the tools need")
        self._install(install, log)
        self.progress = replace(self.progress, stage="checking the environment")
        self._done([str(python), str(HERE / "enter.py"), "--version"], log)
        _put(folder / f"{key}.json", {"python": str(python)})
        return python

    def _install(self, install: list[str], log: Path) -> None:
        """With the versions that were tested, else with any that fit."""
        project = str(checkout.ROOT)
        if checkout.CONSTRAINTS.is_file():
            if self._run([*install, "--constraint", str(checkout.CONSTRAINTS), project], log) == 0:
                return
            _write(log, "The tested versions cannot be installed here. Trying any that fit.")
        self._done([*install, project], log)

    def _done(self, command: Sequence[str], log: Path) -> None:
        """Run a command. Raises Problem if it fails."""
        if self._run(command, log) != 0:
            raise failure(Progress(self.progress.stage, log))

    def _run(self, command: Sequence[str], log: Path) -> int:
        """The command's exit status; what it prints goes to the log."""
        if self._ending.is_set():
            raise Problem("The set-up was ended.", "Start it again.")
        _write(log, "$ " + " ".join(command))
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=checkout.environments(),  # the folder of the caller's project may configure the installer
                env={name: value for name, value in os.environ.items() if name not in FOREIGN},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its own processes end with it
            )
            return self._process.wait()


def failure(progress: Progress) -> Problem:
    """What the log says about a step that failed."""
    lines = progress.tail(60)
    text = "\n".join(lines)
    errors = [line for line in lines if re.match(r"(ERROR|error|  ?×|.*Error):?", line)]
    said = (errors or lines or ["nothing was logged"])[-1]
    causes = [cause for pattern, cause in CAUSES if re.search(pattern, text)]
    hints = [*causes[:1], f"{progress.log} has the whole log.", own_python_hint()]
    return Problem(f"The set-up failed while {progress.stage}: {said[:500]}", " ".join(hints))


def _write(log: Path, line: str) -> None:
    with open(log, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def _put(file: Path, content: dict[str, str]) -> None:
    """Write a file whole or not at all."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(json.dumps(content) + "\n", encoding="utf-8")
    part.replace(file)


def watch(making: Making, thread: threading.Thread) -> None:
    """Tell a person on stderr how far a making is, until its thread has ended."""
    shown, since = 1, time.monotonic()  # it is hardly ever long in the first stage
    while True:
        is_last_look = not thread.is_alive()
        for progress in making.passed[shown:]:
            shown += 1
            print(
                f"pytorch-to-triton: {progress.stage}" + (f" (log: {progress.log})" if progress.log else ""),
                file=sys.stderr,
            )
        if is_last_look:
            return
        if sys.stderr.isatty():
            line = f"{time.monotonic() - since:.0f} s  {making.progress.last_line()}"
            print(f"\r\x1b[K{line[:100]}\r", end="", file=sys.stderr, flush=True)
        thread.join(WAIT_SECONDS)
