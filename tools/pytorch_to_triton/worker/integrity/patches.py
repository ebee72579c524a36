"""Which functions of torch, Triton, Python and this worker were replaced since they were first seen."""

import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType

from .frames import TORCH, WORKER, owner_of_value
from .guarded_functions import owner_at

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
WRAPPERS = (WORKER, os.path.join(TORCH, "_compile.py"))
"""Whose wrappers around the very same function are fine; torch._dynamo wraps one when it is imported."""


@dataclass(frozen=True)
class Namespace:
    """A module or a class, and the functions that it held by name."""

    place: str
    owner: object
    held: Mapping[str, object]


class Patches:
    """What the functions are now is compared with what they were when this was made, by identity.

    Attributes added later are fine, unless they hide an inherited one.
    """

    def __init__(self) -> None:
        self._namespaces = [
            Namespace(place, owner_at(place), functions_of(owner_at(place)))
            for place in (*WATCHED, *INTERPRETED, *places_of_worker())
        ]

    def changed(self) -> list[dict[str, str]]:
        """`{"name": "torch.cuda.Event.elapsed_time", "now": repr}` for each."""
        return [patch for namespace in self._namespaces for patch in changes_in(namespace)]


def places_of_worker() -> Iterator[str]:
    """The modules of this worker and their classes, among them those that pose as torch.cuda's."""
    worker = __name__.rsplit(".", 2)[0]
    for name, module in [*sys.modules.items()]:
        if module is not None and f"{name}.".startswith(f"{worker}."):
            yield name
            for label, value in vars(module).items():
                if isinstance(value, type) and value.__module__ == name:
                    yield f"{name}:{label}"


def changes_in(namespace: Namespace) -> Iterator[dict[str, str]]:
    now = contents(namespace.owner)
    for name, before in namespace.held.items():
        value = now.get(name)
        if value is not before and not is_excused(namespace, before, value):
            yield {"name": f"{namespace.place.replace(':', '.')}.{name}", "now": description(value)}


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


def is_excused(namespace: Namespace, before: object, now: object) -> bool:
    """Whether Triton or this worker has replaced a function for itself."""
    defined = inspect.unwrap(now) if isinstance(now, FunctionType) else now
    is_authors = owner_of_value(defined) == "author"
    if namespace.place in INTERPRETED and not (isinstance(before, ModuleType) or is_authors):
        return True
    if not isinstance(now, FunctionType) or not now.__code__.co_filename.startswith(WRAPPERS):
        return False
    return any(cell.cell_contents is before for cell in now.__closure__ or ())


def description(value: object) -> str:
    return object.__repr__(value) if not isinstance(value, type | FunctionType) else repr(value)
