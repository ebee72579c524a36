"""What a kernel's source contains: what its names mean, which functions it calls, its atomic operations."""

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

ATOMIC_INSTRUCTION = re.compile(r"\b(?:atom|red)(?:\.\w+)+")
"""In inline assembly, of PTX."""
MISSING = object()
Values = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """One function's body and default values; its decorators and annotations are left out."""

    function: Callable[..., Any]
    nodes: tuple[ast.AST, ...]
    inside: Mapping[ast.AST, ast.AST]
    """The node around each."""
    local: frozenset[str]
    defaults: Values
    chains: Mapping[ast.AST, Sequence[str]]
    """Names and dotted names that are no part of a longer one, each with its parts."""
    assignments: Sequence[tuple[ast.AST, Sequence[str]]]
    """What is assigned, with the names that it is assigned to."""

    def reads(self, attribute: str) -> bool:
        """Whether an attribute of this name is read, by its name or through getattr."""
        return any(
            getattr(node, "attr", None) == attribute
            or (isinstance(node, ast.Constant) and node.value == attribute)
            for node in self.nodes
        )


@dataclass(frozen=True)
class Meaning:
    """What a dotted name means."""

    value: object
    root: object
    holder: object
    """What the last part is an attribute of; the root of a name without parts."""
    is_global: bool


@functools.lru_cache(1024)
def source_of(function: Callable[..., Any]) -> FunctionSource | None:
    """None for a function that was not written in a file, or whose text is no function's."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    arguments = definition.args
    kept = [*definition.body, *arguments.defaults, *(d for d in arguments.kw_defaults if d)]
    nodes = tuple(node for part in kept for node in ast.walk(part))
    inside = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    named = {argument.arg for argument in ast.walk(arguments) if isinstance(argument, ast.arg)}
    longest = [node for node in nodes if not isinstance(inside.get(node), ast.Attribute)]
    return FunctionSource(
        function,
        nodes,
        inside,
        local=frozenset(stored | named),
        defaults=defaults_of(function),
        chains={node: parts for node in longest if (parts := parts_of(node))},
        assignments=tuple(assignments_in(nodes)),
    )


def assignments_in(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, Sequence[str]]]:
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield node.value, [target.id for target in targets if isinstance(target, ast.Name)]


def defaults_of(function: Callable[..., Any]) -> Values:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


@functools.cache
def uses_atomics(function: Callable[..., Any]) -> bool:
    """Whether the kernel, or a function of its own that it calls, has an atomic operation in its source."""
    return any(source and any(atomics_in(source)) for source in sources(function))


@functools.cache
def orders_by_atomics(function: Callable[..., Any]) -> bool:
    """Whether the result of an atomic operation is used, as by a ticket or a lock, in the kernel or a jit
    function that it calls; also where a source is not known, and for one in assembly."""
    return any(
        source is None or any(is_used(atomic, source) for atomic in atomics_in(source))
        for source in sources(function)
    )


@functools.cache
def while_lines(function: Callable[..., Any]) -> tuple[int, ...]:
    """The lines of the `while` loops of a kernel, and of functions of its file that it calls."""
    known = [source for source in sources(function) if source is not None]
    codes = [(source.function.__code__, source.nodes) for source in known]
    return tuple(
        code.co_firstlineno + node.lineno - 1
        for code, nodes in codes
        if code.co_filename == function.__code__.co_filename
        for node in nodes
        if isinstance(node, ast.While)
    )


def is_used(atomic: ast.AST, source: FunctionSource) -> bool:
    """Whether something is done with the result of an atomic operation, or with the operation itself."""
    call = source.inside.get(atomic)
    if not isinstance(call, ast.Call) or call.func is not atomic:
        return True
    return not isinstance(source.inside.get(call), ast.Expr)


def sources(function: Callable[..., Any]) -> Iterator[FunctionSource | None]:
    """The kernel's and those of the jit functions that it names, directly or not; each once."""
    return (source for _, source, _ in functions_behind(function, {}))


def functions_behind(
    kernel: Callable[..., Any], launch_arguments: Values
) -> Iterator[tuple[Callable[..., Any], FunctionSource | None, Values]]:
    """The kernel's function and the jit functions that it names, each once: with its source and arguments.

    `launch_arguments` are by parameter; of other functions none are known.
    """
    waiting, visited = [(kernel, launch_arguments)], {kernel}
    while waiting:
        function, arguments = waiting.pop()
        source = source_of(function)
        yield function, source, arguments
        called = {} if source is None else jit_functions(source, arguments)
        waiting += [(each, {}) for each in called.keys() - visited]
        visited |= called.keys()


def jit_functions(source: FunctionSource, arguments: Values) -> dict[Callable[..., Any], None]:
    """The Python functions behind the jit functions that a source names, in the source's order."""
    meanings = (meaning_of(node, source, arguments) for node in source.chains)
    values = (meaning.value for meaning in meanings if meaning)
    return {value.fn: None for value in values if isinstance(value, JITFunction | InterpretedFunction)}


def atomics_in(source: FunctionSource) -> Iterator[ast.AST]:
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("atomic_"):
            yield node
        elif isinstance(node, ast.Constant) and is_atomic(node.value):
            if not isinstance(source.inside.get(node), ast.Expr):
                yield node
        elif isinstance(node, ast.Name):
            meaning = meaning_of(node, source, {})
            if meaning and is_atomic(meaning.value):
                yield node


def is_atomic(value: object) -> bool:
    if isinstance(value, str):
        return ATOMIC_INSTRUCTION.search(value) is not None
    return str(getattr(value, "__name__", "")).startswith("atomic_") or any(
        # Interpreted, each function of triton.language is a lambda.
        value is each
        for name, each in vars(tl).items()
        if name.startswith("atomic_")
    )


def parts_of(node: ast.AST) -> list[str]:
    """`["tl", "math", "exp"]` of `tl.math.exp`; empty for what is no dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def meaning_of(node: ast.AST, source: FunctionSource, arguments: Values) -> Meaning | None:
    """What a dotted name means, as far as is known without running anything of the author's.

    `arguments` are those of the launch, by parameter.
    """
    first, *rest = source.chains.get(node) or parts_of(node) or [""]
    if first in source.local:
        root, is_global = arguments.get(first, source.defaults.get(first, MISSING)), False
    else:
        root, is_global = outer_value(first, source.function), True
    value = holder = plain_value(root)
    for part in rest:
        if value is MISSING:
            break
        holder, value = value, plain_value(attribute(value, part))
    return None if value is MISSING else Meaning(value, root, holder, is_global)


def attribute(value: object, name: str) -> object:
    if type(value) is ModuleType and name in vars(value):
        return vars(value)[name]
    return inspect.getattr_static(value, name, MISSING)


def outer_value(name: str, function: Callable[..., Any]) -> object:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    if name not in cells:
        return function.__globals__.get(name, MISSING)
    try:
        return cells[name].cell_contents
    except ValueError:  # nothing was assigned to it yet
        return MISSING


def plain_value(value: object) -> object:
    """A constexpr's value and a bound or static method's function."""
    if isinstance(value, tl.constexpr):
        return value.value
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value
