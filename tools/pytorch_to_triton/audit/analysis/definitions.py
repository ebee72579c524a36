"""Which assignments reach each use of a name in a function's body."""

import ast
from collections.abc import Iterator, Mapping, Sequence

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
