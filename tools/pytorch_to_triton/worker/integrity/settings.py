"""What a candidate leaves behind in its process: changed settings, replaced functions, running threads.

Each class compares what is with what was when its object was made. Processes are refused when they start.
"""

import functools
import gc
import inspect
import operator
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType

import torch

from ..wire.observation import ChangedSetting, Leftover, Patch
from .frames import TORCH, WORKER, owner_of, owner_of_value
from .sandbox import owner_at

ENVIRONMENT = ("TRITON_", "CUDA_", "TORCH", "PYTORCH", "NVIDIA_")
SET_BY_TORCH = frozenset({
    "CUDA_MODULE_LOADING", "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_FX_GRAPH_CACHE", "TRITON_PTXAS_PATH",
})  # fmt: skip
"""torch sets these itself when CUDA starts, and when it compiles."""
Value = str | int | float | None


class SettingsSnapshot:
    """Settings of the whole process, hooks included."""

    def __init__(self) -> None:
        self._before = settings()
        self._noted: dict[str, ChangedSetting] = {}

    def note(self) -> None:
        """Have `changed` report what is set now, even if it is put back: a hook may remove itself."""
        now = settings()
        for name in {**self._before, **now}:
            if self._before.get(name) != now.get(name):
                change = ChangedSetting(name=name, before=self._before.get(name), now=now.get(name))
                self._noted.setdefault(name, change)

    def changed(self) -> tuple[ChangedSetting, ...]:
        """Those that are other ones now, or were when they were noted."""
        self.note()
        return tuple(self._noted.values())


def settings() -> dict[str, Value]:
    """Every setting by name; what this torch does not have, or refuses to read is named as such."""
    watched = [name for name in os.environ if name.startswith(ENVIRONMENT) and name not in SET_BY_TORCH]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            **{f"torch.{name}": read(functools.partial(of_torch, name)) for name in TORCH_SETTINGS},
            **{name: read(getter) for name, getter in OTHER_SETTINGS.items()},
            **{name: plain(signal.getsignal(number)) for name, number in SIGNALS.items()},
            **{f"os.environ[{name!r}]": os.environ[name] for name in watched},
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


class Leftovers:
    """Threads; those without Python code (torch's own pools) are invisible to it."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())

    def running(self) -> tuple[Leftover, ...]:
        """Those that have been started since."""
        new = (thread for thread in threading.enumerate() if thread not in self._threads)
        return tuple(Leftover(kind="thread", name=t.name) for t in new if not is_machinery(t))


def is_machinery(thread: threading.Thread) -> bool:
    """Whether torch or this worker runs the thread for itself, or native code that called Python once."""
    code = getattr(getattr(thread, "_target", None) or type(thread).run, "__code__", None)
    runs = owner_of(code.co_filename) if code else "author"
    return runs in ("torch", "worker") or isinstance(thread, threading._DummyThread)


WATCHED = (
    "builtins", "json", "os", "os.path", "threading:Thread", "time",
    "torch", "torch:Tensor", "torch.autograd", "torch.cuda", "torch.cuda:Event", "torch.cuda:Stream",
    "torch.linalg", "torch.nn.functional", "torch.random", "torch.testing",
    "triton", "triton.runtime.autotuner:Autotuner", "triton.runtime.jit:JITFunction", "triton.testing",
)  # fmt: skip
"""Modules, and classes of one after a colon."""
INTERPRETED = (
    "numpy", "triton._C.libtriton:interpreter", "triton.language", "triton.language.extra.libdevice",
    "triton.language.math", "triton.language.core:tensor", "triton.runtime.interpreter",
    "triton.runtime.interpreter:InterpretedFunction", "triton.runtime.interpreter:InterpreterBuilder",
)  # fmt: skip
"""What computes an interpreted kernel. Triton and this worker replace parts of it; the author may not."""
POSING = tuple(
    f"{__name__.rsplit('.', 2)[0]}.interpreter.cuda_answers:{kind}" for kind in ("Event", "Stream")
)
"""What poses as torch.cuda's classes without a GPU."""
WRAPPERS = (WORKER, os.path.join(TORCH, "_compile.py"))
"""Whose wrappers around the very same function are fine; torch._dynamo wraps one when it is imported."""


class Patches:
    """Functions of torch, Triton and Python, by identity.

    Attributes added later are fine, unless they hide an inherited one.
    """

    def __init__(self) -> None:
        self._held = {place: functions_of(owner_at(place)) for place in (*WATCHED, *INTERPRETED, *POSING)}

    def changed(self) -> tuple[Patch, ...]:
        """Those that are other ones now."""
        return tuple(patch for place, held in self._held.items() for patch in changes_in(place, held))


def changes_in(place: str, held: Mapping[str, object]) -> Iterator[Patch]:
    """What differs from the functions that a module or class held by name."""
    now = contents(owner_at(place))
    for name, before in held.items():
        value = now.get(name)
        if value is not before and not is_excused(place, before, value):
            shown = repr(value) if isinstance(value, type | FunctionType) else object.__repr__(value)
            yield Patch(name=f"{place.replace(':', '.')}.{name}", now=shown)


def contents(owner: object) -> dict[str, object]:
    """The raw attributes of a module, or of a class with those it inherits."""
    owners = reversed(owner.__mro__) if isinstance(owner, type) else [owner]
    return {name: value for each in owners for name, value in vars(each).items()}


def functions_of(owner: object) -> dict[str, object]:
    """Public functions, classes and modules of a module; all methods and properties of a class."""
    every = contents(owner).items()
    if isinstance(owner, type):
        return {name: value for name, value in every if callable(value) or inspect.isdatadescriptor(value)}
    return {
        name: value
        for name, value in every
        if not name.startswith("_") and (callable(value) or isinstance(value, ModuleType))
    }


def is_excused(place: str, before: object, now: object) -> bool:
    """Whether Triton or this worker has replaced a function for itself."""
    defined = inspect.unwrap(now) if isinstance(now, FunctionType) else now
    is_authors = owner_of_value(defined) == "author"
    if place in INTERPRETED and not (isinstance(before, ModuleType) or is_authors):
        return True
    if not isinstance(now, FunctionType) or not now.__code__.co_filename.startswith(WRAPPERS):
        return False
    return any(cell.cell_contents is before for cell in now.__closure__ or ())
