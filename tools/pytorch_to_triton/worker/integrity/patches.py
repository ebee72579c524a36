"""Which functions of torch, Triton, Python and this worker were replaced since they were first seen."""

import builtins
import importlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import torch
import triton.language as tl
from triton._C import libtriton
from triton.runtime import interpreter

from .frames import INTEGRITY, TORCH, owner_of
from .guarded_functions import is_guard

MODULES = (
    "torch", "torch.cuda", "torch.nn.functional", "torch.testing", "torch.linalg", "torch.random",
    "torch.autograd", "triton", "triton.testing",
)  # fmt: skip
LANGUAGE = ("triton.language", "triton.language.math", "triton.language.extra.libdevice")
"""Triton points names of these at its interpreter; a value of its own or of this worker's is no patch."""
WRAPPERS = (os.path.join(INTEGRITY, ""), os.path.join(TORCH, "_compile.py"))
"""Whose wrappers around the very same function are fine; torch._dynamo wraps one when it is imported."""
WORKER_PACKAGE = __name__.rsplit(".", 2)[0]
INSTANCES = ("interpreter_builder", "interpreter_semantic")
"""Of Triton's interpreter: what every operation of an interpreted kernel goes through."""
Values = Mapping[str, object]


@dataclass(frozen=True)
class Namespace:
    """A module, a class, an instance or a dictionary, and what it held at the snapshot by name."""

    name: str
    owner: Any
    held: Values
    allows_triton: bool = False


class Patches:
    """What the functions are now is compared with what they were when this was made, by identity.

    Attributes added later are fine, unless they hide an inherited or a built-in function. So are wrappers of
    this package around the very same function.
    """

    def __init__(self) -> None:
        self._namespaces, self._interpreter = [*snapshots()], [*interpreters()]
        self._bodies = {
            id(value): (value, body(value))
            for namespace in (*self._namespaces, *self._interpreter)
            for value in namespace.held.values()
            if isinstance(value, FunctionType)
        }
        self._modules = {name: sys.modules[name] for name in MODULES}
        self._kinds = {name: type(getattr(interpreter, name)) for name in INSTANCES}
        self._noted: dict[str, dict[str, str]] = {}

    def note_interpreter(self) -> None:
        """Have `changed` report what is replaced in Triton's interpreter now, even if it is put back."""
        for patch in self._changed_interpreter():
            self._noted.setdefault(patch["name"], patch)

    def changed(self) -> list[dict[str, str]]:
        """`{"name": "torch.cuda.Event.elapsed_time", "now": repr}` for each, in the snapshot's order."""
        self.note_interpreter()
        found = [patch for namespace in self._namespaces for patch in self._changed_in(namespace)]
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                found.append({"name": f"sys.modules[{name!r}]", "now": shown(sys.modules.get(name))})
        return [*found, *self._noted.values()]

    def _changed_interpreter(self) -> Iterator[dict[str, str]]:
        for namespace in self._interpreter:
            yield from self._changed_in(namespace)
        for name, kind in self._kinds.items():
            now = type(getattr(interpreter, name, None))
            if now is not kind and not is_workers(now):
                yield {"name": f"triton.runtime.interpreter.{name}.__class__", "now": shown(now)}

    def _changed_in(self, namespace: Namespace) -> Iterator[dict[str, str]]:
        now = contents(namespace.owner)
        for name, before in namespace.held.items():
            value = now.get(name, None)
            if value is not before and not excused(namespace, name, value):
                yield {"name": f"{namespace.name}.{name}", "now": shown(value)}
            elif value is before and isinstance(value, FunctionType) and self._rewritten(value):
                yield {"name": f"{namespace.name}.{name}.__code__", "now": shown(body(value)[0])}
        for name in hiding(namespace, now):
            yield {"name": f"{namespace.name}.{name}", "now": shown(now[name])}

    def _rewritten(self, function: FunctionType) -> bool:
        before = self._bodies.get(id(function))
        return before is not None and any(
            one is not other for one, other in zip(before[1], body(function), strict=True)
        )


def snapshots() -> Iterator[Namespace]:
    for name in MODULES:
        module = importlib.import_module(name)
        yield Namespace(name, module, chosen(module, is_public_callable))
    for name in LANGUAGE:
        module = importlib.import_module(name)
        yield Namespace(name, module, chosen(module, is_public_callable), allows_triton=True)
    for name, owner in classes():
        yield Namespace(name, owner, chosen(owner, is_method))
    for module in (builtins, os, os.path, time, json):
        yield Namespace(module.__name__, module, chosen(module, is_public_callable))
    for name, module in list(sys.modules.items()):
        if module is not None and (name == WORKER_PACKAGE or name.startswith(f"{WORKER_PACKAGE}.")):
            yield from own(name, module)


def classes() -> Iterator[tuple[str, type]]:
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    yield "torch.Tensor", torch.Tensor
    yield "torch.cuda.Event", torch.cuda.Event
    yield "torch.cuda.Stream", torch.cuda.Stream
    yield "triton.runtime.jit.JITFunction", JITFunction
    yield "triton.runtime.autotuner.Autotuner", Autotuner
    yield "threading.Thread", threading.Thread


def interpreters() -> Iterator[Namespace]:
    """What computes an interpreted kernel, down to numpy and Triton's native loads and stores."""
    native, name = libtriton.interpreter, interpreter.__name__
    yield Namespace(native.__name__, native, chosen(native, is_public_callable))
    yield Namespace(name, interpreter, chosen(interpreter, is_piece), allows_triton=True)
    yield Namespace(name, interpreter, chosen(interpreter, lambda label, _: label in INSTANCES))
    yield Namespace("numpy", vars(interpreter)["np"], chosen(vars(interpreter)["np"], is_public_callable))
    for kind in (interpreter.InterpretedFunction, interpreter.TensorHandle, tl.tensor):
        label = f"{kind.__module__}.{kind.__name__}"
        yield Namespace(label, kind, chosen(kind, is_method), allows_triton=True)
    for label in INSTANCES:
        instance = getattr(interpreter, label)
        kind = type(instance)
        yield Namespace(f"{kind.__module__}.{kind.__name__}", kind, chosen(kind, is_method))
        yield Namespace(f"{name}.{label}", instance, chosen(instance, is_computing))
    codegen = interpreter.interpreter_builder.codegen_fns
    yield Namespace(f"{name}.interpreter_builder.codegen_fns", codegen, dict(codegen))


def own(name: str, module: ModuleType) -> Iterator[Namespace]:
    """A module of this worker and the classes it defines."""
    yield Namespace(name, module, chosen(module, is_callable_or_constant))
    for label, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == name:
            yield Namespace(f"{name}.{label}", value, chosen(value, is_method))


def contents(owner: Any) -> dict[str, object]:
    """The raw attributes of a module or an instance, or of a class with those it inherits."""
    if isinstance(owner, dict):
        return dict(owner)
    if not isinstance(owner, type):
        return dict(vars(owner))
    merged: dict[str, object] = {}
    for each in reversed(owner.__mro__):
        merged.update(vars(each))
    return merged


def chosen(owner: Any, wanted: Callable[[str, object], bool]) -> Values:
    return {name: value for name, value in contents(owner).items() if wanted(name, value)}


def is_public_callable(name: str, value: object) -> bool:
    public = not name.startswith("_") or name in ("__import__", "__build_class__")
    return public and (callable(value) or isinstance(value, ModuleType))


def is_piece(name: str, value: object) -> bool:
    return not name.startswith("__") and (callable(value) or isinstance(value, ModuleType))


def is_method(name: str, value: object) -> bool:
    return callable(value) or inspect.isdatadescriptor(value) or isinstance(value, classmethod | staticmethod)


def is_computing(name: str, value: object) -> bool:
    """Of the interpreter's builder and its semantic: not which program runs, and which guard watches."""
    return callable(value) or name in ("builder", "codegen_fns", "options")


def is_callable_or_constant(name: str, value: object) -> bool:
    return callable(value) or (name.isupper() and not name.startswith("_"))


def hiding(namespace: Namespace, now: Values) -> list[str]:
    """Names added to a module that hide a built-in function from its code, or a method of an instance."""
    if namespace.name.endswith(INSTANCES):
        added = [name for name in now if name not in namespace.held]
        return [name for name in added if callable(getattr(type(namespace.owner), name, None))]
    if isinstance(namespace.owner, type) or namespace.allows_triton or namespace.owner is builtins:
        return []
    added = [name for name in now if name not in namespace.held and hasattr(builtins, name)]
    return [name for name in added if not name.startswith("__") and is_authors(now[name])]


def excused(namespace: Namespace, name: str, now: object) -> bool:
    if namespace.allows_triton and not is_authors(now):
        return not isinstance(namespace.held[name], ModuleType)
    if is_guard(now, f"{namespace.name}.{name}"):
        return True
    if not isinstance(now, FunctionType) or not now.__code__.co_filename.startswith(WRAPPERS):
        return False
    return any(cell.cell_contents is namespace.held[name] for cell in now.__closure__ or ())


def is_authors(value: object) -> bool:
    """Whether neither torch, Triton, numpy, the standard library nor this worker defines the value."""
    code = getattr(inspect.unwrap(value) if isinstance(value, FunctionType) else value, "__code__", None)
    if code is not None:
        return owner_of(code.co_filename) == "author"
    module = sys.modules.get(str(getattr(value, "__module__", None) or type(value).__module__))
    return owner_of(getattr(module, "__file__", None) or os.__file__) == "author"


def is_workers(kind: type) -> bool:
    """Whether a class is one that a module of this worker holds, whatever it claims."""
    module = kind.__module__
    return module.startswith(f"{WORKER_PACKAGE}.") and vars(sys.modules[module]).get(kind.__name__) is kind


def body(function: FunctionType) -> tuple[object, ...]:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def shown(value: object) -> str:
    return object.__repr__(value) if not isinstance(value, type | FunctionType) else repr(value)
