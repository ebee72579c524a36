"""Job `triton_api`: read the public names of the installed Triton from Triton itself.

Gluon (`triton.experimental`) is left out: it is another language, with names of its own.
"""

import ast
import contextlib
import dis
import importlib
import inspect
import pkgutil
import textwrap
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import triton
from triton.language import dtype

from ..job_report import JobReport

_CUDA = "triton.language.extra.cuda"
_LIBDEVICE = "triton.language.extra.libdevice"
_READ = (
    "triton",
    "triton.language",
    "triton.language.math",
    _LIBDEVICE,
    f"{_CUDA}.libdevice",
    _CUDA,
    "triton.testing",
    "triton.tools.tensor_descriptor",
)
"""What is read name by name. What several of them have goes by the name in the first."""
_KNOWN_BY_NAME = "triton.tools"
"""A package whose modules are listed, but not read."""

Entry = dict[str, Any]


def work(report: JobReport) -> dict[str, Any]:
    """Triton's version, and its public names by their dotted paths."""
    report.during("reading Triton")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"version": triton.__version__, "entries": Reader().entries()}


class Reader:
    """Reads modules into entries; what has been read before becomes an alias."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._paths: dict[int, str] = {}

    def entries(self) -> dict[str, Entry]:
        """All entries by their dotted paths."""
        for path in _READ:
            # A build for one vendor may lack the other's modules.
            with contextlib.suppress(ModuleNotFoundError):
                self._module(path)
        self._entries[_KNOWN_BY_NAME] = _entry("module", members=_submodules(_KNOWN_BY_NAME))
        for path, entry in [*self._entries.items()]:
            if entry["kind"] == "module":
                self._unread(path)
        return self._entries

    def _module(self, path: str) -> None:
        module = importlib.import_module(path)
        names = {name: thing for name, thing in vars(module).items() if _is_ours(name, thing)}
        members = sorted({*names, *_submodules(path)})
        self._entries[path] = _entry("module", doc=inspect.getdoc(module) or "", members=members)
        for name, thing in names.items():
            self._thing(f"{path}.{name}", thing)

    def _thing(self, path: str, thing: Any) -> None:
        home = self._paths.get(id(thing)) if callable(thing) else None
        portable = path.replace(f"{_CUDA}.libdevice", _LIBDEVICE)
        if portable != path and portable in self._entries:
            # libdevice's portable functions are empty; those of the backend show what they call.
            self._entries[portable]["symbols"] = _symbols(thing)
            home = portable
        if home is not None:
            self._entries[home]["aliases"].append(path)
            return
        self._paths[id(thing)] = path
        self._entries[path] = _entry_of(thing)
        if inspect.isclass(thing):
            self._members(path, thing)

    def _members(self, path: str, owner: type) -> None:
        """The public methods, properties and attributes that a class of Triton's defines itself."""
        for name in self._entries[path]["members"]:
            thing = inspect.getattr_static(owner, name, None)
            if callable(_function_of(thing)):
                self._entries[f"{path}.{name}"] = _method(thing)
            else:
                self._entries[f"{path}.{name}"] = _entry(
                    "property", doc=inspect.getdoc(thing) or "" if isinstance(thing, property) else ""
                )

    def _unread(self, path: str) -> None:
        """The modules in a module that are not read: their names are known, what is in them is not."""
        for name in _submodules(path):
            self._entries.setdefault(f"{path}.{name}", _entry("module"))


def _entry_of(thing: Any) -> Entry:
    """The entry of a function, class, dtype or constant."""
    if inspect.isclass(thing):
        return _entry("class", thing, doc=_doc_of_class(thing), members=_members_of(thing))
    if isinstance(thing, dtype):
        return _entry("dtype")
    if not callable(thing):
        return _entry("constant", doc=repr(thing))
    function = _function_of(thing)
    kind = "builtin" if getattr(thing, "__triton_builtin__", False) else "function"
    return _entry(kind, thing, doc=inspect.getdoc(function) or "") | {"standing": _standing(function)}


def _method(thing: Any) -> Entry:
    """A method's entry, without the parameter that the object itself takes."""
    entry = _entry("method", thing, doc=inspect.getdoc(_function_of(thing)) or "")
    if entry["parameters"] and not isinstance(thing, staticmethod):
        del entry["parameters"][0]
    return entry


def _entry(kind: str, thing: Any = None, *, doc: str = "", members: list[str] | None = None) -> Entry:
    return {
        "kind": kind,
        "parameters": _parameters(thing) if thing is not None else None,
        "doc": doc,
        "members": members,
        "aliases": [],
        "symbols": {},
        "standing": "current",
    }


def _parameters(thing: Any) -> list[dict[str, Any]] | None:
    """What a caller may pass; what only the compiler passes starts with an underscore and is left out."""
    try:
        signature = inspect.signature(_function_of(thing))
    except (TypeError, ValueError):
        return None
    return [
        {
            "name": parameter.name,
            "kind": parameter.kind.name.lower(),
            "default": None if parameter.default is parameter.empty else repr(parameter.default),
        }
        for parameter in signature.parameters.values()
        if not parameter.name.startswith("_")
    ]


def _function_of(thing: Any) -> Any:
    """The Python function inside what @triton.jit and the like return; anything else as it is."""
    if isinstance(thing, staticmethod | classmethod):
        return thing.__func__
    return thing if inspect.isclass(thing) else getattr(thing, "fn", thing)


def _members_of(owner: type) -> list[str]:
    """The public names that a class defines, and the attributes that its constructor sets.

    Those of its base classes too, unless they have entries of their own.
    """
    names: list[str] = []
    for ancestor in owner.__mro__:
        if ancestor is owner or (_is_triton_s(ancestor) and not _is_public(ancestor)):
            names += (name for name, thing in vars(ancestor).items() if not inspect.isclass(thing))
            names += _attributes_set_by(vars(ancestor).get("__init__"))
    return sorted({name for name in names if not name.startswith("_")})


def _attributes_set_by(constructor: Any) -> list[str]:
    code = getattr(inspect.unwrap(constructor), "__code__", None)
    return [step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"] if code else []


def _is_public(owner: type) -> bool:
    return any(getattr(module, owner.__name__, None) is owner for module in (triton, triton.language))


def _is_triton_s(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] == "triton"


def _doc_of_class(owner: type) -> str:
    """Its docstring, or that of a base class in Triton; those of Python's own classes do not describe it."""
    docs = (ancestor.__doc__ for ancestor in owner.__mro__ if _is_triton_s(ancestor))
    return inspect.cleandoc(next((doc for doc in docs if doc), ""))


def _is_ours(name: str, thing: Any) -> bool:
    """Whether a module's name is public and Triton's, not something that the module imported for itself."""
    if name.startswith("_") or isinstance(thing, ModuleType):
        return False
    if not callable(thing):
        return isinstance(thing, int | dtype)
    return _is_triton_s(_function_of(thing))


def _submodules(path: str) -> list[str]:
    folders = getattr(importlib.import_module(path), "__path__", ())
    return sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_"))


def _standing(function: Callable[..., Any]) -> str:
    """Whether calling it works, warns whatever the arguments, or is refused."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    texts = [constant for constant in code.co_consts if isinstance(constant, str)] if code else []
    # Reading the source is slow, and hardly any function has such a text.
    if not any("deprecated" in text or "removed" in text for text in texts):
        return "current"
    for statement in _definition(function).body:
        match statement:
            case ast.Raise():
                return "removed"
            case ast.Expr(value=ast.Call(func=ast.Name(id="warn") | ast.Attribute(attr="warn"))):
                return "deprecated"
    return "current"


def _symbols(function: Callable[..., Any]) -> dict[str, str]:
    """The device function that each combination of dtypes calls: {"fp32": "__nv_tanhf"}."""
    return {
        ", ".join(_constants(key)): next(_constants(value))
        for node in ast.walk(_definition(inspect.unwrap(function)))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None
    }


def _definition(function: Callable[..., Any]) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _constants(node: ast.AST) -> Iterator[str]:
    """The texts in an expression, in order."""
    for child in ast.walk(node):
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
