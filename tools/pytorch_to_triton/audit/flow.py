"""What a value may be made from, in one function's body.

Of `Flow` every assignment of a name counts, whatever the order, and in all branches: what is not among the
origins of a value certainly is none of them; what is among them may be. Of `Definitions` those that reach it.
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


Definition = ast.expr | ast.arg
Names = Mapping[str, tuple[Definition, ...]]
"""What each name may hold at one point; `x + y` stands for what `x += y` assigns."""


class Definitions:
    """The uses of names in one body, each with what may have been assigned to it before.

    Both branches of an `if` count, and loops may run any number of times; a branch that returns ends there.
    """

    def __init__(self, body: Sequence[ast.stmt], parameters: Sequence[ast.arg]) -> None:
        self.reached: dict[ast.Name, tuple[Definition, ...]] = {}
        """Each use of a name, with what it may hold."""
        self.augmented: dict[ast.AugAssign, ast.BinOp] = {}
        """Each `x += y` as `x + y`."""
        self._used: dict[ast.AST, list[ast.Name]] = {}
        self._elements: dict[tuple[ast.expr, object], ast.expr] = {}
        self._run(body, {parameter.arg: (parameter,) for parameter in parameters})

    def _run(self, body: Sequence[ast.stmt], names: Names) -> Names | None:
        """The names after the statements; None where they never end."""
        for statement in body:
            after = self._step(statement, names)
            if after is None:
                return None
            names = after
        return names

    def _step(self, statement: ast.stmt, names: Names) -> Names | None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                self._use(statement, names)
                return self._assign([(target, value) for target in targets], names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._use(statement, names)
                return self._assign([(target, value)], names)
            case ast.AugAssign(target=target):
                added = self._sum_of(statement)
                self._use(added, names)
                return self._assign([(target, added)], names)
            case ast.If(test=test, body=body, orelse=orelse):
                self._use(test, names)
                return _either(self._run(body, names), self._run(orelse, names))
            case ast.For(target=target, iter=source, body=body):
                self._use(source, names)
                return self._loop(body, names, [(target, source)])
            case ast.While(test=test, body=body):
                self._use(test, names)
                names = self._loop(body, names, [])
                self._use(test, names)
                return names
            case ast.With(body=body):
                return self._run(body, names)
            case ast.Return():
                self._use(statement, names)
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return names
        self._use(statement, names)
        return names

    def _loop(
        self, body: Sequence[ast.stmt], names: Names, targets: list[tuple[ast.expr, ast.expr]]
    ) -> Names:
        for _ in range(2):
            names = _either(names, self._run(body, self._assign(targets, names))) or names
        return names

    def _use(self, node: ast.AST, names: Names) -> None:
        if node not in self._used:
            self._used[node] = [
                n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
            ]
        for used in self._used[node]:
            self.reached[used] = names.get(used.id, ())

    def _sum_of(self, statement: ast.AugAssign) -> ast.BinOp:
        if statement not in self.augmented:
            before: ast.expr = statement.target
            if isinstance(before, ast.Name):
                before = ast.copy_location(ast.Name(before.id, ast.Load()), before)
            added = ast.BinOp(before, statement.op, statement.value)
            self.augmented[statement] = ast.copy_location(added, statement)
        return self.augmented[statement]

    def _assign(self, pairs: list[tuple[ast.expr, ast.expr]], names: Names) -> Names:
        held = [held for target, value in pairs for held in self._bind(target, value)]
        return {**names, **{name: (value,) for name, value in held}}

    def _bind(self, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """Each name of a target with its own element of a tuple, or with `value[index]`."""
        match target, value:
            case ast.Name(id=name), _:
                yield name, value
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                for index, one in enumerate(targets):
                    part = parts[index] if len(parts) == len(targets) else self._element(value, index)
                    yield from self._bind(one, part)

    def _element(self, value: ast.expr, index: int) -> ast.expr:
        if (value, index) not in self._elements:
            element = ast.Subscript(value, ast.Constant(index), ast.Load())
            self._elements[value, index] = ast.copy_location(element, value)
        return self._elements[value, index]


def _either(one: Names | None, other: Names | None) -> Names | None:
    """What holds where the one or the other ran."""
    if one is None or other is None:
        return other if one is None else one
    merged = dict(one)
    for name, held in other.items():
        before = one.get(name, held)
        merged[name] = held if before is held else tuple(dict.fromkeys((*before, *held)))
    return merged
