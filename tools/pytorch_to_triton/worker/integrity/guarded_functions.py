"""Functions that raise no audit event and would let the author's code do what the events refuse."""

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

from ..replacement import replaced

GUARDED: dict[str, dict[str, tuple[str, ...]]] = {
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
"""By kind: a module, or a class of one after a colon, and its names. A torch may lack some."""
Refuse = Callable[[tuple[str, str], FrameType], None]


@contextmanager
def guards(refuse: Refuse) -> Iterator[None]:
    """Inside, each call of a guarded function is handed to `refuse` first, which may raise."""
    with ExitStack() as stack:
        for owner, name, violation in guarded_functions():
            stack.enter_context(replaced(owner, name, guarded(getattr(owner, name), violation, refuse)))
        yield


@functools.cache
def guarded_functions() -> tuple[tuple[Any, str, tuple[str, str]], ...]:
    """The owner and the name of each guarded function that this torch has, and what calling it violates."""
    return tuple(
        (owner_at(place), name, (kind, f"calls {place.replace(':', '.')}.{name}"))
        for kind, places in GUARDED.items()
        for place, names in places.items()
        for name in names
        if hasattr(owner_at(place), name)
    )


def owner_at(place: str) -> Any:
    module, _, name = place.partition(":")
    owner: Any = importlib.import_module(module)
    return getattr(owner, name) if name else owner


def guarded(original: Any, violation: tuple[str, str], refuse: Refuse) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        refuse(violation, sys._getframe(1))
        return original(*args, **kwargs)

    return functools.update_wrapper(call, original, updated=())
