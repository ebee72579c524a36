"""What a kernel's source uses that runs in Triton's interpreter, being Python, and that no compiler accepts.

The compiler, of Triton 3.6 to 3.9, looks a bare name up among the kernel's own names, functions of Triton,
jit and constexpr functions, modules, named tuples, constexprs and a few built-ins, and refuses every other
one. Through a module or a constexpr it calls any function, while it compiles: one that needs the values of a
tensor fails. What is not known for certain is not named.
"""

import ast
import builtins
import enum
import inspect
import numbers
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from types import FunctionType, ModuleType
from typing import Any

import torch
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import ConstexprFunction, JITFunction

from .frames import owner_of_value
from .kernel_source import FunctionSource, Meaning, Values, functions_behind, meaning_of, parts_of, source_of

COMPUTING_BUILTINS = frozenset(
    {"__import__", "compile", "eval", "exec", "globals", "locals", "open", "setattr", "vars"}
)
TENSOR_MAKERS = frozenset(
    {"load", "arange", "program_id", "num_programs", "zeros", "full", "zeros_like", "dot", "exp", "exp2"}
    | {"log", "log2", "sqrt", "rsqrt", "sum", "cumsum", "where", "rand", "randn", "randint", "trans"}
)
"""Functions of triton.language that give a tensor whatever they are given."""
ABOUT_A_TENSOR = frozenset({"dtype", "type", "shape", "ndim", "numel"})
"""Attributes that the compiler knows."""
ASKING = frozenset({"isinstance", "hasattr", "len", "type"})
BUILTINS = frozenset(id(value) for name, value in vars(builtins).items() if name not in COMPUTING_BUILTINS)
PLAIN = (numbers.Number, str, bytes, type(None), tl.dtype, tl.constexpr, enum.Enum, torch.dtype)
JIT = JITFunction | InterpretedFunction


def python_in(function: Callable[..., Any], arguments: Values) -> set[str]:
    """What the compiler would refuse in a kernel or a jit function that it calls, as the source spells it.

    `arguments` are the launch's, by parameter.
    """
    names: set[str] = set()
    for current, source, known_arguments in functions_behind(function, arguments):
        names.update(refusals_in(source, known_arguments) if source else refused_globals(current))
    return names


def refused_globals(function: Callable[..., Any]) -> Iterator[str]:
    """The same for a function of unknown source, by the names in its code."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if not is_tritons(Meaning(value, value, value, is_global=True)) and is_python(value):
            yield name


def refusals_in(source: FunctionSource, arguments: Values) -> Iterator[str]:
    tensors = tensor_names(source, arguments)
    for node in source.nodes:
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield f"import {getattr(node, 'module', None) or names[0].name}"
            # What the interpreter keeps of a tensor.
            case ast.Attribute(attr="handle", value=value) if source.reads("data") or is_tensor(
                value, source, tensors
            ):
                yield ".handle"
    python_values = {
        name: value for name, value in arguments.items() if is_python(value) and name not in tensors
    }
    for chain, parts in source.chains.items():
        meaning = meaning_of(chain, source, python_values)
        if meaning is None:
            is_builtin_name = parts[0] not in source.local and parts[0] not in source.function.__globals__
            if is_builtin_name and parts[0] in COMPUTING_BUILTINS:
                yield parts[0]
        elif is_refused(chain, meaning, source, tensors):
            yield ".".join(parts)


def is_refused(chain: ast.AST, meaning: Meaning, source: FunctionSource, tensors: frozenset[str]) -> bool:
    """Whether the compiler would refuse a dotted name as it is used there."""
    if is_tritons(meaning):
        return False
    if meaning.is_global and not is_visible(meaning.root):
        if isinstance(chain, ast.Attribute):
            # A plain value of a settings object: refused as well, and nothing is computed by it.
            return is_python(meaning.value) or isinstance(chain.ctx, ast.Store)
        return is_python(meaning.value)
    call = source.inside.get(chain)
    if not isinstance(call, ast.Call) or call.func is not chain or not callable(meaning.value):
        return False
    operands = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(is_tensor(each, source, tensors) for each in operands) and needs_values(meaning.value)


def is_visible(value: object) -> bool:
    """Whether the compiler lets a kernel see a global with this value."""
    return (
        isinstance(value, ModuleType | tl.constexpr | ConstexprFunction | JIT)
        or is_builtin(value)
        or is_record(value)
    )


def is_record(value: object) -> bool:
    """Whether the compiler knows how to make it, as it does aggregates and named tuples."""
    kind = value if isinstance(value, type) else type(value)
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return is_named_tuple or getattr(value, "__triton_aggregate__", False) is True


def is_python(value: object) -> bool:
    """Whether a value is Python that computes or collects: not a number, a type, a setting."""
    if isinstance(value, tuple):
        return any(map(is_python, value))
    if isinstance(value, PLAIN) or is_visible(value) or inspect.isdatadescriptor(value):
        return False
    return not isinstance(value, type) or owner_of_value(value) == "author"


def is_tritons(meaning: Meaning) -> bool:
    """Whether Triton or this worker made it, or Triton's own modules hold it and the author did not make it.

    So are built-in functions, and types that the compiler knows how to make.
    """
    value = meaning.value
    if id(value) in BUILTINS or is_record(value):
        return True
    if isinstance(value, ConstexprFunction):
        return owner_of_value(value.fn) == "triton"
    if isinstance(value, JIT) or owner_of_value(value) in ("triton", "worker"):
        return True
    held = isinstance(meaning.holder, ModuleType) and meaning.holder.__name__.startswith("triton.language")
    return held and owner_of_value(value) != "author"


def needs_values(value: object) -> bool:
    """Whether a function that the compiler calls itself, with a tensor, needs what that holds."""
    function = value.fn if isinstance(value, ConstexprFunction) else value
    source = source_of(function) if isinstance(function, FunctionType) else None
    return not is_builtin(function if source else value) and (
        source is None or computes_with_parameters(source)
    )


def is_builtin(function: object) -> bool:
    """Whether the compiler hands a function its own builder, with which tensors are computed with."""
    return getattr(function, "__triton_builtin__", False) is True


def computes_with_parameters(source: FunctionSource) -> bool:
    """Whether a parameter is used for more than its type and its shape."""
    parameters = inspect.signature(source.function).parameters
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id in parameters:
            around = source.inside.get(node)
            about = isinstance(around, ast.Attribute) and around.attr in ABOUT_A_TENSOR
            asking = isinstance(around, ast.Call) and ASKING.intersection(parts_of(around.func))
            if not about and not asking:
                return True
    return False


def tensor_names(source: FunctionSource, arguments: Values) -> frozenset[str]:
    """Local names that hold a tensor for certain wherever they are assigned one."""
    names = {name for name, value in arguments.items() if hasattr(value, "data_ptr")}
    for _ in range(2):
        for value, targets in source.assignments:
            if is_tensor(value, source, names):
                names.update(targets)
    return frozenset(names)


def is_tensor(node: ast.AST, source: FunctionSource, names: AbstractSet[str]) -> bool:
    """Whether an expression is a tensor for certain, where these names are."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, right=right):
            return is_tensor(left, source, names) or is_tensor(right, source, names)
        case ast.Compare(left=part) | ast.UnaryOp(operand=part) | ast.Subscript(value=part):
            return is_tensor(part, source, names)
        case ast.Call(func=called):
            meaning = meaning_of(called, source, {})
            if meaning is not None:
                return parts_of(called)[-1] in TENSOR_MAKERS and is_tritons(meaning)
            return isinstance(called, ast.Attribute) and is_tensor(called.value, source, names)
    return False
