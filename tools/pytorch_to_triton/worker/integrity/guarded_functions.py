"""Functions that raise no audit event and would let the author's code do what the events refuse."""

import functools
import importlib
import sys
from types import FunctionType
from typing import Any

import torch
from torch._ops import OpOverload

EVENT = f"{__name__}.call"
THREAD_START = "threading.Thread.start"
"""Guarded to know whose a thread is. Python raises an event of its own only from 3.12 on."""
GUARDED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "hides_operators": (
        (
            "torch.utils._python_dispatch",
            (
                "_disable_current_modes", "_disable_infra_mode", "_pop_mode", "_pop_mode_temporarily",
                "_get_current_dispatch_mode", "_get_current_dispatch_mode_stack",
            ),
        ),
        ("torch.utils._mode_utils", ("no_dispatch",)),
        ("torch.overrides", ("_get_current_function_mode", "_get_current_function_mode_stack", "_pop_mode")),
        ("torch:UntypedStorage", ("__getitem__", "__setitem__", "__iter__", "tolist")),
        ("torch:TypedStorage", ("__getitem__", "__setitem__", "__iter__", "tolist")),
        (
            "torch._C",
            (
                "_DisableTorchDispatch", "_DisablePythonDispatcher", "_ExcludeDispatchKeyGuard",
                "ExcludeDispatchKeyGuard", "_SetExcludeDispatchKeyGuard", "_ForceDispatchKeyGuard",
                "_IncludeDispatchKeyGuard", "_dispatch_tls_set_dispatch_key_excluded",
                "_dispatch_tls_set_dispatch_key_included", "_pop_torch_dispatch_stack",
                "_unset_dispatch_mode", "_set_dispatch_mode", "_get_dispatch_stack_at",
                "_get_function_stack_at", "_pop_torch_function_stack", "DisableTorchFunction",
                "_to_dlpack", "_to_dlpack_versioned", "_dispatch_find_schema_or_throw",
                "_get_operation_overload",
            ),
        ),
        ("torch._ops:OpOverload", ("redispatch",)),
    ),
    "native_code": (("ctypes", ("cast", "memmove", "memset", "CFUNCTYPE", "PYFUNCTYPE")),),
    "starts_processes": (("_posixsubprocess", ("fork_exec",)),),
    "touches_files": (
        ("torch", ("from_file",)),
        ("torch:UntypedStorage", ("from_file",)),
        ("torch._C", ("PyTorchFileReader", "PyTorchFileWriter")),
    ),
}  # fmt: skip
"""By kind: a module, or a class of one after a colon, and its names. A torch may lack some."""
REDISPATCH = "torch._ops.OpOverload.redispatch"
HANDLE = "torch._ops.OpOverload._handle"
TORCHS_OPERATORS = frozenset(torch._C._dispatch_get_all_op_names())
"""All that there are before the author's code runs: what comes later, it defines itself."""
READ_HANDLE = vars(OpOverload)["_handle"].__get__
HIDDEN_ATTRIBUTES = ("_op_dk", "_handle")
"""Of torch._ops.OpOverload: both call an operator's kernel past every mode."""
KINDS = {
    f"{place.replace(':', '.')}.{name}": kind
    for kind, places in GUARDED.items()
    for place, names in places
    for name in names
} | {f"torch._ops.OpOverload.{name}": "hides_operators" for name in HIDDEN_ATTRIBUTES}


class Guards:
    """While entered, wrappers raise the audit event `EVENT` before each call.

    Its arguments are the function's name, what it is called with, and a list: the audit hook appends the
    original from `originals` to let the call pass. A wrapper has nothing in it that leads to the original.
    """

    def __init__(self) -> None:
        self.originals: dict[str, Any] = {}
        self._held: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> "Guards":
        for places in GUARDED.values():
            for place, names in places:
                for name in names:
                    if hasattr(found(place), name):
                        self._replace(place, name)
        for name in HIDDEN_ATTRIBUTES:
            self._hold(OpOverload, name, guarded_attribute(vars(OpOverload).get(name), name))
        self._replace("threading:Thread", "start")
        return self

    def __exit__(self, *error: object) -> None:
        while self._held:
            owner, name, original = self._held.pop()
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    def _replace(self, place: str, name: str) -> None:
        owner = found(place)
        original = getattr(owner, name)
        self.originals[full_name(place, name)] = original
        wrapper = guarded(place, name)
        functools.update_wrapper(wrapper, original, updated=())
        del wrapper.__wrapped__
        self._hold(
            owner,
            name,
            staticmethod(wrapper) if name == "from_file" and isinstance(owner, type) else wrapper,
        )

    def _hold(self, owner: Any, name: str, wrapper: Any) -> None:
        self._held.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, wrapper)


def found(place: str) -> Any:
    module, _, name = place.partition(":")
    owner: Any = importlib.import_module(module)
    return getattr(owner, name) if name else owner


def full_name(place: str, name: str) -> str:
    return f"{place.replace(':', '.')}.{name}"


def guarded(place: str, name: str) -> Any:
    """A wrapper; kept beyond its time, it calls whatever is there then."""
    full = full_name(place, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        original: list[Any] = []
        sys.audit(EVENT, full, (*args, *kwargs.values()), original)
        return (original or [getattr(found(place), name)])[0](*args, **kwargs)

    return call


def is_torchs(operator: OpOverload) -> bool:
    """Whether an operator is one of PyTorch's, not one that the author's code defines (torch.library)."""
    return is_handle_of_torchs(READ_HANDLE(operator))


def is_handle_of_torchs(handle: Any) -> bool:
    """The same by an operator's handle, which tells what will run: its names in Python can be replaced."""
    schema = handle.schema()
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    return name in TORCHS_OPERATORS


def is_guard(value: object, name: str) -> bool:
    """Whether a value is the wrapper of `guarded` for the function of that full name."""
    if not isinstance(value, FunctionType) or value.__code__ not in guarded.__code__.co_consts:
        return False
    cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
    place, own_name = (str(cells[each].cell_contents) for each in ("place", "name"))
    return bool(full_name(place, own_name) == cells["full"].cell_contents == name)


def guarded_attribute(original: Any, name: str) -> property:
    """The same for an attribute of each operator: one that it is given, or a cached property."""
    full = full_name("torch._ops:OpOverload", name)

    def read(self: OpOverload) -> Any:
        value = self.__dict__[name] if original is None else original.__get__(self)
        sys.audit(EVENT, full, (value,), [])
        return value

    def write(self: OpOverload, value: Any) -> None:
        self.__dict__[name] = value

    return property(read, write)
