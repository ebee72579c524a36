"""Complex tensors as pairs of real ones: what kernels compute with, as they have no complex numbers.

An operator without a rule here, such as those of torch.fft, takes and gives complex tensors as before.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

ATEN = torch.ops.aten
Part = Any
"""A node that computes a real tensor, a number, or None for zero."""
LINEAR = frozenset(
    {
        "alias", "chunk", "clone", "contiguous", "cumsum", "detach", "diagonal", "expand", "expand_as",
        "flatten", "flip", "gather", "index", "index_select", "lift_fresh_copy", "mean", "movedim", "narrow",
        "neg", "permute", "repeat", "reshape", "roll", "select", "slice", "split", "split_with_sizes",
        "squeeze", "sum", "t", "transpose", "tril", "triu", "unbind", "unflatten", "_unsafe_view",
        "unsqueeze", "view", "view_as",
    }
)  # fmt: skip
"""Operators that do with each part what they do with a real tensor."""
PRODUCTS = frozenset({"mul", "mm", "bmm", "matmul", "dot", "mv", "outer"})
KEPT = ("stack_trace", "nn_module_stack", "from_node", "source_fn_stack")
"""What is known of a node's place in the source."""


Multiplied = Callable[[Node, Node], Node]


class Pair(NamedTuple):
    """A complex tensor or number."""

    real: Part
    imag: Part
    """None: it is real."""


def with_pairs(program: ExportedProgram, *, differentiated: bool) -> ExportedProgram:
    """The program with two real tensors for each complex one, as far as there are rules.

    Where it is `differentiated`, magnitude and angle have a gradient of 0 at 0, as PyTorch's have.
    """
    if not any(map(is_complex, program.graph.nodes)):
        return program
    functional = program.run_decompositions({})
    signature = functional.graph_signature
    (output,) = functional.graph.find_nodes(op="output")
    before = [node.name for node in output.args[0]]
    rewriting = Rewriting(functional, differentiated=differentiated)
    for node in list(functional.graph.nodes):
        rewriting.take(node)
    functional.graph.eliminate_dead_code()
    names = dict(zip(before, (node.name for node in output.args[0]), strict=True))
    for spec in signature.output_specs:
        spec.arg.name = names[spec.arg.name]
    functional.graph_module.recompile()
    rewritten: ExportedProgram = functional._update(functional.graph_module, signature)
    return rewritten


def is_complex(node: Node) -> bool:
    """Whether it computes a complex tensor, or several."""
    values = node.meta.get("val")
    values = values if isinstance(values, tuple | list) else [values]
    return any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)


class Rewriting:
    """The way through a graph's nodes."""

    def __init__(self, program: ExportedProgram, *, differentiated: bool) -> None:
        self.graph = program.graph
        self.differentiated = differentiated
        self.mode = next(
            value.fake_mode
            for node in program.graph.nodes
            if isinstance(value := node.meta.get("val"), torch.Tensor) and hasattr(value, "fake_mode")
        )
        self.pairs: dict[Node, Any] = {}
        """Of each complex node: its pair, or those of its parts."""
        self.stacked: dict[Node, tuple[Part, Part]] = {}
        """The real tensors whose last dimension has both parts of a complex one."""
        self.whole: dict[Node, Node] = {}
        """Complex tensors made of pairs, for what has no rule."""
        self.node: Node

    def take(self, node: Node) -> None:
        """Let the node take and give pairs."""
        self.node = node
        if not any(is_complex(n) or n in self.stacked for n in (node, *node.all_input_nodes)):
            return
        if node.op == "placeholder":
            self.pairs[node] = None
            return
        with self.graph.inserting_before(node):
            rule = None if node.op == "output" else self.rule_of(node)
            if rule is None and not any(map(is_complex, (node, *node.all_input_nodes))):
                return
            if rule is None:
                node.args, node.kwargs = map_arg((node.args, node.kwargs), self.made)
            else:
                self.put(node, rule())
                return
        if node.op != "output" and is_complex(node):
            self.pairs[node] = None  # Taken apart where it is needed.

    def rule_of(self, node: Any) -> Callable[[], Any] | None:
        """What computes the node's result of pairs; None where nothing does."""
        packet = getattr(node.target, "overloadpacket", node.target)
        name = getattr(packet, "__name__", "")
        if name == "_assert_tensor_metadata":
            return lambda: None
        if name in ("sym_size", "sym_numel", "sym_stride") and node.args[0] in self.pairs:
            return lambda: self.emit(node.target, self.pair(node.args[0]).real, *node.args[1:])
        if name == "getitem" and isinstance(held := self.pairs.get(node.args[0]), list):
            return lambda: held[node.args[1]]
        if name == "select" and node.args[0] in self.stacked:
            return self.part_of(node)
        rule = BY_NAME.get(name.strip("_")) or getattr(type(self), f"rule_{name.strip('_')}", None)
        if rule is not None:
            return lambda: rule(self, *node.args, **node.kwargs)
        if name in LINEAR and node.args[0] in self.pairs:
            return lambda: self.linear(node)
        if name in PRODUCTS:
            a, b = node.args
            by = functools.partial(self.emit, node.target)
            return lambda: self.product(self.pair(a), self.pair(b), by)
        return None

    def part_of(self, node: Any) -> Callable[[], Any] | None:
        """What takes one part of a complex tensor; None where it takes something else."""
        both, dim, index = node.args
        last = both.meta["val"].dim() - 1
        is_part = dim in (last, -1) and index in (0, 1)
        return (lambda: self.stacked[both][index]) if is_part else None

    def put(self, node: Node, result: Any) -> None:
        """Replace the node by its result, a real tensor or pairs."""
        if isinstance(result, Pair | list):
            self.pairs[node] = result
        elif result is None:
            self.graph.erase_node(node)
        else:
            node.replace_all_uses_with(result)

    def emit(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """A node, on numbers a number."""
        node = self.graph.call_function(target, args, kwargs)
        node.meta = {key: self.node.meta[key] for key in KEPT if key in self.node.meta}
        values, named = map_arg((args, kwargs), lambda n: n.meta["val"])
        with self.mode:
            node.meta["val"] = target(*values, **named)
        return node

    def pair(self, value: Any) -> Pair:
        if isinstance(value, complex):
            return Pair(value.real, value.imag)
        if not isinstance(value, Node) or not is_complex(value):
            return Pair(value, None)
        held = self.pairs.get(value)
        if held is None:
            held = self.pairs[value] = self.taken_apart(self.emit(ATEN.view_as_real.default, value))
        assert isinstance(held, Pair)
        return held

    def taken_apart(self, both: Node) -> Pair:
        """The pair of a real tensor whose last dimension has both parts."""
        return Pair(*(self.emit(ATEN.select.int, both, -1, i) for i in (0, 1)))

    def made(self, node: Node) -> Node:
        """The complex tensor of a pair, for what takes no pairs."""
        pair = self.pairs.get(node)
        if pair is None:
            return node
        if node not in self.whole:
            self.whole[node] = self.emit(ATEN.view_as_complex.default, self.rule_view_as_real(node))
        return self.whole[node]

    def parts(self, value: Any) -> tuple[Part, Part]:
        """Both parts of an operand, zeros where it is real."""
        pair = self.pair(value)
        zeros = self.emit(ATEN.zeros_like.default, pair.real) if pair.imag is None else pair.imag
        return pair.real, zeros

    # Arithmetic of parts, of which None is zero.

    def times(self, a: Part, b: Part, by: Multiplied | None = None) -> Part:
        if a is None or b is None:
            return None
        if by and isinstance(a, Node) and isinstance(b, Node):
            return by(a, b)
        return self.either_way(ATEN.mul.Tensor, operator.mul, a, b)

    def plus(self, a: Part, b: Part) -> Part:
        if a is None or b is None:
            return b if a is None else a
        return self.either_way(ATEN.add.Tensor, operator.add, a, b)

    def either_way(self, target: Any, of_numbers: Callable[[Any, Any], Any], a: Part, b: Part) -> Part:
        """What takes a tensor first and does not care for the order; of two numbers a number."""
        if not isinstance(a, Node) and not isinstance(b, Node):
            return of_numbers(a, b)
        return self.emit(target, *((a, b) if isinstance(a, Node) else (b, a)))

    def minus(self, a: Part, b: Part) -> Part:
        if a is None or b is None or not isinstance(a, Node):
            return self.plus(a, self.times(b, -1.0))
        return self.emit(ATEN.sub.Tensor, a, b)

    def over(self, a: Part, b: Part) -> Part:
        if a is None or isinstance(a, Node):
            return None if a is None else self.emit(ATEN.div.Tensor, a, b)
        return self.times(self.emit(ATEN.reciprocal.default, b), a) if isinstance(b, Node) else a / b

    def product(self, a: Pair, b: Pair, by: Multiplied | None = None) -> Pair:
        real = self.minus(self.times(a.real, b.real, by), self.times(a.imag, b.imag, by))
        return Pair(real, self.plus(self.times(a.real, b.imag, by), self.times(a.imag, b.real, by)))

    def quotient(self, a: Pair, b: Pair) -> Pair:
        """With the divisor scaled, as its square may overflow."""
        if b.imag is None:
            return Pair(self.over(a.real, b.real), self.over(a.imag, b.real))
        if not isinstance(b.real, Node):
            inverse = 1 / complex(b.real, b.imag)
            return self.product(a, Pair(inverse.real, inverse.imag))
        largest = self.emit(ATEN.maximum.default, *(self.emit(ATEN.abs.default, part) for part in b))
        real, imag = (self.emit(ATEN.div.Tensor, part, largest) for part in b)
        square = self.plus(self.times(b.real, real), self.times(b.imag, imag))
        above = self.product(a, Pair(real, self.times(imag, -1.0)))
        return Pair(self.over(above.real, square), self.over(above.imag, square))

    # Rules, by the operator's name without underscores around it.

    def linear(self, node: Any) -> Any:
        first, *more = node.args
        results = [self.emit(node.target, part, *more, **node.kwargs) for part in self.parts(first)]
        values = results[0].meta["val"]
        if not isinstance(values, tuple | list):
            return Pair(*results)
        return [Pair(*(self.emit(operator.getitem, r, i) for r in results)) for i in range(len(values))]

    def rule_einsum(self, equation: str, operands: Any, path: Any = None) -> Pair:
        first, *others = map(self.pair, operands)
        if not others:
            return Pair(*(self.emit(ATEN.einsum.default, equation, [part]) for part in first))
        (second,) = others
        return self.product(first, second, lambda a, b: self.emit(ATEN.einsum.default, equation, [a, b]))

    def summed(self, part: Callable[[Part, Part], Part], a: Any, b: Any, alpha: Any) -> Pair:
        (real, imag), other = self.pair(a), self.scaled(b, alpha)
        return Pair(part(real, other.real), part(imag, other.imag))

    def scaled(self, value: Any, factor: Any) -> Pair:
        pair = self.pair(value)
        return pair if factor == 1 else self.product(pair, self.pair(factor))

    def rule_conj(self, a: Any) -> Pair:
        real, imag = self.parts(a)
        return Pair(real, self.emit(ATEN.neg.default, imag))

    rule_conj_physical = rule_conj

    def rule_to_copy(self, a: Any, dtype: torch.dtype | None = None, **_: Any) -> Any:
        pair = self.pair(a)
        if dtype is None:
            return pair
        if not dtype.is_complex:
            return self.emit(ATEN._to_copy.default, pair.real, dtype=dtype)
        parts = (p and self.emit(ATEN._to_copy.default, p, dtype=dtype.to_real()) for p in pair)
        return Pair(*parts)

    rule_to = rule_to_copy

    def rule_abs(self, a: Any) -> Any:
        return self.smooth_at_zero(ATEN.hypot.default, self.parts(a))

    def smooth_at_zero(self, target: Any, parts: tuple[Part, Part]) -> Any:
        """A function of both parts whose gradient where both are 0 is 0, and not 0 / 0."""
        real, imag = parts
        if not self.differentiated:
            return self.emit(target, real, imag)
        at_zero = (self.emit(ATEN.eq.Scalar, part, 0) for part in parts)
        is_zero = self.emit(ATEN.logical_and.default, *at_zero)
        ones = self.emit(ATEN.ones_like.default, real)
        elsewhere = (self.emit(ATEN.where.self, is_zero, ones, part) for part in parts)
        plain = self.emit(target, *(self.emit(ATEN.detach.default, part) for part in parts))
        return self.emit(ATEN.where.self, is_zero, plain, self.emit(target, *elsewhere))

    def rule_angle(self, a: Any) -> Any:
        real, imag = self.parts(a)
        return self.smooth_at_zero(ATEN.atan2.default, (imag, real))

    def rule_exp(self, a: Any) -> Pair:
        real, imag = self.parts(a)
        return self.rule_polar(self.emit(ATEN.exp.default, real), imag)

    def rule_polar(self, length: Any, angle: Any) -> Pair:
        parts = (self.emit(op, angle) for op in (ATEN.cos.default, ATEN.sin.default))
        return Pair(*(self.emit(ATEN.mul.Tensor, length, part) for part in parts))

    def rule_view_as_real(self, a: Any) -> Any:
        parts = self.parts(a)
        both = self.emit(ATEN.stack.default, list(parts), -1)
        self.stacked[both] = parts
        return both

    def rule_cat(self, tensors: Any, dim: int = 0) -> Pair:
        parts = zip(*map(self.parts, tensors), strict=True)
        return Pair(*(self.emit(self.node.target, list(part), dim) for part in parts))

    rule_stack = rule_cat

    def rule_where(self, condition: Any, a: Any, b: Any) -> Pair:
        pairs = zip(self.parts(a), self.parts(b), strict=True)
        return Pair(*(self.emit(ATEN.where.self, condition, *pair) for pair in pairs))


BY_NAME: dict[str, Callable[..., Any]] = {
    "add": lambda r, a, b, alpha=1: r.summed(r.plus, a, b, alpha),
    "sub": lambda r, a, b, alpha=1: r.summed(r.minus, a, b, alpha),
    "rsub": lambda r, a, b, alpha=1: r.summed(r.minus, b, a, alpha),
    "div": lambda r, a, b: r.quotient(r.pair(a), r.pair(b)),
    "reciprocal": lambda r, a: r.quotient(Pair(1.0, None), r.pair(a)),
    "square": lambda r, a: r.product(r.pair(a), r.pair(a)),
    "resolve_conj": Rewriting.pair,
    "resolve_neg": Rewriting.pair,
    "real": lambda r, a: r.pair(a).real,
    "imag": lambda r, a: r.parts(a)[1],
    "log": lambda r, a: Pair(r.emit(ATEN.log.default, r.rule_abs(a)), r.rule_angle(a)),
    "complex": lambda r, real, imag: Pair(real, imag),
    "view_as_complex": Rewriting.taken_apart,
}
"""Rules of one line, beside those that are methods."""
