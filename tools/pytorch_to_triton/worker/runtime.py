"""How Triton kernels run in this process: interpreted on the CPU, or compiled for the device."""

import contextlib
import importlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

T = TypeVar("T")

TEST_VARIABLES = ("PYTEST_", "CI", "GITHUB_", "GITLAB_", "BUILDKITE", "JENKINS", "TOX_", "COVERAGE")
"""Prefixes of environment variables by which a candidate could detect that it is being tested."""

JOBS_AT_ONCE = 4
GPU_SHARE_VARIABLE = "PYTORCH_TO_TRITON_GPU_MEMORY_SHARE"
"""Sets the part of a GPU's memory that one process may hold, above 0, at most 1."""


def enter_runtime(runtime: dict[str, Any]) -> None:
    """Set the environment, then import what every job needs; no tensor operation runs, no device is touched.

    The order matters: triton reads TRITON_INTERPRET when it is imported.
    """
    for name in [name for name in os.environ if name.startswith(TEST_VARIABLES)]:
        del os.environ[name]
    if runtime["interpreter"]:
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        os.environ.pop("TRITON_INTERPRET", None)
        # Asking torch for a GPU would start CUDA here, and forked processes could not use it then.
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    if runtime["devices"] is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = runtime["devices"]
    # Several jobs run at once: threads of each on all cores would wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // JOBS_AT_ONCE)))
    for name in ("torch", "triton", "triton.language"):
        importlib.import_module(name)
    if runtime["interpreter"]:
        importlib.import_module(".interpreter", __package__).install()
    else:
        warm_up_triton()
        leave_gpu_memory_to_others()


def warm_up_triton() -> None:
    """Have Triton hash its own files now: at a process's first compilation that takes half a second."""
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module("triton.runtime.cache").triton_key()


def leave_gpu_memory_to_others() -> None:
    """Bound what torch's allocator takes of a GPU, once a process uses one; beyond it is out of memory."""
    share = 0.9
    with contextlib.suppress(ValueError):
        requested = float(os.environ.get(GPU_SHARE_VARIABLE, ""))
        share = requested if 0 < requested <= 1 else share
    with contextlib.suppress(AttributeError):
        cuda = importlib.import_module("torch").cuda
        # Called now, it would take hold of the GPU.
        cuda._lazy_call(lambda: cuda.set_per_process_memory_fraction(share))


def as_on_a_gpu() -> AbstractContextManager[None]:
    """Inside, code written for a GPU finds one: under the interpreter, the CPU poses as it."""
    if not interpreting():
        return contextlib.nullcontext()
    fake: AbstractContextManager[None] = importlib.import_module(
        ".interpreter.fake_cuda", __package__
    ).fake_gpu()
    return fake


def called_with_gpu(call: Callable[[], T]) -> T:
    """What the call returns; under the interpreter, if it raises, what it returns where it finds a GPU.

    If it raises there too, the first error is raised.
    """
    try:
        return call()
    except Exception as error:
        if not interpreting():
            raise
        with as_on_a_gpu(), contextlib.suppress(Exception):
            return call()
        raise error from None


def interpreting() -> bool:
    """Whether kernels run under Triton's interpreter here."""
    return os.environ.get("TRITON_INTERPRET") == "1"
