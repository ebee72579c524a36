"""Finding or making an environment that has what the checkout needs, and running the checkout in it.

Environments are made in the user's cache folder: locked, logged, and whole before anyone uses them. Each
attempt has a folder of its own; a link that is put in place last leads to the one that succeeded. An attempt
that ended early is therefore never used, and the next one removes it.

Run by another Python with requirements as arguments, this file prints which of them that one lacks.
"""

from __future__ import annotations

import fcntl
import json
import operator
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata, util
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
SAYING = "pytorch-to-triton: "
"""Begins what is said on stderr of how far the making is."""
PYTHONS = ("python3.12", "python3.13", "python3.11", "python3.14", "python3")
CAUSES = {
    r"No space left|Disk quota": "The disk is full: PyTorch with its CUDA libraries takes several GB.",
    r"[Nn]ame resolution|[Cc]onnection|[Tt]imed? ?out|sending request|dns error|Network is unreach": (
        "The package index was not reached: check the network, the proxy and the configuration of pip or uv."
    ),
    "AssertionError|ensurepip": (
        f"Python {OLDEST_PYTHON} or newer with its module venv is needed, or uv, which fetches one: install "
        "one of them (on Debian: apt install python3-venv)."
    ),
}
"""What an installer's messages mean."""
COMPARED = {">=": operator.ge, "<=": operator.le, "==": operator.eq, "<": operator.lt, ">": operator.gt}


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
    probe = [python, __file__, f"Python>={OLDEST_PYTHON}", *REQUIREMENTS]
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


def make() -> str:
    """Make the environment, or wait until another launch has; stderr says how far it is. Returns its Python.

    Raises Problem.
    """
    if named := os.environ.get(NAMED_BY):
        missing = lacking(path_of(named))
        why = "is not a Python that runs" if missing is None else f"lacks {', '.join(missing)}"
        raise Problem(
            f"{NAMED_BY} names {named}, which {why}.",
            f"Correct that, or unset {NAMED_BY}: then an environment is made.",
        )
    folder = environments()
    log = folder / f"{VERSION}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{VERSION}.lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say("waiting for another launch, which is making it", log)
                fcntl.flock(lock, fcntl.LOCK_EX)
            if lacking(made_before()) != []:
                _make(folder, log)
    except OSError as error:
        raise Problem(
            f"The environment cannot be made in {folder}: {error.strerror or error}.",
            "Name another folder with PYTORCH_TO_TRITON_CACHE.",
        ) from error
    return made_before()


def _make(folder: Path, log: Path) -> None:
    for unfinished in folder.glob(f"{VERSION}-*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    log.write_text("", encoding="utf-8")
    place = folder / f"{VERSION}-{secrets.token_hex(4)}"
    python = str(place / "bin" / "python")
    if uv := shutil.which("uv"):
        create = [[uv, "venv", "--no-project", "--python", f">={OLDEST_PYTHON},<3.15", str(place)]]
        install = [uv, "pip", "install", "--python", python, "--compile-bytecode"]
    else:
        oldest = OLDEST_PYTHON.replace(".", ",")
        code = f"import sys, venv; assert sys.version_info >= ({oldest}); venv.main([{str(place)!r}])"
        pythons = filter(None, [sys.executable, *map(shutil.which, PYTHONS)])
        create = [[base, "-c", code] for base in pythons]
        install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    _step("creating an environment", log, *create)
    tested = [*install, "--constraint", str(ROOT / "constraints.txt"), str(ROOT)]
    _step("installing PyTorch, Triton and what the tools need", log, tested, [*install, str(ROOT)])
    _step("checking the environment", log, [python, "-c", ENTER, "--version"])
    link = folder / f".{place.name}"
    link.symlink_to(place.name)
    link.replace(folder / VERSION)


def _step(name: str, log: Path, *alternatives: list[str]) -> None:
    """Run the first of these commands that succeeds. Raises Problem, as the log has it, if none does."""
    _say(name, log)
    # The folder of the caller's project may configure the installer, and these variables would mislead it.
    variables = {name: os.environ[name] for name in {*os.environ} - {"PYTHONPATH", "PYTHONHOME"}}
    null = subprocess.DEVNULL
    with open(log, "ab", buffering=0) as out:
        for command in alternatives:
            out.write(f"$ {' '.join(command)}\n".encode())
            if (
                subprocess.call(command, cwd=log.parent, env=variables, stdin=null, stdout=out, stderr=out)
                == 0
            ):
                return
    text = log.read_bytes()[-8192:].decode("utf-8", "replace")
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    errors = [line for line in lines if re.match(r"(ERROR|error|×|.*Error):?", line)]
    causes = [cause for pattern, cause in CAUSES.items() if re.search(pattern, text)]
    hints = [*causes[:1], f"{log} has the whole log.", HINT]
    raise Problem(f"The set-up failed while {name}: {(errors or lines)[-1][:500]}", " ".join(hints))


def _say(stage: str, log: Path) -> None:
    print(f"{SAYING}{stage} (log: {log})", file=sys.stderr, flush=True)


def _shortage(requirement: str) -> str | None:
    """What is absent or of another release, in words; None if nothing is."""
    named, _, marker = requirement.partition(";")
    if "'Linux'" in marker and sys.platform != "linux":
        return None
    name, bounds = re.findall(r"([\w.-]+)\s*(.*)", named)[0]
    try:
        version = sys.version.split()[0] if name == "Python" else metadata.version(name)
    except metadata.PackageNotFoundError:
        # Builds for other GPUs have other names as distributions, but not as modules.
        return None if name in ("torch", "triton") and util.find_spec(name) else name
    parts = re.findall(r"([<>=]+)\s*([\d.]+)", bounds)
    fits = all(COMPARED[sign](_numbers(version), _numbers(bound)) for sign, bound in parts)
    return None if fits else f"{name} {version} (needs {bounds.strip()})"


def _numbers(version: str) -> list[int]:
    """A release's numbers, 0 for those it does not state: [2, 13, 0, 0] of 2.13.0+cpu."""
    stated = re.findall(r"\d+", re.split(r"[^\d.]", version)[0])
    return [*map(int, stated), 0, 0, 0, 0][:4]


if __name__ == "__main__":
    print(json.dumps([*filter(None, map(_shortage, sys.argv[1:]))]))
