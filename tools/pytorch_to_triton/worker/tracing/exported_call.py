"""A target as torch.export wants it, and which of a module's buffers it writes to on its way."""

import ast
import dataclasses
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import MappingProxyType
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from ..calls.call_inputs import parameter_names
from ..dispatch import AroundFunctions
from ..loading.packing import unpacked_result
from ..loading.target import Loaded, with_forward
from ..wire import tracing
from ..wire.packing import Packing
from .covariance import WITHOUT_VALUES

DATA = torch.Tensor.data.__get__  # type: ignore[attr-defined]
COPY = torch.ops.aten.clone.default
SMALL = (None, -2, -1, 0, 1, 2, sys.maxsize)
"""Where slices begin and end without a question of torch's about the size."""
MOST_TRIED = 129
"""Sizes of a dim that are tried for what is computed of it: T // 64 is 1 from 64 on."""
SQUEEZES = (torch.ops.aten.squeeze, torch.ops.aten.squeeze_, torch.ops.aten.squeeze_copy)
STATISTICS = {"batch_norm": "training", "instance_norm": "use_input_stats"}
"""Operators that write to running statistics where this argument is true; their schemas do not say so."""


class Returned:
    """What the last call returned; torch.export undoes what is assigned to a module itself."""

    values: Mapping[str, Any] = MappingProxyType({})
    """By path."""
    packing: Packing | str = ""
    """How they are packed."""
    assigned: frozenset[str] = frozenset()
    """The buffers of the module that were set to other tensors."""


class ExportedCall(torch.nn.Module):
    """The target with tensors as positional arguments and constants bound, as torch.export wants it."""

    def __init__(
        self,
        loaded: Loaded,
        names: Sequence[str],
        constants: Mapping[str, Any],
        copied: Collection[str] = (),
        sizes: Collection[str] = (),
    ) -> None:
        """`constants` are all but tensors, how they are packed included.

        `sizes` are numbers, each passed as a tensor of that length, so that torch.export follows it as it
        follows any size. `copied` are passed as copies: torch.export cannot decompose what writes to its
        arguments.
        """
        super().__init__()
        # Registered, so that export takes its parameters for parameters and not for stray constants.
        self.module = loaded.module
        self.loaded = dataclasses.replace(loaded, call=traceable(loaded.call))
        self.names = names
        self.constants = constants
        self.copied = copied
        self.sizes = sizes
        self.returned = Returned()

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The tensors of the result, one after the other."""
        given = dict(zip(self.names, tensors, strict=True))
        state = {name: given.pop(name) for name in self.loaded.state_keys}
        state.update({name: state[name].clone() for name in self.copied})
        numbers = {**self.constants, **{name: given.pop(name).shape[0] for name in self.sizes}}
        in_order = {n: v for n, v in {**given, **numbers}.items() if n in self.loaded.parameters}
        assigning = buffers_assigned(self.module)
        with AroundFunctions(without_values), AroundFunctions(data_detached), assigning as assigned:
            result = self.loaded({**in_order, **given, **numbers}, state)
        values, packing = unpacked_result(result, vars(self.loaded.contents))
        self.returned.values, self.returned.packing = values, packing
        self.returned.assigned = frozenset(assigned)
        return tuple(value for value in values.values() if isinstance(value, torch.Tensor))


@contextmanager
def buffers_assigned(module: torch.nn.Module | None) -> Iterator[set[str]]:
    """The buffers that are set to other tensors inside, by their names."""
    paths = {} if module is None else {id(part): path for path, part in module.named_modules()}
    names: set[str] = set()
    assign = torch.nn.Module.__setattr__

    def noted(part: torch.nn.Module, name: str, value: Any) -> None:
        if id(part) in paths and name in part.__dict__.get("_buffers", ()):
            names.add(f"{paths[id(part)]}.{name}".removeprefix("."))
        assign(part, name, value)

    torch.nn.Module.__setattr__ = noted  # type: ignore[method-assign, assignment]
    try:
        yield names
    finally:
        torch.nn.Module.__setattr__ = assign  # type: ignore[method-assign]


def data_detached(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.data` is `x.detach()`: torch.export would take it for a constant."""
    return args[0].detach() if function == DATA else function(*args, **kwargs)


def without_values(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What follows values only to warn is computed without."""
    return WITHOUT_VALUES.get(function, function)(*args, **kwargs)


def traceable(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same function under the name `forward`: the only frames whose lines torch.export records."""
    if not isinstance(call, types.FunctionType):
        return call
    code = call.__code__.replace(co_name="forward")
    copy = types.FunctionType(code, call.__globals__, "forward", call.__defaults__, call.__closure__)
    copy.__kwdefaults__ = call.__kwdefaults__
    return copy


def updatable(loaded: Loaded) -> frozenset[str]:
    """The buffers that a module in training may write to, such as running statistics."""
    training = loaded.module is not None and loaded.module.training
    return frozenset(loaded.state) - parameter_names(loaded) if training else frozenset()


def copies_of(program: ExportedProgram, known: Mapping[str, str]) -> dict[str, str]:
    """The nodes that copy an input, each with the name in `known` of that input."""
    nodes = (node for node in program.graph.nodes if node.target is COPY)
    return {node.name: known[node.args[0].name] for node in nodes if node.args[0].name in known}


def written_copies(program: ExportedProgram) -> list[int]:
    """The places of the arguments whose copies the program, not yet decomposed, writes to."""
    given = list(program.graph_signature.user_inputs)
    copied = {node: node.args[0].name for node in program.graph.nodes if node.target is COPY}
    written = {copied[node] for node in _written(program) if node in copied}
    return [place for place, name in enumerate(given) if name in written]


def kept_by_squeezing(program: ExportedProgram) -> Iterator[int | torch.SymInt]:
    """The sizes that `squeeze` would drop if they were 1, of the program not yet decomposed."""
    for node in program.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.target.overloadpacket in SQUEEZES:
            shape = node.args[0].meta["val"].shape
            dims = node.args[1] if len(node.args) > 1 else range(len(shape))
            kept = places_kept(shape, node.meta["val"].shape)
            asked = {d % len(shape) for d in ([dims] if isinstance(dims, int) else dims) if shape}
            yield from (shape[place] for place in sorted(asked & kept))


def least_for_slices(program: ExportedProgram) -> Iterator[tuple[torch.SymInt, int]]:
    """Sizes of which a slice takes something else at 0 or 1, each with the least for what is traced.

    torch takes every size for 2 or more, and asks for larger ones itself.
    """
    for node in program.graph.nodes:
        if node.target is not torch.ops.aten.slice.Tensor or len(node.args) < 3:
            continue
        source, dim, *bounds = node.args
        size, length = source.meta["val"].shape[dim], node.meta["val"].shape[dim]
        if isinstance(size, torch.SymInt) and all(bound in SMALL for bound in bounds[:2]):
            other = [n for n in (1, 0) if not holds_at(n, slice(*bounds), size, length)]
            if other:
                yield size, other[0] + 1


def holds_at(n: int, taken: slice, size: torch.SymInt, length: int | torch.SymInt) -> bool:
    """Whether a slice of n elements begins where it does in the trace, and is as long as is said there."""
    found = range(n)[taken]
    first = taken.start or 0
    begins = not found or found.start == first + (n if first < 0 else 0)
    # Where nothing is left, N - 1 of no elements is -1.
    lengths = (0 if traced.is_negative else traced for traced in lengths_at(n, size, length))
    return all(begins and len(found) == traced for traced in lengths)


def lengths_at(n: int, size: torch.SymInt, length: int | torch.SymInt) -> Iterator[Any]:
    """What the length is where `size` is n; nothing where it never is: T + 1 is not 0."""
    whole = size.node.expr
    part = length.node.expr if isinstance(length, torch.SymInt) else sympy.Integer(length)
    symbols = tuple(whole.free_symbols)
    if len(symbols) > 1:
        yield part.subs(whole, n)
    for value in values_with(whole, n) if len(symbols) == 1 else ():
        yield part.subs(symbols[0], value)


@cache
def values_with(whole: sympy.Expr, n: int) -> tuple[int, ...]:
    """The values of its one symbol, of those tried, with which the size is n."""
    (symbol,) = whole.free_symbols
    found = []
    for value in range(MOST_TRIED):
        with suppress(ZeroDivisionError):  # Some sizes are divided by another.
            if whole.subs(symbol, value) == n:
                found.append(value)
    return tuple(found)


def places_kept(shape: Sequence[Any], left: Sequence[Any]) -> set[int]:
    """The places of a shape that are left, in their order, when others were dropped."""
    waiting = [str(size) for size in left]
    places = set()
    for place, size in enumerate(shape):
        if waiting and str(size) == waiting[0]:
            waiting.pop(0)
            places.add(place)
    return places


def _written(program: ExportedProgram) -> Iterator[Any]:
    for node in program.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            schema = node.target._schema
            names = [argument.name for argument in schema.arguments]
            given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
            yield from (given.get(a.name) for a in schema.arguments if a.is_write)
            if given.get(STATISTICS.get(schema.name.removeprefix("aten::"), "")):
                yield from (given.get("running_mean"), given.get("running_var"))


def part_of(loaded: Loaded, part: tracing.PartSource) -> Loaded:
    """A part of the function as a function of the same file, its statements on their own lines; of a module
    as its `forward`, where the part takes it."""
    tree = ast.parse(part.text)
    placed = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
    for node, line in zip(placed, part.lines, strict=False):
        node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
        node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    found: dict[str, Callable[..., Any]] = {}
    exec(compile(tree, str(loaded.file), "exec"), vars(loaded.contents), found)
    function = found[part.name]
    if part.of_module:
        return dataclasses.replace(with_forward(loaded, traceable(function)), name=part.name)
    signature = inspect.signature(function)
    return dataclasses.replace(
        loaded, kind="function", name=part.name, signature=signature, call=function, module=None
    )
