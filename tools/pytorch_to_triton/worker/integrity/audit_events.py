"""What a Python audit event reveals about the code that caused it.

Events: https://docs.python.org/3/library/audit_events.html. `readers` maps an event to what reads it: its
arguments and the frame that caused it give a kind and what was done, or None.
"""

import inspect
import os
from collections.abc import Callable
from types import FrameType
from typing import Any

from .folders import Folders, plain_text
from .frames import INSTALLED, LIBRARY, below, callers, owner_of_frame, real_path

Arguments = tuple[Any, ...]
Violation = tuple[str, str]
"""Kind and what was done."""
Reader = Callable[[Arguments, FrameType], Violation | None]

KINDS: dict[str, tuple[str, ...]] = {
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
CHANGES = (
    "os.remove", "os.rmdir", "os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "shutil.rmtree",
)  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def readers(folders: Folders) -> dict[str, Reader]:
    """The reader of each event that matters."""
    return {
        **{event: calling(event, kind) for kind, events in KINDS.items() for event in events},
        **{event: looking_around(event) for event in LOOKING_AROUND},
        **{event: changing(event, folders) for event in CHANGES},
        **{event: listing(folders) for event in ("os.listdir", "os.scandir")},
        "open": opening(folders),
        "import": importing,
        "object.__setattr__": setting_attribute,
    }


def calling(event: str, kind: str) -> Reader:
    return lambda args, frame: (kind, f"calls {event}({', '.join(filter(None, map(shown, args)))})")


def shown(value: object) -> str:
    """An argument as text, without running a method of the author's; "" where it shows nothing."""
    if type(value) in (int, bool):
        return str(value)
    if isinstance(value, list | tuple):
        return " ".join(filter(None, map(shown, value[:8])))[:160]
    return (plain_text(value) or "")[:160]


def looking_around(event: str) -> Reader:
    """Of the objects and frames of the process: the library and installed packages have their own uses."""

    def read(args: Arguments, frame: FrameType) -> Violation | None:
        asking = next((each for each in callers(frame) if each.f_code.co_filename != inspect.__file__), frame)
        file = real_path(asking.f_code.co_filename)
        if owner_of_frame(asking) != "author" or any(below(file, root) for root in INSTALLED):
            return None
        return "inspects_the_process", f"calls {event}"

    return read


def opening(folders: Folders) -> Reader:
    def read(args: Arguments, frame: FrameType) -> Violation | None:
        path, _, flags = args
        writing = bool((flags or 0) & WRITING)
        real = folders.refused(path, frame, writing=writing)
        return ("touches_files", f"opens {real}{' for writing' if writing else ''}") if real else None

    return read


def listing(folders: Folders) -> Reader:
    def read(args: Arguments, frame: FrameType) -> Violation | None:
        real = folders.refused(args[0], frame, writing=False)
        return ("touches_files", f"lists {real}") if real else None

    return read


def changing(event: str, folders: Folders) -> Reader:
    def read(args: Arguments, frame: FrameType) -> Violation | None:
        refused = filter(None, (folders.refused(path, frame, writing=True) for path in args))
        return next((("touches_files", f"calls {event} on {real}") for real in refused), None)

    return read


def importing(args: Arguments, frame: FrameType) -> Violation | None:
    """An extension module that is not installed: the author's own native code."""
    file = plain_text(args[1])
    if file is None or any(below(os.path.realpath(file), root) for root in (*LIBRARY, *INSTALLED)):
        return None
    return "native_code", f"loads the extension module {os.path.realpath(file)}"


def setting_attribute(args: Arguments, frame: FrameType) -> Violation | None:
    if args[1] == "__code__":
        return "tampers", f"replaces the code of {type(args[0]).__name__} {args[0].__name__}"
    return None
