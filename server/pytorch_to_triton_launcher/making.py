"""Making an environment in the user's cache folder: locked, logged, and whole before anyone uses it.

Each attempt has a folder of its own; a link that is put in place last leads to the one that succeeded.
An attempt that ended early is therefore never used, and the next one removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from pytorch_to_triton_launcher import environment
from pytorch_to_triton_launcher.environment import ENTER, HINT, OLDEST_PYTHON, ROOT, VERSION, Problem

SAYING = "pytorch-to-triton: "
"""Begins what is said on stderr of how far the making is."""
PYTHONS = ("python3.12", "python3.13", "python3.11", "python3.14", "python3")
CAUSES = {
    r"No space left|Disk quota": "The disk is full: PyTorch with its CUDA libraries takes several GB.",
    r"[Nn]ame resolution|[Cc]onnection|[Tt]imed? ?out|sending request|dns error|Network is unreach": (
        "The package index was not reached: check the network, the proxy and the configuration of pip or uv."
    ),
}
"""What an installer's messages mean."""


def make() -> str:
    """Make the environment, or wait until another launch has; stderr says how far it is. Returns its Python.

    Raises Problem.
    """
    if named := os.environ.get(environment.NAMED_BY):
        missing = environment.lacking(environment.path_of(named))
        why = "is no Python that runs" if missing is None else f"lacks {', '.join(missing)}"
        raise Problem(
            f"{environment.NAMED_BY} names {named}, which {why}.",
            f"Correct that, or unset {environment.NAMED_BY}: then an environment is made.",
        )
    folder = environment.environments()
    log = folder / f"{VERSION}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{VERSION}.lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say("waiting for another launch, which is making it", log)
                fcntl.flock(lock, fcntl.LOCK_EX)
            if environment.lacking(environment.made_before()) != []:
                _make(folder, log)
    except OSError as error:
        raise Problem(
            f"The environment cannot be made in {folder}: {error.strerror or error}.",
            "Name another folder with PYTORCH_TO_TRITON_CACHE.",
        ) from error
    return environment.made_before()


def _make(folder: Path, log: Path) -> None:
    for unfinished in folder.glob(f"{VERSION}-*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    log.write_text("", encoding="utf-8")
    place = folder / f"{VERSION}-{secrets.token_hex(4)}"
    python = str(place / "bin" / "python")
    if uv := shutil.which("uv"):
        create = [uv, "venv", "--no-project", "--python", f">={OLDEST_PYTHON},<3.15"]
        install = [uv, "pip", "install", "--python", python, "--compile-bytecode"]
    else:
        create = [base_python(), "-m", "venv"]
        install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    _step("creating an environment", log, [*create, str(place)])
    tested = [*install, "--constraint", str(ROOT / "constraints.txt"), str(ROOT)]
    _step("installing PyTorch, Triton and what the tools need", log, tested, [*install, str(ROOT)])
    _step("checking the environment", log, [python, "-c", ENTER, "--version"])
    link = folder / f".{place.name}"
    link.symlink_to(place.name)
    link.replace(folder / VERSION)


def base_python() -> str:
    """A Python to make the environment of. Raises Problem."""
    needs = f"import sys, venv, ensurepip; assert sys.version_info >= ({OLDEST_PYTHON.replace('.', ',')})"
    for python in filter(None, [sys.executable, *map(shutil.which, PYTHONS)]):
        if subprocess.run([python, "-c", needs], capture_output=True).returncode == 0:
            return python
    raise Problem(
        f"{sys.executable} is Python {sys.version_info[0]}.{sys.version_info[1]}; Python {OLDEST_PYTHON} or "
        "newer with its module venv is needed, or uv, which fetches one.",
        f"Install one of them (on Debian: apt install python3-venv). {HINT}",
    )


def _step(name: str, log: Path, *alternatives: list[str]) -> None:
    """Run the first of these commands that succeeds. Raises Problem, as the log has it, if none does."""
    _say(name, log)
    if any(_status(command, log) == 0 for command in alternatives):
        return
    lines = _lines(log)
    errors = [line for line in lines if re.match(r"(ERROR|error|×|.*Error):?", line)]
    causes = [cause for pattern, cause in CAUSES.items() if re.search(pattern, "\n".join(lines))]
    hints = [*causes[:1], f"{log} has the whole log.", HINT]
    raise Problem(f"The set-up failed while {name}: {(errors or lines)[-1][:500]}", " ".join(hints))


def _status(command: list[str], log: Path) -> int:
    """Run a command; what it prints goes to the log, whose last line is shown to whoever watches."""
    # The folder of the caller's project may configure the installer, and these variables would mislead it.
    variables = {name: os.environ[name] for name in {*os.environ} - {"PYTHONPATH", "PYTHONHOME"}}
    with open(log, "ab", buffering=0) as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        process = subprocess.Popen(
            command, cwd=log.parent, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        while True:
            try:
                return process.wait(0.5)
            except subprocess.TimeoutExpired:
                if sys.stderr.isatty():
                    print(f"\r\x1b[K{_lines(log)[-1][:100]}\r", end="", file=sys.stderr, flush=True)
    finally:
        process.kill()


def _say(stage: str, log: Path) -> None:
    print(f"{SAYING}{stage} (log: {log})", file=sys.stderr, flush=True)


def _lines(log: Path) -> list[str]:
    """The log's last lines."""
    text = log.read_bytes()[-8192:].decode("utf-8", "replace")
    return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
