"""Which settings of the process were changed since they were first seen, and which threads are left running.

Processes are refused when they start.
"""

import functools
import gc
import operator
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .frames import owner_of

ENVIRONMENT = ("TRITON_", "CUDA_", "TORCH", "PYTORCH", "NVIDIA_")
SET_BY_TORCH = frozenset({
    "CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_FX_GRAPH_CACHE", "TRITON_PTXAS_PATH",
})  # fmt: skip
"""torch sets these itself when CUDA starts, and when it compiles."""
Value = str | int | float | None


class SettingsSnapshot:
    """What the settings are now is compared with what they were when this was made."""

    def __init__(self) -> None:
        self._before = settings()
        self._noted: dict[str, dict[str, Any]] = {}

    def note(self) -> None:
        """Have `changed` report what is set now, even if it is put back: a hook may remove itself."""
        now = settings()
        for name in {**self._before, **now}:
            if self._before.get(name) != now.get(name):
                change = {"name": name, "before": self._before.get(name), "now": now.get(name)}
                self._noted.setdefault(name, change)

    def changed(self) -> list[dict[str, Any]]:
        """`{"name": "torch.backends.cuda.matmul.allow_tf32", "before": ..., "now": ...}` for each."""
        self.note()
        return [*self._noted.values()]


def settings() -> dict[str, Value]:
    """Every setting by name; what this torch does not have, or refuses to read is named as such."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            **{f"torch.{name}": read(functools.partial(of_torch, name)) for name in TORCH_SETTINGS},
            **{name: read(getter) for name, getter in OTHER_SETTINGS.items()},
            **{name: plain(signal.getsignal(number)) for name, number in SIGNALS.items()},
            **{f"os.environ[{name!r}]": os.environ[name] for name in os.environ if is_watched(name)},
        }


def read(getter: Callable[[], object]) -> Value:
    try:
        return plain(getter())
    except Exception as error:  # whatever a getter of some torch raises, it is no reason to stop
        return f"not available: {type(error).__name__}"


def plain(value: object) -> Value:
    """The value as JSON holds it; of an object of the author's, nothing that it claims."""
    if value is None or type(value) in (bool, int, float, str):
        assert value is None or isinstance(value, bool | int | float | str)
        return value
    is_from_torch = type(value).__module__.partition(".")[0] in ("torch", "builtins", "signal", "functools")
    return repr(value) if is_from_torch else object.__repr__(value)


def of_torch(name: str) -> object:
    """A setting, or what the function of this name says. Reading one starts no device."""
    value = operator.attrgetter(name)(torch)
    return value() if callable(value) else value


TORCH_SETTINGS = (
    "get_default_dtype", "get_default_device", "is_grad_enabled", "is_inference_mode_enabled",
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "is_anomaly_enabled", "get_num_threads", "get_num_interop_threads",
    "backends.cuda.matmul.allow_tf32", "backends.cuda.matmul.fp32_precision",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "backends.cudnn.allow_tf32", "backends.cudnn.benchmark", "backends.cudnn.enabled",
    "backends.cudnn.deterministic",
)  # fmt: skip
OTHER_SETTINGS: dict[str, Callable[[], object]] = {
    "torch.is_autocast_enabled('cpu')": lambda: torch.is_autocast_enabled("cpu"),
    "torch.is_autocast_enabled('cuda')": lambda: torch.is_autocast_enabled("cuda"),
    "sys.settrace": sys.gettrace,
    "sys.setprofile": sys.getprofile,
    "threading.settrace": threading.gettrace,
    "threading.setprofile": threading.getprofile,
    "len(gc.callbacks)": lambda: len(gc.callbacks),
    "os.getcwd": os.getcwd,
    "sys.stdout": lambda: object.__repr__(sys.stdout),
    "sys.stderr": lambda: object.__repr__(sys.stderr),
    "len(sys.meta_path)": lambda: len(sys.meta_path),
}
SIGNALS = {f"signal {getattr(number, 'name', number)}": int(number) for number in signal.valid_signals()}


def is_watched(variable: str) -> bool:
    return variable.startswith(ENVIRONMENT) and variable not in SET_BY_TORCH


class Leftovers:
    """What runs now is compared with what ran when this was made.

    Threads without Python code (torch's own pools) are invisible to it.
    """

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())

    def found(self) -> list[dict[str, str]]:
        """`{"kind": "thread", "name": ...}` for each."""
        new = (thread for thread in threading.enumerate() if thread not in self._threads)
        return [{"kind": "thread", "name": thread.name} for thread in new if not is_machinery(thread)]


def is_machinery(thread: threading.Thread) -> bool:
    """Whether torch or this worker runs the thread for itself, or native code that called Python once."""
    code = getattr(getattr(thread, "_target", None) or type(thread).run, "__code__", None)
    runs = owner_of(code.co_filename) if code else "author"
    return runs in ("torch", "worker") or isinstance(thread, threading._DummyThread)
