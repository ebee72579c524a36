"""What the author's code does outside its business: recorded at once, and refused.

A Python audit hook can never be removed: one a process is installed, and switched on and off by audit events
of its own, so that nothing refers to it. It sees what Python does; native code in this process is beyond it,
so loading any is refused.
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
from .audit_events import FILE_EVENTS, FRAMES, GUARDED_CALL, Deed, Reader, readers
from .folders import Folders
from .frames import WORKER, asker_of, author_frame, author_of
from .guarded_functions import THREAD_START, Guards
from .leftovers import is_authors, note_start

Fact = dict[str, Any]
MOST_FACTS = 20
SWITCH = f"{__name__}.switch"
Watch = Callable[[str, tuple[Any, ...], FrameType], None]


class SandboxRefusal(PermissionError):
    """The author's code asked for something that computing a result does not need."""


class Sandbox:
    """Facts are `{"kind", "what", "file", "line"}`, the first 20 different ones; `tell` gets each at once.

    Kinds: native_code, inspects_the_process, starts_processes, sends_signals, network, touches_files,
    disguises_code, hides_operators, tampers. Only the last is not refused but undone.
    """

    def __init__(self, secret: Sequence[Path], kept: Sequence[Path], tell: Callable[[Fact], None]) -> None:
        self.facts: list[Fact] = []
        self._tell = tell
        self._readers: dict[str, Reader] = readers(Folders.at(secret, kept))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this process does meanwhile. Raises RuntimeError where a watch is on already."""
        install_hook()
        key = object()
        with Guards() as stand_ins:
            look = watch(self._event, self._record)
            sys.audit(SWITCH, key, look, frozenset(self._readers), stand_ins.originals)
            try:
                yield
            finally:
                sys.audit(SWITCH, key, None, frozenset(), {})

    def _event(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        if event == GUARDED_CALL and args[0] == THREAD_START:
            note_start(args[1][0], frame)
            return
        deed = self._readers[event](args, frame)
        if deed is None:
            return
        anyhow = event in FILE_EVENTS or deed[0] == "touches_files"
        if led_by_author(frame) if anyhow else asked_by_author(frame):
            self._record(deed, frame)
            raise SandboxRefusal(f"not allowed here: {deed[1]}")

    def _record(self, deed: Deed, frame: FrameType) -> None:
        kind, what = deed
        place = author_frame(frame)
        fact = {
            "kind": kind,
            "what": what,
            "file": place.f_code.co_filename if place else None,
            "line": place.f_lineno if place else None,
        }
        if fact not in self.facts and len(self.facts) < MOST_FACTS:
            self.facts.append(fact)
            self._tell(fact)


def asked_by_author(frame: FrameType) -> bool:
    """Whether the author's code asked on its own account, or a thread it started for nothing else."""
    asker, _ = asker_of(frame)
    return asker == "author" or (asker is None and in_authors_thread())


def led_by_author(frame: FrameType) -> bool:
    """Whether the author's code led to it, through whatever."""
    return author_of(frame) is not None or in_authors_thread()


def in_authors_thread() -> bool:
    thread = threading.current_thread()
    if thread is threading.main_thread():
        return False
    return isinstance(thread, threading._DummyThread) or is_authors(thread)


def watch(look: Watch, record: Callable[[Deed, FrameType], None]) -> Watch:
    """`look`, after putting back whatever function it needs that was replaced meanwhile.

    Replaced for the moment of one deed, a function would let it pass and `Patches` would not see it.
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

    def look_sealed(event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        for module, names, name, value in relied_on:
            if names.get(name) is not value:
                names[name] = value
                record(("tampers", f"replaces {module}.{name}"), frame)
        look(event, args, frame)

    return look_sealed


@functools.cache
def install_hook() -> None:
    """Add the hook, once a process; it does nothing until it is switched on."""
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

    def switch(key: object, seen: Watch | None, wanted: frozenset[str], originals: dict[str, Any]) -> None:
        if state[0] is not (key if seen is None else None):
            raise RuntimeError("conduct is watched already, by someone else")
        state[:] = (None if seen is None else key), seen, wanted, originals

    sys.addaudithook(hook)
