"""What a Python audit event reveals about the code that caused it.

Events: https://docs.python.org/3/library/audit_events.html. `READERS` maps an event to what reads it: its
arguments and the frame that caused it give a kind and what was done, or None.
"""

import os
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from torch._ops import OpOverload

from . import guarded_functions
from .folders import Folders, plain_text
from .frames import INSTALLED, LIBRARY, TORCH, TRITON, WORKER, below, owner_of_frame

Arguments = tuple[Any, ...]
Violation = tuple[str, str]
"""Kind and what was done."""
Reader = Callable[[Arguments, FrameType], Violation | None]

KINDS: dict[str, tuple[str, ...]] = {
    "native_code": (
        "ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.cdata", "ctypes.cdata/buffer",
        "ctypes.addressof", "ctypes.string_at", "ctypes.wstring_at", "ctypes.memoryview_at",
        "ctypes.PyObj_FromPtr", "ctypes.call_function",
    ),
    "starts_processes": (
        "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
        "pty.spawn",
    ),
    "sends_signals": ("os.kill", "os.killpg", "signal.pthread_kill"),
    "network": (
        "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr",
        "socket.bind", "socket.sendto", "socket.sendmsg",
    ),
    "inspects_the_process": (
        "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames",
        "sys._current_exceptions", "sys.addaudithook",
    ),
}  # fmt: skip
"""Events that are violations by themselves."""
GUARDED_CALL = guarded_functions.EVENT
FRAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
LOOKING_AROUND = tuple(
    os.path.join(os.path.dirname(os.__file__), name) for name in ("inspect.py", "traceback.py")
)
"""Modules that hand frames to their caller; others of the library use frames for themselves only."""
BEHIND_PYTHON = frozenset({"_cffi_backend", "_testcapi", "_testinternalcapi"})
"""Extension modules that give access to memory and to C functions, and raise no event then."""
CHANGES: Mapping[str, tuple[str, tuple[tuple[int, int | None], ...]]] = {
    "os.remove": ("removes", ((0, 1),)),
    "os.rmdir": ("removes", ((0, 1),)),
    "os.mkdir": ("makes", ((0, 2),)),
    "os.rename": ("renames", ((0, 2), (1, 3))),
    "os.link": ("links", ((0, 2), (1, 3))),
    "os.symlink": ("links", ((0, None), (1, 2))),
    "os.truncate": ("truncates", ((0, None),)),
    "os.chmod": ("changes the mode of", ((0, 2),)),
    "os.chown": ("changes the owner of", ((0, 3),)),
    "os.utime": ("changes the times of", ((0, 3),)),
    "sqlite3.connect": ("opens as a database", ((0, None),)),
}
"""Verb, and where among the arguments paths and the descriptors of their folders are."""


def readers(folders: Folders) -> dict[str, Reader]:
    """The reader of each event that matters; those of files first."""
    table: dict[str, Reader] = {
        "open": lambda args, frame: opening(args, frame, folders),
        "os.listdir": lambda args, frame: touching(folders.listing(args[0])),
        "os.scandir": lambda args, frame: touching(folders.listing(args[0])),
        **{event: changing(event, folders) for event in CHANGES},
    }
    table |= {event: calling(event, kind) for kind, events in KINDS.items() for event in events}
    return table | {
        GUARDED_CALL: lambda args, frame: guarded_call(args, frame, folders),
        "import": importing,
        "sys._getframe": looking_around,
        "object.__getattr__": reading_attribute,
        "object.__setattr__": setting_attribute,
        "exec": running_code,
        "function.__new__": running_code,
    }


FILE_EVENTS = frozenset({"open", "os.listdir", "os.scandir", *CHANGES})
"""Whose folders are closed to torch and Triton too, when the author's code leads to them."""


def touching(what: str | None) -> Violation | None:
    if what is None:
        return None
    return ("inspects_the_process" if what.startswith("opens /proc/") else "touches_files"), what


def opening(args: Arguments, frame: FrameType, folders: Folders) -> Violation | None:
    """`open` names a mode; `os.open` does not, and may open a folder."""
    path, mode, flags = args[0], args[1], args[2] or 0
    bad = folders.opening(path, flags, frame) or (folders.reaching(path, flags) if mode is None else None)
    return touching(bad)


def changing(event: str, folders: Folders) -> Reader:
    verb, paths = CHANGES[event]

    def read(args: Arguments, frame: FrameType) -> Violation | None:
        for path, folder in paths:
            dir_fd = -1 if folder is None else args[folder]
            if what := folders.changing(verb, args[path], dir_fd, frame):
                return touching(what)
        return None

    return read


def calling(event: str, kind: str) -> Reader:
    def read(args: Arguments, frame: FrameType) -> Violation | None:
        shown_args = ", ".join(filter(None, map(shown, args)))
        return kind, f"calls {event}({shown_args})"

    return read


def shown(value: object) -> str:
    """An argument as text, without running a method of the author's; "" where it shows nothing."""
    if type(value) in (int, bool):
        return str(value)
    if type(value) in (list, tuple):
        assert isinstance(value, list | tuple)
        return " ".join(filter(None, map(shown, value[:8])))[:160]
    return (plain_text(value) or "")[:160]


def importing(args: Arguments, frame: FrameType) -> Violation | None:
    name, file = plain_text(args[0]), plain_text(args[1])
    if name in BEHIND_PYTHON:
        return "native_code", f"imports {name}"
    if file is None:
        return None
    real = os.path.realpath(file)
    if any(below(real, root) for root in (*LIBRARY, *INSTALLED)):
        return None
    return "native_code", f"loads the extension module {real}"


def looking_around(args: Arguments, frame: FrameType) -> Violation | None:
    return ("inspects_the_process", "walks the stack") if hands_frames(frame) else None


def reading_attribute(args: Arguments, frame: FrameType) -> Violation | None:
    """Frames behind a traceback or a generator."""
    if args[1] not in FRAMES:
        return None
    return ("inspects_the_process", f"reads {args[1]}") if hands_frames(frame) else None


def setting_attribute(args: Arguments, frame: FrameType) -> Violation | None:
    if args[1] == "__code__":
        return "disguises_code", f"replaces the code of {type(args[0]).__name__} {args[0].__name__}"
    return None


def running_code(args: Arguments, frame: FrameType) -> Violation | None:
    """Code that claims to come from a file of torch, Triton or this worker, run by the author's own code."""
    code = args[0]
    if not isinstance(code, CodeType) or owner_of_frame(frame) != "author":
        return None
    file = os.path.realpath(code.co_filename)
    forged = code.co_filename.startswith("<frozen ") or any(
        below(file, root) for root in (TORCH, TRITON, WORKER)
    )
    return ("disguises_code", f"runs code that claims to be of {code.co_filename}") if forged else None


def guarded_call(args: Arguments, frame: FrameType, folders: Folders) -> Violation | None:
    """A function without an event of its own was called; one that opens files may open harmless ones."""
    name, values, _ = args
    kind = guarded_functions.KINDS[name]
    if runs_authors_operator(name, values):
        return None
    if kind != "touches_files":
        return kind, f"calls {name}"
    flags = os.O_WRONLY if name.endswith("Writer") else os.O_RDONLY
    found = (touching(folders.opening(value, flags, frame)) for value in values)
    return next(filter(None, found), None)


def runs_authors_operator(name: str, values: Arguments) -> bool:
    """Whether an operator of the author's own is asked for: `Operators` sees all that runs inside."""
    if name == guarded_functions.HANDLE:
        return not guarded_functions.is_handle_of_torchs(values[0])
    return (
        name == guarded_functions.REDISPATCH
        and type(values[0]) is OpOverload
        and not guarded_functions.is_torchs(values[0])
    )


def hands_frames(frame: FrameType | None) -> bool:
    """Whether frames go to the author: asked for directly, or through `inspect` or `traceback` alone."""
    through = ""
    while frame is not None and frame.f_code.co_filename in LOOKING_AROUND:
        through = frame.f_code.co_name
        file = frame.f_code.co_filename
        frame = frame.f_back
    if through and file == LOOKING_AROUND[1] and through not in ("walk_stack", "walk_tb"):
        return False
    if frame is None or owner_of_frame(frame) != "author":
        return False
    real = os.path.realpath(frame.f_code.co_filename)
    return not any(below(real, root) for root in INSTALLED)
