"""How Triton kernels run in this process: interpreted on the CPU, or compiled for the device."""

import contextlib
import importlib
import os
from contextlib import AbstractContextManager
from typing import Any

SIGNS_OF_A_CHECK = ("PYTEST_", "CI", "GITHUB_", "GITLAB_", "BUILDKITE", "JENKINS", "TOX_", "COVERAGE")
"""Environment variables by which a candidate could tell that it is being looked at."""

JOBS_AT_ONCE = 4


def enter_runtime(runtime: dict[str, Any]) -> None:
    """Settle the environment, then import what every job needs; no tensor operation, no device is touched.

    The order matters: triton reads TRITON_INTERPRET when it is imported.
    """
    for name in [name for name in os.environ if name.startswith(SIGNS_OF_A_CHECK)]:
        del os.environ[name]
    if runtime["interpreter"]:
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        os.environ.pop("TRITON_INTERPRET", None)
    if runtime["devices"] is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = runtime["devices"]
    # Several jobs run at once: threads of each on all cores would wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // JOBS_AT_ONCE)))
    for name in ("torch", "triton", "triton.language"):
        importlib.import_module(name)
    if runtime["interpreter"]:
        importlib.import_module(".interpreter", __package__).install()
    else:
        know_triton()


def know_triton() -> None:
    """Have Triton digest its own files, as it does at a process's first compilation: for half a second."""
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module("triton.runtime.cache").triton_key()


def as_on_a_gpu() -> AbstractContextManager[None]:
    """Inside, code that was written for a GPU finds one: under the interpreter, the CPU stands in for it."""
    if not interpreting():
        return contextlib.nullcontext()
    fake: AbstractContextManager[None] = importlib.import_module(
        ".interpreter.fake_cuda", __package__
    ).fake_gpu()
    return fake


def interpreting() -> bool:
    """Whether kernels run under Triton's interpreter here."""
    return os.environ.get("TRITON_INTERPRET") == "1"
