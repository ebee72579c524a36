"""The evidence that a rule may ask for: a file, or one kernel in it."""

import ast
import io
import itertools
import re
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytorch_to_triton.audit.call_arguments import argument, pointer_of
from pytorch_to_triton.audit.flow import Flow
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.value_types import TypedValues
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.triton_api.check import Misuse, misuses
from pytorch_to_triton.triton_api.history import history
from pytorch_to_triton.triton_api.name_scope import (
    NameScope,
    function_scope,
    module_scope,
    own_nodes,
    parameters_of,
)
from pytorch_to_triton.triton_api.surface import installed_version

Function = ast.FunctionDef | ast.AsyncFunctionDef

_JIT = frozenset({"triton.jit", "triton.runtime.jit.jit"})
_OF_TRITON = _JIT | {"triton.autotune", "triton.heuristics"}
_FORK = re.compile(
    r"(?:^|[_.])(?:ascend|npu|mlu|cambricon|musa|mthreads|gcu|kunlunxin|metax|iluvatar|hygon|aipu)(?:[_.]|$)"
)
"""Folders, files and names of Triton's forks."""
_FORK_MODULES = frozenset({"torch_npu", "torch_mlu", "torch_musa"})
_LINE_END = re.compile(r"\r\n|\r|\n")
_WRAPPERS = frozenset({"torch.library.wrap_triton", "torch.library.capture_triton"})
"""`wrapper(kernel)[grid](...)` launches the kernel too."""


_TOO_DEEP = frozenset({"too many nested parentheses", "too many levels of indentation"})
"""The parser's messages for code that is nested too deeply."""


class TooDeep(BadInput):
    """A file whose code is nested more deeply than Python's parser, or a rule, can follow."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is nested too deeply to be read.",
            "Split the nested code into functions or statements.",
        )


@dataclass(frozen=True, eq=False)
class LaunchSite:
    """`kernel[grid](...)`."""

    call: ast.Call
    kernel: "SourceKernel"
    function: Function | None
    """Where it stands; None at the top of the file."""
    flow: Flow
    """Of that function's body."""

    @property
    def grid(self) -> ast.expr:
        """What stands in the brackets."""
        assert isinstance(self.call.func, ast.Subscript)
        return self.call.func.slice

    @property
    def options(self) -> Mapping[str, ast.expr]:
        """Its keyword arguments: parameters of the kernel, num_warps and the like."""
        return {keyword.arg: keyword.value for keyword in self.call.keywords if keyword.arg}

    @cached_property
    def given(self) -> Mapping[str, ast.expr]:
        """The arguments by the kernel's parameters; what `*` and `**` may pass is left out."""
        names = self.kernel.parameters
        plain = itertools.takewhile(lambda one: not isinstance(one, ast.Starred), self.call.args)
        by_place = dict(zip(names, plain, strict=False))
        return by_place | {name: value for name, value in self.options.items() if name in names}


@dataclass(frozen=True, eq=False)
class KernelAccess:
    """A tl.load, tl.store or tl.atomic_* of a kernel."""

    call: ast.Call
    name: str
    """`load`, `store`, `atomic_add` and the like."""
    address: ast.expr
    mask: ast.expr | None
    other: ast.expr | None
    """Of a load."""
    value: ast.expr | None
    """Of what writes."""
    pointer: str | None
    """The parameter that the address starts from, where that is certain."""

    @property
    def writes(self) -> bool:
        return self.name != "load"


@dataclass(frozen=True, eq=False)
class SourceKernel(TypedValues):
    """One @triton.jit function: a kernel, or a function that kernels call."""

    file: "SourceFile"
    node: ast.FunctionDef
    decorators: Mapping[str, ast.expr]
    """By path, `triton.autotune` for one; those whose path is unknown are left out."""
    plain: bool
    """Every decorator is Triton's own; any other may change how the kernel is called, and with what."""

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def name(self) -> str:
        return self.node.name

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(parameter.arg for parameter in parameters_of(self.node))

    @cached_property
    def runtime_parameters(self) -> frozenset[str]:
        """Those that are not tl.constexpr and that the body never rebinds."""
        own = {name for name in self.parameters if len(self.scope.bindings[name]) == 1}
        return frozenset(own - self.constexprs)

    @cached_property
    def constexprs(self) -> frozenset[str]:
        """The parameters that are tl.constexpr."""
        return frozenset(p.arg for p in parameters_of(self.node) if self._is_constexpr(p))

    @cached_property
    def accesses(self) -> tuple[KernelAccess, ...]:
        """Its loads, stores and atomics through plain pointers, in source order."""
        return tuple(
            access for operation in self.operations if (access := access_of(operation, self)) is not None
        )

    @cached_property
    def loads(self) -> tuple[KernelAccess, ...]:
        return tuple(access for access in self.accesses if access.name == "load")

    @cached_property
    def stores(self) -> tuple[KernelAccess, ...]:
        return tuple(access for access in self.accesses if access.name == "store")

    @cached_property
    def launches(self) -> tuple[LaunchSite, ...]:
        """Where the file launches it; none where a wrapper decides what a launch passes."""
        launches = self.file.launches if self.plain else ()
        return tuple(launch for launch in launches if launch.kernel is self)

    @property
    def is_launched(self) -> bool:
        """Whether it certainly is a kernel: autotuned, or launched in this file."""
        return "triton.autotune" in self.decorators or bool(self.launches)

    @cached_property
    def callers(self) -> tuple[tuple["SourceKernel", ast.Call], ...]:
        """Where other kernels of the file call it, each with the call."""
        return tuple(
            (caller, node)
            for caller in self.file.kernels
            for node in caller.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == self.name
            if self.file.kernel_named(self.name, caller.scope) is self
        )

    def passed(self, parameter: str) -> Iterator[tuple["SourceKernel", ast.Call, ast.expr]]:
        """What those calls give a parameter."""
        place = self.parameters.index(parameter)
        for caller, call in self.callers:
            if (value := argument(call, place, parameter)) is not None:
                yield caller, call, value

    def has_scalar(self, parameter: str) -> bool:
        return parameter in self.constexprs or self.is_launched

    def _is_constexpr(self, parameter: ast.arg) -> bool:
        """As Triton decides it: the annotation's text says so."""
        annotation = parameter.annotation
        if annotation is None:
            return False
        path = self.scope.path(annotation) or ast.unparse(annotation)
        return "constexpr" in path


@dataclass(frozen=True, eq=False)
class SourceFile:
    """A whole file: its kernels and the functions that launch them."""

    path: Path
    tree: ast.Module
    text: str

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the file, the outer ones first."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Without their ends."""
        return tuple(lines_of(self.text))

    @cached_property
    def scope(self) -> NameScope:
        """The names of the file."""
        return module_scope(self.tree)

    @property
    def imports_triton(self) -> bool:
        """Whether triton or something in it is imported anywhere."""
        return any(
            binding.path is not None and binding.path.split(".")[0] == "triton"
            for scope in (self.scope, *(scope for _, scope in self.functions))
            for bindings in scope.bindings.values()
            for binding in bindings
        )

    @cached_property
    def functions(self) -> tuple[tuple[Function, NameScope], ...]:
        """Every function, nested ones and methods included, with the scope of its body."""
        return tuple(_functions(self.tree.body, self.scope))

    @cached_property
    def bodies(self) -> tuple[tuple[Function | None, NameScope, list[ast.stmt]], ...]:
        """The statements at the top of the file, then those of each function, with their scopes."""
        functions = ((function, scope, function.body) for function, scope in self.functions)
        return ((None, self.scope, self.tree.body), *functions)

    @cached_property
    def kernels(self) -> tuple[SourceKernel, ...]:
        """Every @triton.jit function."""
        return tuple(
            kernel
            for function, scope in self.functions
            if isinstance(function, ast.FunctionDef) and (kernel := self._kernel(function, scope))
        )

    @cached_property
    def launches(self) -> tuple[LaunchSite, ...]:
        """Every call of the form `name[grid](...)` whose name is a kernel of this file."""
        return tuple(
            LaunchSite(node, kernel, function, flow)
            for function, scope, body in self.bodies
            for flow in (Flow(body, scope),)
            for node in flow.nodes
            if isinstance(node, ast.Call) and (kernel := self._kernel_launched(node, scope))
        )

    @cached_property
    def misuses(self) -> tuple[Misuse, ...]:
        """Names and arguments that the installed Triton lacks; where none is, the newest that is known.

        None of a file that is written for a fork of Triton, whose names are its own.
        """
        if self.is_for_a_fork:
            return ()
        known = history()
        faults = misuses(self.tree, known.surface(installed_version()), known)
        return tuple(fault for fault in faults if not _FORK.search(fault.name))

    @cached_property
    def is_for_a_fork(self) -> bool:
        """Whether it is written for another maker's Triton: its path or what it imports says so."""
        imported = {
            binding.path.split(".")[0]
            for bindings in self.scope.bindings.values()
            for binding in bindings
            if binding.path
        }
        return bool(imported & _FORK_MODULES) or any(_FORK.search(part) for part in self.path.parts)

    def kernel_named(self, name: str, scope: NameScope) -> SourceKernel | None:
        """The kernel of this file that a name means in a scope."""
        binding = scope.find(name)
        return self._kernel_at.get(binding.node) if binding else None

    def _kernel_launched(self, call: ast.Call, scope: NameScope) -> SourceKernel | None:
        match call.func:
            case ast.Subscript(value=ast.Name(id=name)):
                return self.kernel_named(name, scope)
            case ast.Subscript(value=ast.Call(func=wrapper, args=[ast.Name(id=name)])) if (
                scope.path(wrapper) in _WRAPPERS
            ):
                return self.kernel_named(name, scope)
        return None

    @cached_property
    def _kernel_at(self) -> Mapping[ast.AST, SourceKernel]:
        return {kernel.node: kernel for kernel in self.kernels}

    def _kernel(self, function: ast.FunctionDef, scope: NameScope) -> SourceKernel | None:
        """The function as a kernel; None where it is not decorated with triton.jit."""
        around = scope.parent or self.scope
        paths = [
            (around.path(decorator.func if isinstance(decorator, ast.Call) else decorator), decorator)
            for decorator in function.decorator_list
        ]
        decorators = {path: decorator for path, decorator in paths if path}
        if not decorators.keys() & _JIT:
            return None
        plain = len(decorators) == len(paths) and decorators.keys() <= _OF_TRITON
        return SourceKernel(function.body, scope, self, function, decorators, plain)


def parse(path: Path, source: bytes) -> SourceFile:
    """The file as evidence. Raises TooDeep where it is nested too deeply, BadInput where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, filename=str(path))
        text = decode(source)
    except (RecursionError, MemoryError) as error:
        raise TooDeep(path) from error
    except SyntaxError as error:
        if error.msg in _TOO_DEEP:
            raise TooDeep(path) from error
        where = f"{path}:{error.lineno}:{error.offset}" if error.lineno else str(path)
        raise BadInput(
            f"{where}: {error.msg}.", "Fix the syntax error; an audit needs the whole file."
        ) from error
    except (ValueError, LookupError) as error:
        raise BadInput(f"{path} is not Python source: {error}.", "Name Python files or folders.") from error
    return SourceFile(path, tree, text)


def lines_of(text: str) -> list[str]:
    """As the parser counts them, without their ends: a form feed ends no line."""
    return _LINE_END.split(text.removesuffix("\n"))


def decode(source: bytes) -> str:
    """The text of Python source, in the encoding that it declares."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return io.TextIOWrapper(io.BytesIO(source), encoding, errors="replace").read()


def access_of(operation: Operation, kernel: SourceKernel) -> KernelAccess | None:
    """The operation as an access to memory; None where it is something else or gives no address."""
    name = operation.name
    address = operation.option(0, "pointer")
    if address is None or not (name in ("load", "store") or name.startswith("atomic_")):
        return None
    start = pointer_of(address, kernel)
    value_at = 2 if name == "atomic_cas" else 1
    return KernelAccess(
        call=operation.call,
        name=name,
        address=address,
        mask=None if name == "atomic_cas" else operation.option(1 if name == "load" else 2, "mask"),
        other=operation.option(2, "other") if name == "load" else None,
        value=operation.option(value_at, "value" if name == "store" else "val") if name != "load" else None,
        pointer=start.arg if start else None,
    )


def _functions(body: list[ast.stmt], scope: NameScope) -> Iterator[tuple[Function, NameScope]]:
    for node in own_nodes(body):
        if isinstance(node, Function):
            own = function_scope(node, scope)
            yield node, own
            yield from _functions(node.body, own)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, scope)
