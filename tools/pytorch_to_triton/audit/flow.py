"""What a value may be made from, in one function's body.

Every assignment of a name counts, whatever the order, and in all branches: what is not among the origins of
a value certainly is none of them; what is among them may be.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from pytorch_to_triton.triton_api.name_scope import NameScope, children, own_nodes

Stop = Callable[[ast.AST], bool]


def nowhere(_: ast.AST) -> bool:
    """Stops at nothing."""
    return False


def reachable(
    start: Iterable[ast.AST], sources: Callable[[ast.AST], Iterable[ast.AST]]
) -> frozenset[ast.AST]:
    """All nodes that following the sources of each node leads to, those at the start included."""
    reached: set[ast.AST] = set()
    ahead = [*start]
    while ahead:
        node = ahead.pop()
        if node not in reached:
            reached.add(node)
            ahead += sources(node)
    return frozenset(reached)


class Flow:
    """The assignments of one function's body, and what stands around each of its nodes."""

    def __init__(self, body: Sequence[ast.stmt], scope: NameScope) -> None:
        self._body = body
        self._scope = scope
        self._made_from: dict[ast.AST, Sequence[ast.AST]] = {}

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The node around each node of the body."""
        return {child: node for top in self._body for node in ast.walk(top) for child in children(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the nearest first."""
        at = self.parents.get(node)
        while at is not None:
            yield at
            at = self.parents.get(at)

    def conditions(self, node: ast.AST) -> list[ast.expr]:
        """The tests that decide whether a node runs, the nearest first; `else` branches count too."""
        return [
            outer.test
            for outer in self.around(node)
            if isinstance(outer, ast.If | ast.While | ast.IfExp) and node is not outer.test
        ]

    def loops(self, node: ast.AST) -> list[ast.For | ast.While]:
        """The loops around a node, the innermost first."""
        return [outer for outer in self.around(node) if isinstance(outer, ast.For | ast.While)]

    def feeds(self, name: str) -> tuple[ast.expr, ...]:
        """Every expression whose value, or a part of it, the name may hold; empty for parameters alone."""
        return self._feeds.get(name, ())

    def origins(self, *values: ast.AST, stop: Stop = nowhere) -> frozenset[ast.AST]:
        """All nodes that the values may be made from, themselves included, and the parameters (ast.arg).

        Nodes where `stop` is true are among them, but not what these are made from.
        """
        return reachable(values, lambda node: () if stop(node) else self._sources(node))

    def calls(self, *values: ast.AST, stop: Stop = nowhere) -> Iterator[tuple[str, ast.Call]]:
        """The calls of something with a known path among the origins of the values, with that path."""
        for node in self.origins(*values, stop=stop):
            if isinstance(node, ast.Call) and (path := self._scope.path(node.func)):
                yield path, node

    def parameters(self, *values: ast.AST, stop: Stop = nowhere) -> frozenset[str]:
        """The parameters that the values may be made from."""
        return frozenset(node.arg for node in self.origins(*values, stop=stop) if isinstance(node, ast.arg))

    def names(self, *values: ast.AST) -> frozenset[str]:
        """The names among the origins of the values."""
        return frozenset(node.id for node in self.origins(*values) if isinstance(node, ast.Name))

    def resolved(self, value: ast.expr) -> ast.expr:
        """The expression that a name stands for, where it is assigned just once; else the value itself."""
        seen: set[str] = set()
        while isinstance(value, ast.Name) and value.id not in seen and len(self.feeds(value.id)) == 1:
            seen.add(value.id)
            binding = self._scope.bindings.get(value.id, ())
            if len(binding) != 1 or binding[0].value is None:
                break
            value = binding[0].value
        return value

    def _sources(self, node: ast.AST) -> Sequence[ast.AST]:
        """Its parts, and of a name what is assigned to it and the parameter that it is."""
        if node not in self._made_from:
            sources = children(node)
            if isinstance(node, ast.Name):
                sources += self.feeds(node.id)
                bindings = self._scope.bindings.get(node.id, ())
                sources += [binding.node for binding in bindings if isinstance(binding.node, ast.arg)]
            self._made_from[node] = sources
        return self._made_from[node]

    @cached_property
    def _feeds(self) -> Mapping[str, tuple[ast.expr, ...]]:
        parts: defaultdict[str, list[ast.expr]] = defaultdict(list)
        for node in own_nodes(self._body):
            for target, value in _assignments_in(node):
                for name, part in _pairs(target, value):
                    parts[name].append(part)
        return {name: tuple(values) for name, values in parts.items()}


def _assignments_in(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
        ):
            yield target, value
        case ast.AugAssign(target=target, value=value):
            yield target, value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
            yield target, value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each name of a target with what it is given: its own element of a tuple as long, else all."""
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Starred(value=inner), _:
            yield from _pairs(inner, value)
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=values) | ast.List(elts=values)),
        ) if len(targets) == len(values) and not any(isinstance(t, ast.Starred) for t in targets):
            for one, other in zip(targets, values, strict=True):
                yield from _pairs(one, other)
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
            for one in targets:
                yield from _pairs(one, value)
        case ast.Subscript(value=inner) | ast.Attribute(value=inner), _:
            yield from _pairs(inner, value)
