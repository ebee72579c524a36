"""What a value may be made from, in one function's body.

A use of a name may hold what every assignment that reaches it gives. Both branches of an `if` count, and
loops may run any number of times; a branch that returns ends there.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytorch_to_triton.triton_api.name_scope import NameScope, children, own_nodes, parameters_of

Stop = Callable[[ast.AST], bool]
Definition = ast.expr | ast.arg
"""What a name may hold; `x + y` stands for what `x += y` assigns, `t[0]` for what `a, b = t` does."""
Names = Mapping[str, tuple[Definition, ...]]
"""What each name may hold at one point."""


def nowhere(_: ast.AST) -> bool:
    """Stops at nothing."""
    return False


@dataclass(frozen=True, eq=False)
class Flow:
    """The body of one function: what stands around each node, and what its values are made from."""

    body: Sequence[ast.stmt]
    scope: NameScope

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the body, in source order."""
        return tuple(own_nodes(self.body))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The node around each node of the body."""
        return {child: node for top in self.body for node in ast.walk(top) for child in children(node)}

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

    def definitions(self, name: ast.Name) -> tuple[Definition, ...]:
        """What the name may hold where it stands; empty where nothing in the body says."""
        return self._walk.reached.get(name, ())

    def starts(self, name: ast.Name) -> tuple[Definition, ...]:
        """What the name may hold before it is moved on, as by `ptrs += BLOCK` in a loop."""
        held = self.definitions(name)
        return tuple(one for one in held if not _moves(name.id, one)) or held[:1]

    def feeds(self, name: str) -> tuple[ast.expr, ...]:
        """Every expression that the body assigns to a name, in source order; empty for parameters alone."""
        return tuple(self._walk.assigned.get(name, ()))

    def resolved(self, value: ast.expr) -> ast.expr:
        """The expression that a name certainly stands for; else the value itself."""
        seen: set[ast.AST] = set()
        while isinstance(value, ast.Name) and value not in seen:
            seen.add(value)
            match self.definitions(value):
                case (ast.expr() as only,):
                    value = only
                case _:
                    break
        return value

    def origins(self, *values: ast.AST, stop: Stop = nowhere) -> frozenset[ast.AST]:
        """All nodes that the values may be made from, themselves included, and the parameters (ast.arg).

        Nodes where `stop` is true are among them, but not what these are made from.
        """
        reached: set[ast.AST] = set()
        ahead = [*values]
        while ahead:
            node = ahead.pop()
            if node in reached:
                continue
            reached.add(node)
            if not stop(node):
                ahead += self.definitions(node) if isinstance(node, ast.Name) else children(node)
        return frozenset(reached)

    def parameters_in(self, *values: ast.AST, stop: Stop = nowhere) -> frozenset[str]:
        """The parameters that the values may be made from."""
        return frozenset(node.arg for node in self.origins(*values, stop=stop) if isinstance(node, ast.arg))

    def names(self, *values: ast.AST) -> frozenset[str]:
        """The names among the origins of the values."""
        return frozenset(node.id for node in self.origins(*values) if isinstance(node, ast.Name))

    @cached_property
    def _walk(self) -> "_Walk":
        bindings = (binding.node for bound in self.scope.bindings.values() for binding in bound)
        return _Walk(self.body, [node for node in bindings if isinstance(node, ast.arg)])


class _Walk:
    """One walk through a body, which notes what reaches each use of a name."""

    def __init__(self, body: Sequence[ast.stmt], parameters: Sequence[ast.arg]) -> None:
        self.reached: dict[ast.Name, tuple[Definition, ...]] = {}
        self.augmented: dict[ast.AugAssign, ast.BinOp] = {}
        """Each `x += y` as `x + y`."""
        self.assigned: defaultdict[str, dict[ast.expr, None]] = defaultdict(dict)
        self._used: dict[ast.AST, tuple[list[ast.Name], list[ast.NamedExpr]]] = {}
        self._elements: dict[tuple[ast.expr, int], ast.expr] = {}
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
                return self._assign([(target, value) for target in targets], self._use(statement, names))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assign([(target, value)], self._use(statement, names))
            case ast.AugAssign(target=target):
                added = self._sum_of(statement)
                return self._assign([(target, added)], self._use(added, names))
            case ast.If(test=test, body=body, orelse=orelse):
                names = self._use(test, names)
                return _either(self._run(body, names), self._run(orelse, names))
            case ast.For(target=target, iter=source) | ast.AsyncFor(target=target, iter=source):
                names = self._loop(statement, self._use(source, names), [(target, source)])
                return self._run(statement.orelse, names)
            case ast.While(test=test):
                names = self._loop(statement, self._use(test, names), [])
                return self._run(statement.orelse, self._use(test, names))
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    names = self._use(item.context_expr, names)
                held = [(one.optional_vars, one.context_expr) for one in items if one.optional_vars]
                return self._run(body, self._assign(held, names))
            case ast.Try() | ast.TryStar():
                return self._try(statement, names)
            case ast.Match(subject=subject, cases=cases):
                names = self._use(subject, names)
                after: Names | None = names
                for case in cases:
                    after = _either(after, self._run(case.body, names))
                return after
            case ast.Return() | ast.Raise():
                self._use(statement, names)
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                # What it reads is what the names hold here, but for names of its own.
                names_within = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
                own = {name.id for name in names_within if isinstance(name.ctx, ast.Store)}
                if not isinstance(statement, ast.ClassDef):
                    own |= {parameter.arg for parameter in parameters_of(statement)}
                self._use(statement, {name: held for name, held in names.items() if name not in own})
                return {name: held for name, held in names.items() if name != statement.name}
        return self._use(statement, names)

    def _loop(
        self,
        loop: ast.For | ast.AsyncFor | ast.While,
        names: Names,
        targets: list[tuple[ast.expr, ast.expr]],
    ) -> Names:
        for _ in range(2):
            names = _either(names, self._run(loop.body, self._assign(targets, names))) or names
        return names

    def _try(self, statement: ast.Try | ast.TryStar, names: Names) -> Names | None:
        """Handlers may begin after any statement of the body."""
        failed, after = names, self._run((), names)
        for inner in statement.body:
            after = None if after is None else self._step(inner, after)
            failed = _either(failed, after) or failed
        after = None if after is None else self._run(statement.orelse, after)
        for handler in statement.handlers:
            after = _either(after, self._run(handler.body, failed))
        done = self._run(statement.finalbody, after or failed)
        return None if after is None else done

    def _use(self, node: ast.AST, names: Names) -> Names:
        """The names after an expression, which may assign some by `:=`."""
        if node not in self._used:
            inner = [*ast.walk(node)]
            loads = [n for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
            self._used[node] = loads, [n for n in inner if isinstance(n, ast.NamedExpr)]
        loads, assigned = self._used[node]
        for used in loads:
            self.reached[used] = names.get(used.id, ())
        return self._assign([(one.target, one.value) for one in assigned], names) if assigned else names

    def _sum_of(self, statement: ast.AugAssign) -> ast.BinOp:
        if statement not in self.augmented:
            before: ast.expr = statement.target
            if isinstance(before, ast.Name):
                before = ast.copy_location(ast.Name(before.id, ast.Load()), before)
            added = ast.BinOp(before, statement.op, statement.value)
            self.augmented[statement] = ast.copy_location(added, statement)
        return self.augmented[statement]

    def _assign(self, pairs: Sequence[tuple[ast.expr, ast.expr]], names: Names) -> Names:
        held = {name: value for target, given in pairs for name, value in self._bind(target, given)}
        for name, value in held.items():
            self.assigned[name][value] = None
        return {**names, **{name: (value,) for name, value in held.items()}}

    def _bind(self, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """Each name of a target with its own element of a tuple, or with `value[index]`."""
        match target, value:
            case ast.Name(id=name), _:
                yield name, value
            case ast.Starred(value=ast.Name(id=name)), _:
                yield name, value
            case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), _):
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                stars = [at for at, one in enumerate(targets) if isinstance(one, ast.Starred)]
                is_whole = len(parts) == len(targets) and not stars
                for index, one in enumerate(targets):
                    from_end = index - len(targets) if stars and index > stars[0] else index
                    part = parts[index] if is_whole else self._element(value, from_end)
                    yield from self._bind(one, part)

    def _element(self, value: ast.expr, index: int) -> ast.expr:
        if (value, index) not in self._elements:
            element = ast.Subscript(value, ast.Constant(index), ast.Load())
            self._elements[value, index] = ast.copy_location(element, value)
        return self._elements[value, index]


def _moves(name: str, value: ast.AST) -> bool:
    """`name + ...`"""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        value = value.left
    return isinstance(value, ast.Name) and value.id == name


def _either(one: Names | None, other: Names | None) -> Names | None:
    """What holds where the one or the other ran."""
    if one is None or other is None:
        return other if one is None else one
    merged = dict(one)
    for name, held in other.items():
        before = one.get(name, held)
        merged[name] = held if before is held else tuple(dict.fromkeys((*before, *held)))
    return merged
