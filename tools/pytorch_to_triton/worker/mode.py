"""How Triton kernels run in this process: interpreted on the CPU, or compiled for the device."""

import contextlib
import importlib
import os
from contextlib import AbstractContextManager
from typing import Any

SIGNS_OF_A_CHECK = ("PYTEST_", "CI", "GITHUB_", "GITLAB_", "BUILDKITE", "JENKINS", "TOX_", "COVERAGE")
"""Environment variables by which a candidate could tell that it is being looked at."""


def enter_mode(mode: dict[str, Any]) -> None:
    """Settle the environment, then import what every job needs; no tensor operation, no device is touched.

    The order matters: triton reads TRITON_INTERPRET when it is imported.
    """
    for name in [name for name in os.environ if name.startswith(SIGNS_OF_A_CHECK)]:
        del os.environ[name]
    if mode["interpreter"]:
        os.environ["TRITON_INTERPRET"] = "1"
    else:
        os.environ.pop("TRITON_INTERPRET", None)
    if mode["devices"] is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = mode["devices"]
    # export._trace is what torch.export.export imports at its first call: over a second, paid once here.
    for name in ("torch", "triton", "triton.language", "torch.export", "torch.export._trace"):
        importlib.import_module(name)
    if mode["interpreter"]:
        importlib.import_module(".interpreter", __package__).install()


def as_on_a_gpu() -> AbstractContextManager[None]:
    """Inside, code that was written for a GPU finds one: under the interpreter, the CPU stands in for it."""
    if not interpreting():
        return contextlib.nullcontext()
    stand_in: AbstractContextManager[None] = importlib.import_module(
        ".interpreter.cuda_stand_in", __package__
    ).standing_in()
    return stand_in


def interpreting() -> bool:
    """Whether kernels run under Triton's interpreter here."""
    return os.environ.get("TRITON_INTERPRET") == "1"
