"""What the author's code must not do: recorded at once, and refused.

Most of it raises an audit event of Python (https://docs.python.org/3/library/audit_events.html); functions
that raise none are guarded. An audit hook can never be removed: one per process is installed, and does
nothing unless a sandbox watches. Native code in this process is beyond it, so loading any is refused.
"""

import functools
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

from ..loading.redirect import original
from ..replacement import replaced
from ..wire.observation import RefusedKind, SandboxViolation
from .frames import (
    INSTALLED,
    LIBRARY,
    author_frame,
    author_of,
    below,
    callers,
    owner_of_frame,
    real_path,
    requested_by_author,
)

Violation = tuple[RefusedKind, str]
"""Kind and what was done."""
MOST_RECORDS = 20

KINDS: dict[RefusedKind, tuple[str, ...]] = {
    "native_code": (
        "ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.cdata", "ctypes.cdata/buffer",
        "ctypes.string_at", "ctypes.memoryview_at", "ctypes.call_function",
    ),
    "starts_processes": (
        "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
        "os.kill", "os.killpg",
    ),
    "network": (
        "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.bind", "socket.sendto",
        "socket.sendmsg",
    ),
}  # fmt: skip
"""Events that are violations by themselves."""
LOOKING_AROUND = ("gc.get_objects", "gc.get_referrers", "sys._current_frames", "sys._getframe")
LISTINGS = ("os.listdir", "os.scandir")
CHANGES = (
    "os.remove", "os.rmdir", "os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "shutil.rmtree",
)  # fmt: skip
KIND_OF = {event: kind for kind, events in KINDS.items() for event in events}
EVENTS = {*KIND_OF, *LOOKING_AROUND, *LISTINGS, *CHANGES, "open", "import", "object.__setattr__"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
BYTECODE = f"{os.sep}__pycache__{os.sep}"

GUARDED: dict[RefusedKind, dict[str, tuple[str, ...]]] = {
    "hides_operators": {
        "torch.utils._python_dispatch": (
            "_disable_current_modes", "_pop_mode", "_pop_mode_temporarily", "_get_current_dispatch_mode",
            "_get_current_dispatch_mode_stack",
        ),
        "torch.overrides": ("_get_current_function_mode", "_get_current_function_mode_stack", "_pop_mode"),
        "torch.utils._mode_utils": ("no_dispatch",),
        "torch._C": (
            "_DisableTorchDispatch", "_DisablePythonDispatcher", "_ExcludeDispatchKeyGuard",
            "ExcludeDispatchKeyGuard", "_ForceDispatchKeyGuard", "_IncludeDispatchKeyGuard",
            "DisableTorchFunction", "_to_dlpack",
        ),
        "torch._ops:OpOverload": ("redispatch",),
        "torch.utils.dlpack": ("to_dlpack",),
        "torch": ("to_dlpack",),
        "torch:UntypedStorage": ("__getitem__", "__setitem__", "__iter__", "tolist"),
    },
    "native_code": {"ctypes": ("cast", "memmove", "memset")},
    "starts_processes": {"_posixsubprocess": ("fork_exec",)},
}  # fmt: skip
"""Functions that raise no event and would do what the events refuse. By kind: a module, or a class of one
after a colon, and its names. A torch may lack some."""


class SandboxRefusal(PermissionError):
    """The author's code asked for something that computing a result does not need."""


class Sandbox:
    """Refuses and records violations: the first 20 different ones, each given to `report` at once.

    `secret` folders are closed, `kept` ones are read only.
    """

    def __init__(
        self, secret: Sequence[Path], kept: Sequence[Path], report: Callable[[SandboxViolation], None]
    ) -> None:
        self.violations: list[SandboxViolation] = []
        self._report = report
        self._secret, self._kept = (tuple(map(os.path.realpath, folders)) for folders in (secret, kept))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this process does inside."""
        install_hook()
        with ExitStack() as stack:
            for owner, name, violation in guarded_functions():
                guard = guarded(getattr(owner, name), violation, self._refuse)
                stack.enter_context(replaced(owner, name, guard))
            _watching.append(self)
            stack.callback(_watching.remove, self)
            yield

    def check(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        """Raises SandboxRefusal where the author's code caused an event that is a violation."""
        violation = self._violation_in(event, args, frame)
        if violation is not None:
            self._refuse(violation, frame)

    def _violation_in(self, event: str, args: tuple[Any, ...], frame: FrameType) -> Violation | None:
        """What an event reveals about the code of the frame that caused it; None where that is allowed."""
        if event in KIND_OF:
            return KIND_OF[event], f"calls {event}({', '.join(filter(None, map(shown, args)))})"
        if event in LOOKING_AROUND:
            return ("inspects_the_process", f"calls {event}") if looks_around(frame) else None
        if event == "object.__setattr__":
            if args[1] != "__code__":
                return None
            return "tampers", f"replaces the code of {type(args[0]).__name__} {args[0].__name__}"
        if event == "import":
            # An extension module that is not installed is the author's own native code.
            file = plain_text(args[1])
            real = os.path.realpath(file) if file is not None else None
            if real is None or any(below(real, root) for root in (*LIBRARY, *INSTALLED)):
                return None
            return "native_code", f"loads the extension module {real}"
        writing = event in CHANGES or (event == "open" and bool((args[2] or 0) & WRITING))
        closed = (*self._secret, *self._kept) if writing else self._secret
        paths = args if event in CHANGES else args[:1]
        real = next(filter(None, (first_below(path, closed) for path in paths)), None)
        if real is None or is_bytecode(real, frame):
            return None
        if event == "open":
            return "touches_files", f"opens {real}{' for writing' if writing else ''}"
        return "touches_files", f"lists {real}" if event in LISTINGS else f"calls {event} on {real}"

    def _refuse(self, violation: Violation, frame: FrameType) -> None:
        """Folders are closed to torch and Triton too, when the author's code leads to them."""
        is_closed = violation[0] == "touches_files"
        if author_of(frame) is not None if is_closed else requested_by_author(frame):
            self._record(violation, frame)
            raise SandboxRefusal(f"not allowed here: {violation[1]}")

    def _record(self, violation: Violation, frame: FrameType) -> None:
        place = author_frame(frame)
        file = str(original(place.f_code.co_filename)) if place else None
        line = place.f_lineno if place else None
        record = SandboxViolation(kind=violation[0], what=violation[1], file=file, line=line)
        if record not in self.violations and len(self.violations) < MOST_RECORDS:
            self.violations.append(record)
            self._report(record)


_watching: list[Sandbox] = []
_busy = threading.local()
"""What the hook itself does raises events too."""


@functools.cache
def install_hook() -> None:
    sys.addaudithook(hook)


Method = TypeVar("Method", bound=Callable[..., Any])
_OWN: set[CodeType] = set()


def looks_at_own_frame(function: Method) -> Method:
    """A function of the worker's that calls `sys._getframe()` at each turn: nothing is to be asked of it."""
    _OWN.add(function.__code__)
    return function


def hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watching or event not in EVENTS or getattr(_busy, "now", False):
        return
    if event == "sys._getframe" and args[0].f_code in _OWN:
        return
    _busy.now = True
    try:
        frame = sys._getframe().f_back
        if frame is not None:  # there is none in a thread of native code
            _watching[-1].check(event, args, frame)
    finally:
        _busy.now = False


def is_bytecode(real: str, frame: FrameType) -> bool:
    """Whether Python itself caches a module that is being imported."""
    return BYTECODE in real + os.sep and frame.f_code.co_filename == "<frozen importlib._bootstrap_external>"


def first_below(path: object, folders: Sequence[str]) -> str | None:
    """Where a path or what it links to lies in one of the folders; None for what holds no path."""
    text = plain_text(path)
    if text is None:
        return None
    folder, name = os.path.split(text)
    places = os.path.realpath(text), os.path.join(os.path.realpath(folder or os.curdir), name)
    return next((real for real in places if any(below(real, each) for each in folders)), None)


def plain_text(path: object) -> str | None:
    """The path as a plain str, without running a method of the author's. None for a descriptor."""
    if isinstance(path, str):
        return str.__str__(path)
    if isinstance(path, bytes):
        return bytes.__getitem__(path, slice(None)).decode("utf-8", "surrogateescape")
    if isinstance(path, Path):
        return os.fspath(path) if type(path).__module__.startswith("pathlib") else None
    return None


def looks_around(frame: FrameType) -> bool:
    """Whether the author asks for objects and frames of the process, which the library and installed packages
    do for uses of their own."""
    asking = next((each for each in callers(frame) if each.f_code.co_filename != inspect.__file__), frame)
    file = real_path(asking.f_code.co_filename)
    return owner_of_frame(asking) == "author" and not any(below(file, root) for root in INSTALLED)


def shown(value: object) -> str:
    """An argument as text, without running a method of the author's; "" where it shows nothing."""
    if type(value) in (int, bool):
        return str(value)
    if isinstance(value, list | tuple):
        return " ".join(filter(None, map(shown, value[:8])))[:160]
    return (plain_text(value) or "")[:160]


@functools.cache
def guarded_functions() -> tuple[tuple[Any, str, Violation], ...]:
    """The owner and the name of each guarded function that this torch has, and what calling it violates."""
    return tuple(
        (owner_at(place), name, (kind, f"calls {place.replace(':', '.')}.{name}"))
        for kind, places in GUARDED.items()
        for place, names in places.items()
        for name in names
        if hasattr(owner_at(place), name)
    )


def owner_at(place: str) -> Any:
    """A module, or a class of one after a colon."""
    module, _, name = place.partition(":")
    owner: Any = importlib.import_module(module)
    return getattr(owner, name) if name else owner


def guarded(function: Any, violation: Violation, refuse: Callable[[Violation, FrameType], None]) -> Any:
    """The function, each call of which is handed to `refuse` first, which may raise."""

    def call(*args: Any, **kwargs: Any) -> Any:
        refuse(violation, sys._getframe(1))
        return function(*args, **kwargs)

    return functools.update_wrapper(call, function, updated=())
