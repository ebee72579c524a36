"""What the author's code must not do: recorded at once, and refused.

A Python audit hook can never be removed: one per process is installed, and switched on and off by audit
events of its own, so that nothing refers to it. It sees what Python does; native code in this process is
beyond it, so loading any is refused.
"""

import builtins
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from . import audit_events, folders, frames, guarded_functions, leftovers
from .audit_events import FILE_EVENTS, FRAMES, GUARDED_CALL, Reader, Violation, readers
from .folders import Folders
from .frames import WORKER, author_frame, author_of, requester_of
from .guarded_functions import THREAD_START, Guards
from .leftovers import is_authors, note_start

Record = dict[str, Any]
MOST_RECORDS = 20
SWITCH = f"{__name__}.switch"
Handler = Callable[[str, tuple[Any, ...], FrameType], None]


class SandboxRefusal(PermissionError):
    """The author's code asked for something that computing a result does not need."""


class Sandbox:
    """Refuses and records violations: the first 20 different ones, each given to `report` at once.

    A record is `{"kind", "what", "file", "line"}`.

    Kinds: native_code, inspects_the_process, starts_processes, sends_signals, network, touches_files,
    disguises_code, hides_operators, tampers. Only the last is not refused but undone.
    """

    def __init__(
        self, secret: Sequence[Path], kept: Sequence[Path], report: Callable[[Record], None]
    ) -> None:
        self.violations: list[Record] = []
        self._report = report
        self._readers: dict[str, Reader] = readers(Folders.at(secret, kept))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this process does inside. Raises RuntimeError where a sandbox is already on."""
        install_hook()
        key = object()
        with Guards() as guards:
            handler = sealed(self._event, self._record)
            sys.audit(SWITCH, key, handler, frozenset(self._readers), guards.originals)
            try:
                yield
            finally:
                sys.audit(SWITCH, key, None, frozenset(), {})

    def _event(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        if event == GUARDED_CALL and args[0] == THREAD_START:
            note_start(args[1][0], frame)
            return
        violation = self._readers[event](args, frame)
        if violation is None:
            return
        is_closed = event in FILE_EVENTS or violation[0] == "touches_files"
        if led_by_author(frame) if is_closed else requested_by_author(frame):
            self._record(violation, frame)
            raise SandboxRefusal(f"not allowed here: {violation[1]}")

    def _record(self, violation: Violation, frame: FrameType) -> None:
        kind, what = violation
        place = author_frame(frame)
        record = {
            "kind": kind,
            "what": what,
            "file": place.f_code.co_filename if place else None,
            "line": place.f_lineno if place else None,
        }
        if record not in self.violations and len(self.violations) < MOST_RECORDS:
            self.violations.append(record)
            self._report(record)


def requested_by_author(frame: FrameType) -> bool:
    """Whether the author's code asked on its own account, or a thread it started for nothing else."""
    requester, _ = requester_of(frame)
    return requester == "author" or (requester is None and in_authors_thread())


def led_by_author(frame: FrameType) -> bool:
    """Whether the author's code led to it, through any other code."""
    return author_of(frame) is not None or in_authors_thread()


def in_authors_thread() -> bool:
    thread = threading.current_thread()
    if thread is threading.main_thread():
        return False
    return isinstance(thread, threading._DummyThread) or is_authors(thread)


def sealed(handler: Handler, record: Callable[[Violation, FrameType], None]) -> Handler:
    """`handler`, after putting back whatever function it needs that was replaced in between.

    Replaced for the moment of one violation, a function would let it pass and `Patches` would not see it.
    """
    relied_on = [
        (module.__name__, vars(module), name, value)
        for module in (
            audit_events,
            folders,
            frames,
            guarded_functions,
            leftovers,
            sys.modules[__name__],
            builtins,
            os,
            os.path,
        )
        for name, value in vars(module).items()
        if callable(value) or name.isupper()
    ]

    def sealed_handler(event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        for module, names, name, value in relied_on:
            if names.get(name) is not value:
                names[name] = value
                record(("tampers", f"replaces {module}.{name}"), frame)
        handler(event, args, frame)

    return sealed_handler


@functools.cache
def install_hook() -> None:
    """Add the hook, once per process; it does nothing until it is switched on."""
    state: list[Any] = [None, None, frozenset(), {}]
    busy = threading.local()
    current_frame = sys._getframe

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == SWITCH:
            switch(*args)
        if event not in state[2] or (event == "object.__getattr__" and args[1] not in FRAMES):
            return
        if event == GUARDED_CALL and args[0] in state[3]:
            look(event, args)
            args[2].append(state[3][args[0]])
        else:
            look(event, args)

    def look(event: str, args: tuple[Any, ...]) -> None:
        if getattr(busy, "now", False):
            return
        busy.now = True
        try:
            hook_frame = current_frame(1)
            frame = hook_frame.f_back or hook_frame  # a thread of native code has no other
            if event != "sys._getframe" or not frame.f_code.co_filename.startswith(WORKER):
                state[1](event, args, frame)
        finally:
            busy.now = False

    def switch(
        key: object, handler: Handler | None, wanted: frozenset[str], originals: dict[str, Any]
    ) -> None:
        if state[0] is not (key if handler is None else None):
            raise RuntimeError("the sandbox is already on")
        state[:] = (None if handler is None else key), handler, wanted, originals

    sys.addaudithook(hook)
