"""Loading a target: a kernel file, a function, an nn.Module, or a file with Model and ModelNew."""

import ast
import dataclasses
import difflib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, Literal

import torch
from torch import nn

from ..random_numbers import seed_random_numbers
from ..runtime import as_on_a_gpu, interpreting
from ..wire.packing import ContainerKind, Packing
from .module_state import first_keys, held, holds_others, numbers_read, register_attributes, state_arguments
from .packing import Args, Kwargs, by_parameter
from .redirect import redirect
from .target_file import (
    ArityMismatch,
    ModuleUnconstructed,
    NameMissing,
    NotCallable,
    ReferenceMissing,
    StateMismatch,
    TargetError,
    TargetLoadFailed,
    described,
    load_file,
)

Role = Literal["reference", "candidate"]
Kind = Literal["kernel_file", "model_file", "function", "module"]

NAMES_BY_ROLE: dict[str, tuple[str, str]] = {
    "reference": ("reference", "Model"),
    "candidate": ("run", "ModelNew"),
}
"""The name in a target without one: the first in a kernel file, else the second."""
DTYPES = {str(value): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
INITIAL_SEED = 20250117
AS_IT_IS: AbstractContextManager[object] = nullcontext()
"""A module is constructed on real tensors."""


@dataclass(frozen=True)
class Loaded:
    """A target that can be called with named arguments."""

    kind: Kind
    name: str
    file: Path
    contents: ModuleType
    """The imported file."""
    signature: inspect.Signature
    """The function's, or forward's without `self`."""
    call: Callable[..., Any]
    """Takes the signature's arguments; a module's also takes its state by keyword."""
    module: nn.Module | None = None
    left_out: Collection[str] = ()
    """What of the reference's state it is not given."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names that the signature takes, in its order; state not among them."""
        return tuple(self.signature.parameters)

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """A module's parameters and buffers, detached, by the names of arguments; empty for a function.

        A tensor with several names in the module has its first one. Buffers that no state_dict has are among
        them, but for positions, which a kernel makes by itself.
        """
        if self.module is None:
            return {}
        values = held(self.module)
        return {name: values[key].detach() for name, key in self.state_keys.items()}

    @property
    def state_keys(self) -> dict[str, str]:
        """The module's key behind each name of `state`."""
        return {} if self.module is None else state_arguments(self.module, self.parameters)

    @property
    def unsaved(self) -> list[str]:
        """The names of `state` that no state_dict has."""
        saved = set() if self.module is None else self.module.state_dict().keys()
        return [name for name, key in self.state_keys.items() if key not in saved]

    def __call__(self, arguments: Mapping[str, Any], state: Mapping[str, torch.Tensor]) -> Any:
        """Call with `arguments` in the declaration's order, packed as they say, and `state` by keyword.

        Raises ArityMismatch where the signature does not take them.
        """
        state = {name: value for name, value in state.items() if name not in self.left_out}
        by_keyword = {} if self.module is not None else state
        args, kwargs = bind(self.name, self.signature, self.taken(arguments), by_keyword)
        return self.call(*args, **{**kwargs, **state})

    def without_unnamed(self, unsaved: Collection[str]) -> "Loaded":
        """The same, not given those of a reference's `unsaved` tensors that it has no name for."""
        if self.module is None and "kwargs" in self.variadic.values():
            return self
        named = self.state_keys if self.module is not None else self.signature.parameters
        return dataclasses.replace(self, left_out=frozenset(unsaved) - named.keys())

    def taken(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments as it takes them: packed, or one by one where its signature has their names.

        The text `torch.float32` is passed as that dtype.
        """
        arguments = {name: DTYPES.get(v, v) if isinstance(v, str) else v for name, v in arguments.items()}
        flat = {name: value for name, value in arguments.items() if not isinstance(value, Packing)}
        if len(flat) < len(arguments) and flat.keys() <= self.signature.parameters.keys():
            return flat
        return by_parameter(arguments, vars(self.contents))

    @property
    def variadic(self) -> dict[str, ContainerKind]:
        """The parameters that collect what has no name of its own."""
        kinds: dict[Any, ContainerKind] = {
            inspect.Parameter.VAR_POSITIONAL: "args",
            inspect.Parameter.VAR_KEYWORD: "kwargs",
        }
        parameters = self.signature.parameters.items()
        return {name: kinds[p.kind] for name, p in parameters if p.kind in kinds}

    def to_gpu(self) -> None:
        """Move what a module holds beside its state to the GPU, or to what poses as one."""
        if self.module is not None and (interpreting() or torch.cuda.is_available()):
            with as_on_a_gpu():
                self.module.cuda()

    def with_state(self, state: Mapping[str, torch.Tensor], unsaved: Collection[str]) -> "Loaded":
        """The candidate, the reference's state loaded into its module; a function takes it at the call.

        Either side may have `unsaved` tensors of its own. Raises StateMismatch that names both lists of keys.
        """
        if self.module is not None:
            self._load_state(self.module, state, unsaved)
        return self.without_unnamed(unsaved)

    def _load_state(
        self, module: nn.Module, state: Mapping[str, torch.Tensor], unsaved: Collection[str]
    ) -> None:
        names = {key: name for name, key in self.state_keys.items()}
        keys = {key: names[first] for key, first in first_keys(module).items()}
        if {*keys.values()} - {*self.unsaved} - {*state} or {*state} - {*unsaved} - {*keys.values()}:
            raise StateMismatch(
                f"`{self.name}` does not take the reference's state_dict: the reference has {listed(state)}; "
                f"`{self.name}` has {listed(keys.values())}"
            )
        try:
            saved = module.state_dict().keys()
            module.load_state_dict({key: state[name] for key, name in keys.items() if key in saved})
            for key, name in keys.items():
                if key not in saved and name in state:
                    module.get_buffer(key).copy_(state[name])
        except RuntimeError as error:
            raise StateMismatch(f"`{self.name}` does not take the reference's state: {error}") from error


class ModuleCall:
    """A module as a function of its arguments and, by keyword, of its parameters and buffers."""

    def __init__(self, module: nn.Module, parameters: Collection[str]) -> None:
        self.module, self.parameters = module, parameters

    @cached_property
    def keys(self) -> dict[str, str]:
        """Those of the state, by argument."""
        return state_arguments(self.module, self.parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = {key: kwargs.pop(name) for name, key in self.keys.items() if name in kwargs}
        return torch.func.functional_call(self.module, state, args, kwargs)


def with_forward(loaded: Loaded, forward: Callable[..., Any]) -> Loaded:
    """A module that computes by this function, which takes the module first."""
    assert loaded.module is not None
    bound = MethodType(forward, loaded.module)
    loaded.module.forward = bound
    signature = signature_of(bound)
    call = ModuleCall(loaded.module, signature.parameters)
    return dataclasses.replace(loaded, signature=signature, call=call)


def needs_memory(loaded: Loaded, target: Mapping[str, Any]) -> bool:
    """Whether a module cannot be made on the meta device, with nothing lost but the values of its state."""
    assert loaded.module is not None
    if holds_others(loaded.module):
        return True
    init = tuple(target.get("init", ()))
    try:
        ImportedFile(loaded.file, loaded.contents, init, torch.device("meta")).construct(loaded.name)
    except TargetError:
        return True
    return False


def drawn_numbers(loaded: Loaded, target: Mapping[str, Any]) -> list[str]:
    """Attributes of a module that its methods read, and that are another number at each construction."""
    assert loaded.module is not None
    file = ImportedFile(loaded.file, loaded.contents, tuple(target.get("init", ())), AS_IT_IS)
    other = numbers_read(file.construct(loaded.name, INITIAL_SEED + 1))
    return [
        name for name, number in numbers_read(loaded.module).items() if repr(number) != repr(other.get(name))
    ]


def load(
    target: Mapping[str, Any],
    role: Role,
    staged: Mapping[str, str] | None = None,
    constructing: AbstractContextManager[object] = AS_IT_IS,
) -> Loaded:
    """Import the target's file, and load what its name, or without one its role, refers to.

    `target` is the JSON of schema/target.py. `staged` are the copies to import instead of originals, by the
    originals' absolute paths, from now on in this process. A module is constructed inside of `constructing`.
    Raises a TargetError.
    """
    if staged:
        redirect(staged)
    with as_on_a_gpu():
        contents = load_file(Path(target["path"]))
        file = ImportedFile(Path(target["path"]), contents, tuple(target.get("init", ())), constructing)
        return file.load(target["name"], role)


@dataclass(frozen=True)
class ImportedFile:
    """An imported file, and how its classes of modules are constructed."""

    path: Path
    contents: ModuleType
    init: tuple[str, ...]
    """Arguments of a module class as `name=value`."""
    constructing: AbstractContextManager[object]

    def load(self, name: str | None, role: Role) -> Loaded:
        """What the name, or without one the role, refers to."""
        if name is not None:
            if not hasattr(self.contents, name):
                near = suggestion(name, public_names(self.contents))
                raise NameMissing(f"{self.path} has no `{name}`; {near}")
            return self.named(name)
        function_name, class_name = NAMES_BY_ROLE[role]
        if hasattr(self.contents, function_name):
            return dataclasses.replace(self.named(function_name), kind="kernel_file")
        if hasattr(self.contents, class_name):
            return dataclasses.replace(self.named(class_name), kind="model_file")
        kind = ReferenceMissing if role == "reference" else NameMissing
        raise kind(
            f"{self.path} has neither `{function_name}` (kernel file) nor `{class_name}` to serve as the "
            f"{role}; it defines {listed(public_names(self.contents))}"
        )

    def named(self, name: str) -> Loaded:
        """What `name` is: a function, a module, or a class of modules to construct."""
        value = getattr(self.contents, name)
        if isinstance(value, type) and issubclass(value, nn.Module):
            value = self.construct(name)
        about = (name, self.path, self.contents)
        if isinstance(value, nn.Module):
            register_attributes(value)
            if not is_fixed_problem(self.contents, name):
                # Dropout off and running statistics fixed: what an inference kernel computes.
                value.eval()
            signature = signature_of(value.forward)
            return Loaded("module", *about, signature, ModuleCall(value, signature.parameters), value)
        if type(value).__module__.startswith("triton."):
            raise NotCallable(f"`{name}` is a @triton.jit kernel; name the Python function that launches it")
        if isinstance(value, type) or not callable(value):
            raise NotCallable(f"`{name}` is {a_kind_of(value)}, neither a function nor an nn.Module")
        return Loaded("function", *about, signature_of(value), value)

    def construct(self, name: str, seed: int = INITIAL_SEED) -> nn.Module:
        """The module from `init`, or from the file's get_init_inputs(), a list or keywords."""
        seed_random_numbers(seed)
        try:
            with self.constructing:
                declared = getattr(self.contents, "get_init_inputs", list)
                given: Any = dict(map(literal, self.init)) or declared()
                cls = getattr(self.contents, name)
                module: nn.Module = cls(**given) if isinstance(given, dict) else cls(*given)
                return module
        except Exception as error:
            kind = ModuleUnconstructed if isinstance(error, TypeError) else TargetLoadFailed
            raise kind(
                f"constructing `{name}` raised {described(error, self.path)}; "
                "its arguments come from --init NAME=VALUE, or from get_init_inputs() in the same file"
            ) from error


def is_fixed_problem(contents: ModuleType, name: str) -> bool:
    """Whether the file says all about its module, its mode (training or not) too: get_inputs() calls it.

    A ModelNew that declares nothing answers such a file.
    """
    answers = name == NAMES_BY_ROLE["candidate"][1] and not hasattr(contents, "INPUTS")
    return answers or hasattr(contents, "get_inputs")


def literal(text: str) -> tuple[str, Any]:
    """Name and value of `dim=512`; a value that is no Python literal is text."""
    name, _, value = text.partition("=")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (SyntaxError, ValueError):
        return name.strip(), value.strip()


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature; of a builtin without one, a signature that takes anything."""
    if isinstance(function, torch.jit.ScriptFunction):
        schema: Any = function.schema
        return inspect.Signature([scripted_parameter(argument) for argument in schema.arguments])
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        kinds = (("args", inspect.Parameter.VAR_POSITIONAL), ("kwargs", inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature([inspect.Parameter(name, kind) for name, kind in kinds])


def scripted_parameter(argument: Any) -> inspect.Parameter:
    """A parameter as the schema of a scripted function has it."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
    return inspect.Parameter(argument.name, kinds[argument.kwarg_only], default=default)


def bind(
    name: str, signature: inspect.Signature, arguments: Mapping[str, Any], state: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by name where the signature knows each, else by position; state by keyword."""
    if all(argument in signature.parameters for argument in arguments):
        in_order = {name: arguments[name] for name in signature.parameters if name in arguments}
        bound = inspect.BoundArguments(signature, OrderedDict(in_order))
        args, kwargs = bound.args, {**bound.kwargs, **state}
    else:
        passed = (value for value in arguments.values() if not isinstance(value, Kwargs))
        args = tuple(v for value in passed for v in (value if isinstance(value, Args) else (value,)))
        collected = (value for value in arguments.values() if isinstance(value, Kwargs))
        kwargs = {**dict(item for value in collected for item in value.items()), **state}
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ArityMismatch(
            f"`{name}` takes {listed(signature.parameters)}, but is given "
            f"{listed([*arguments, *state])}: {error}"
        ) from error
    return args, kwargs


def public_names(contents: ModuleType) -> list[str]:
    """Functions and classes that the file itself defines, in its order."""
    return [
        name
        for name, value in vars(contents).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == contents.__name__
    ]


def suggestion(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"nearest: {listed(near)}" if near else f"it defines {listed(names)}"


def listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def a_kind_of(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
