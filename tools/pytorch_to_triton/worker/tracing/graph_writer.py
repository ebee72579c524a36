"""An exported program as the JSON of schema/graph.py: sizes as expressions over the caller's dims."""

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from ..calls.exchange import AFTER_THE_CALL
from ..loading.packing import SCALARS
from ..wire.packing import key_source
from .exported_call import Returned
from .numbers_in_graph import Number, Numbers
from .size_guards import UnknownFunction, conditions, least_asked_for, text_of, texts_of, tidy, told_from_one
from .source_names import SourceNames

FIRST = {
    "aten.slice.Tensor": 2, "aten.select.int": 2, "aten.slice_scatter.default": 3,
    "aten.select_scatter.default": 3,
}  # fmt: skip
"""Operators that begin at a position of a dimension, and which of their arguments says where; the dimension
is the one before."""
WANTED = (OutputKind.USER_OUTPUT, OutputKind.GRADIENT_TO_USER_INPUT, OutputKind.USER_INPUT_MUTATION)


Extent = Callable[[int | torch.SymInt], int]
"""What number a size is."""


class NotRepresentable(Exception):
    """The program holds something that plain data cannot express, such as a constant tensor."""


class MutatesArguments(NotRepresentable):
    """The target writes to its arguments or buffers, where that cannot be drafted."""


class KeepsState(NotRepresentable):
    """The module keeps what it computes for its next call."""


class SizeOfValues(NotRepresentable):
    """A size, or a number that is computed with, depends on the values of tensors."""


class ReturnsNoTensor(NotRepresentable):
    """The function returns something else than tensors that it computes."""


class Sizes:
    """Translates torch's size symbols into expressions over the declared dims."""

    def __init__(
        self,
        tensors: list[Node],
        inputs: list[dict[str, Any]],
        dims: Mapping[str, int],
        ranges: Mapping[sympy.Symbol, Any],
    ) -> None:
        self.ranges = ranges
        self.dims = dims
        self.replacements: dict[sympy.Symbol, sympy.Expr] = {}
        self.fixed: dict[str, int] = {}
        sizes = (size for tensor in tensors for size in tensor.meta["val"].shape)
        self.free = next((size for size in sizes if isinstance(size, torch.SymInt)), None)
        names = {name: sympy.Symbol(name, integer=True, positive=True) for name in dims}
        for tensor, spec in zip(tensors, inputs, strict=True):
            for size, text in zip(tensor.meta["val"].shape, spec["shape"], strict=True):
                declared = sympy.sympify(text.replace("//", "/"), locals=names) if "//" not in text else None
                expression = size.node.expr if isinstance(size, torch.SymInt) else None
                if isinstance(expression, sympy.Symbol):
                    plain = text in names
                    if plain or expression not in self.replacements:
                        self.replacements[expression] = (
                            declared if declared is not None else sympy.Symbol(f"({text})", integer=True)
                        )
                elif (expression is None or expression.is_number) and not text.isdigit():
                    self.fixed[text] = int(size)

    def expression(self, size: int | torch.SymInt | torch.SymFloat) -> str:
        """A size as text over the dims, e.g. `2*H`."""
        if isinstance(size, int):
            return str(size)
        try:
            return text_of(sympy.sympify(size.node.expr).subs(self.replacements))
        except UnknownFunction as problem:
            raise NotRepresentable(str(problem)) from problem

    def traced(self, size: int | torch.SymInt) -> int:
        if isinstance(size, int):
            return size
        hint = size.node.hint
        if not isinstance(hint, int):
            raise SizeOfValues("the size of a result depends on values, not on shapes")
        return hint

    def extent(self, dims: Mapping[str, int]) -> Extent:
        """Sizes at those of the dims; as traced where they do not follow from them."""

        def at_dims(size: int | torch.SymInt) -> int:
            if isinstance(size, int):
                return size
            found = size.node.expr.subs(self.replacements)
            found = found.subs({s: dims[s.name] for s in found.free_symbols if s.name in dims})
            return int(found) if found.is_Integer else self.traced(size)

        return at_dims

    def number(self, value: float | torch.SymInt | torch.SymFloat) -> Number:
        """A size, or a number computed from sizes."""
        if isinstance(value, int | float):
            return Number.of(value)
        hint = value.node.hint
        if hint is None:
            raise SizeOfValues("a number depends on values, not on shapes")
        return Number(tidy(self.expression(value)), hint, literal=False)

    def shape(self, tensor: torch.Tensor) -> dict[str, Any]:
        """A tensor's shape, both ways."""
        return {
            "expressions": [self.expression(n) for n in tensor.shape],
            "traced": [self.traced(n) for n in tensor.shape],
        }

    def input(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        shape = {"expressions": spec["shape"], "traced": spec["traced"]}
        return {"name": spec["name"], "shape": shape, "dtype": spec["dtype"]}

    def guards(self) -> list[str]:
        """Sizes that torch.export could not keep free, or only where the caller's branches go this way."""
        fixed = [f"{name} == {size}" for name, size in self.fixed.items()]
        bounds = []
        for symbol, allowed in self.ranges.items():
            if symbol not in self.replacements:
                continue
            name = self.replacements[symbol]
            # Sizes 0 and 1 are never traced, so 2 is where every range starts.
            if isinstance(allowed.lower, sympy.Integer) and self.free is not None:
                least = least_asked_for(self.free, symbol, int(allowed.lower))
                bounds += [f"{name} >= {least}"] if least > 2 else []
            if isinstance(allowed.upper, sympy.Integer):
                bounds.append(f"{name} <= {allowed.upper}")
        known = {symbol: sympy.sympify(dim) for symbol, dim in self.replacements.items()}
        return [*fixed, *(bounds if self.free is None else conditions(self.free, known, bounds))]

    def told_from_one(self, answers: Sequence[Any]) -> list[str]:
        """What the caller's own branches on whether a size is 1 were told."""
        return told_from_one(answers, {s: sympy.sympify(dim) for s, dim in self.replacements.items()})

    def not_one(self, kept: Sequence[int | torch.SymInt]) -> list[str]:
        """That these sizes are not 1, where they depend on the inputs: a result has another rank then."""
        sizes = [tidy(self.expression(n)) for n in kept if not isinstance(n, int)]
        return [f"{size} != 1" for size in dict.fromkeys(sizes)]

    def not_below(self, leasts: Sequence[tuple[torch.SymInt, int]]) -> list[str]:
        """That each size is at least what stands beside it: 1 or 2."""
        found: dict[str, int] = {}
        for size, least in leasts:
            text = tidy(self.expression(size))
            found[text] = max(least, found.get(text, 0))
        return [f"{size} >= {least}" for size, least in found.items()]

    def every_guard(self) -> list[str]:
        """All that torch asked of the sizes, also what changes no result, as far as Python can say it."""
        known = {symbol: sympy.sympify(dim) for symbol, dim in self.replacements.items()}
        return [] if self.free is None else texts_of(self.free, known)


def left_out(node: Node) -> Iterator[float]:
    """The numbers that torch leaves out of a call because they are the operator's defaults.

    An argument of the caller's may stand there, which has another value in another trace.
    """
    schema = getattr(node.target, "_schema", None)
    for argument in schema.arguments[len(node.args) :] if schema else ():
        is_number = str(argument.type) in ("number", "float") and argument.default_value is not None
        if argument.kwarg_only or argument.name in node.kwargs or not is_number:
            return
        yield argument.default_value


class NodeWriter:
    """Writes the nodes of one exported program; `known` maps torch's node names to the graph's."""

    def __init__(
        self,
        known: dict[str, str],
        names: SourceNames,
        sizes: Sizes,
        lifted: Mapping[str, float | int | bool],
    ) -> None:
        self.known = known
        self.names = names
        self.sizes = sizes
        self.numbers = Numbers(lifted, sizes.number)

    def is_operator(self, node: Node) -> bool:
        """Whether the node computes tensors; numbers, size arithmetic and assertions are left out."""
        value = node.meta.get("val")
        computes = node.op == "call_function" and isinstance(value, torch.Tensor | tuple | list)
        return computes and self.numbers.of(node) is None

    def write(self, node: Node) -> dict[str, Any]:
        """One operator call; it has its name from `names_of`."""
        value = node.meta["val"]
        tensor = value if isinstance(value, torch.Tensor) else None
        name = "getitem" if node.target is operator.getitem else str(node.target)
        arguments = [self.argument(a) for a in (*node.args, *left_out(node))]
        if len(arguments) > (place := FIRST.get(name, len(arguments))):
            arguments[place] = self._first(node, place)
        keywords = {key: self.argument(a) for key, a in node.kwargs.items()}
        if tensor is not None and (number := self.numbers.everywhere(node)) is not None:
            # A tensor of its own, whose shape matters: to `y[mask] = 0`, or to what is returned.
            shape = self.argument(list(tensor.shape))
            name, arguments = "aten.full.default", [shape, self._number(number, node)]
            keywords = {"dtype": self.argument(tensor.dtype)}
        return {
            "name": self.known[node.name],
            "op": name,
            "args": arguments,
            "kwargs": keywords,
            "shape": None if tensor is None else self.sizes.shape(tensor),
            "dtype": None if tensor is None else str(tensor.dtype).removeprefix("torch."),
            "line": self._line(node),
            "ends_operator": ends_operator(node),
        }

    def argument(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Node):
            return self._node(value)
        if isinstance(value, list | tuple):
            return {"form": "list", "items": [self.argument(v) for v in value]}
        if isinstance(value, float) and not math.isfinite(value):
            return {"form": "nonfinite", "value": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return {"form": "literal", "value": value}
        return {"form": "literal", "value": str(value).removeprefix("torch.")}

    def _node(self, node: Node) -> dict[str, Any]:
        if node.name in self.known:
            return {"form": "node", "name": self.known[node.name]}
        number = self.numbers.of(node)
        if number is None:
            raise NotRepresentable(f"a constant tensor is used{self.where(node)}")
        return self._number(number, node)

    def _first(self, node: Node, place: int) -> dict[str, Any]:
        """Where a slice begins, counted from the first element as at the sizes of this trace."""
        source, dim, given = held(node.args[0]), held(node.args[place - 1]), held(node.args[place])
        if given is None or given >= 0:
            return self.argument(node.args[place])
        from_start = given + source.shape[dim]
        return self._number(self.sizes.number(from_start if from_start >= 0 else 0), node)

    def _number(self, number: Number, node: Node) -> dict[str, Any]:
        """A number as an argument; `node` is where it is computed."""
        if number.literal:
            return self.argument(number.value)
        label = self._label(node)
        return {"form": "size", "expression": number.text, "traced": number.value, "label": label}

    def _label(self, node: Node) -> str | None:
        """The variable that the caller's source assigns a computed number to."""
        line = self._line(node)
        names = self.names.assigned(line)
        tensors = (n for n in node.graph.nodes if self._line(n) == line and self.is_operator(n))
        return names[0] if len(names) == 1 and not any(tensors) else None

    def literal(self, path: str, value: Any) -> str:
        """The source of a result that is no tensor: a constant, a size. Raises ReturnsNoTensor."""
        if isinstance(value, torch.SymInt | torch.SymFloat):
            return self.sizes.number(value).text
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if (
            value is None
            or isinstance(value, SCALARS)
            or (isinstance(value, list | tuple) and all(isinstance(item, SCALARS) for item in value))
        ):
            return key_source(value) if isinstance(value, str) else repr(value)
        raise ReturnsNoTensor(f"{path} is a {type(value).__name__}, not a tensor")

    def where(self, node: Node) -> str:
        """The first place in the caller's source that uses the node."""
        lines = [line for n in (node, *node.users) if (line := self._line(n)) is not None]
        return f" in line {lines[0]}: `{self.names.text(lines[0])}`" if lines else ""

    def _line(self, node: Node) -> int | None:
        return self.names.line(node.meta.get("stack_trace"))


def held(argument: Any) -> Any:
    """What an argument is in the trace."""
    return argument.meta["val"] if isinstance(argument, Node) else argument


def ends_operator(node: Node) -> bool:
    """Whether it is a cast that torch added when it took an operator apart, which computes in float32."""
    source = node.args[0] if str(node.target) == "aten._to_copy.default" else None
    part_of = origin(node)
    return isinstance(source, Node) and part_of is not None and part_of == origin(source)


def origin(node: Node) -> str | None:
    """The name of the aten call in the exported program that the node is a part of, where torch knows it."""
    sources = node.meta.get("from_node")
    while sources and sources[-1].from_node:
        sources = sources[-1].from_node
    return sources[-1].name if sources and sources[-1].target.startswith("aten.") else None


def names_of(nodes: Sequence[Node], taken: Collection[str]) -> dict[str, str]:
    """The graph's names of operators: torch's, unless one is taken, as that of a caller's input `index`."""
    given, names = {*taken, *(node.name for node in nodes)}, {}
    for node in nodes:
        name = node.name
        if name in taken:
            name = next(new for n in count(1) if (new := f"{name}_{n}") not in given)
            given.add(name)
        names[node.name] = name
    return names


def lifted_scalars(program: ExportedProgram) -> dict[str, float | int | bool]:
    """Constant tensors of no dimension, by placeholder name."""
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    values = {name: program.constants[key] for name, key in constants.items()}
    return {name: value.item() for name, value in values.items() if value.dim() == 0}


def named_outputs(
    program: ExportedProgram, writer: NodeWriter, returned: Returned
) -> tuple[Any, list[dict[str, str]]]:
    """What the function returns: how it is packed, as JSON, and each tensor's path and node.

    Raises ReturnsNoTensor, unless it writes to an argument.
    """
    values, packing = returned.values, returned.packing
    paths = [path for path, value in values.items() if isinstance(value, torch.Tensor)]
    outputs = []
    for path, node in zip(paths, returned_nodes(program), strict=True):
        reference = writer.argument(node)
        if reference["form"] != "node":
            raise ReturnsNoTensor(f"{path} is a constant")
        outputs.append({"path": path, "name": reference["name"]})
    literals = {p: writer.literal(p, value) for p, value in values.items() if p not in paths}
    if not outputs and not program.graph_signature.user_inputs_to_mutate:
        raise ReturnsNoTensor(f"it returns {', '.join(literals.values())}, and no tensor")
    return packing if isinstance(packing, str) else packing.renamed(literals).as_json(), outputs


def written_arguments(program: ExportedProgram, writer: NodeWriter) -> dict[str, dict[str, str]]:
    """The arguments that it writes to: an output for each that has its value after the call."""
    nodes = {node.name: node for node in program.graph.nodes}
    outputs = {}
    for name, placeholder in program.graph_signature.user_inputs_to_mutate.items():
        argument, value = writer.known[placeholder], writer.argument(nodes[name])
        if value["form"] != "node":
            raise MutatesArguments(f"it fills {argument} with a constant")
        outputs[argument] = {"path": f"{argument}{AFTER_THE_CALL}", "name": value["name"]}
    return outputs


def returned_nodes(program: ExportedProgram) -> list[Any]:
    """What the function itself returns, in order: the new values of tensors that it writes to left out."""
    (output,) = [n for n in program.graph.nodes if n.op == "output"]
    kinds = [spec.kind for spec in program.graph_signature.output_specs]
    return [node for node, kind in zip(output.args[0], kinds, strict=True) if kind is OutputKind.USER_OUTPUT]


def behind_outputs(program: ExportedProgram) -> set[Node]:
    """The nodes that what it returns is computed from, and its gradients if it has any."""
    found: set[Node] = set()
    named = {s.arg.name for s in program.graph_signature.output_specs if s.kind in WANTED}
    waiting = [node for node in program.graph.nodes if node.name in named]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found
