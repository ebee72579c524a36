"""What a name means where it stands: which import, definition or assignment binds it."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
"""What opens a scope of its own."""


@dataclass(frozen=True, eq=False)
class Binding:
    """One place that gives a name its meaning."""

    node: ast.AST
    path: str | None = None
    """The dotted path that an import gives the name."""
    value: ast.expr | None = None
    """What a plain assignment gives the name."""


@dataclass(frozen=True, eq=False)
class NameScope:
    """The names of a module or a function, and the scope around it."""

    bindings: Mapping[str, tuple[Binding, ...]]
    parent: "NameScope | None" = None

    def find(self, name: str) -> Binding | None:
        """What binds the name, in the innermost scope that has it.

        None where nothing does, or several places do and may differ. `tl = None`, as where an import may
        fail, does not count beside that import.
        """
        scope = self.holder(name)
        if scope is None:
            return None
        bindings = [b for b in scope.bindings[name] if not _is_none(b.value)] or scope.bindings[name]
        first = bindings[0]
        same = all(first.path is not None and other.path == first.path for other in bindings[1:])
        return first if same else None

    def holder(self, name: str) -> "NameScope | None":
        """The innermost scope that binds the name."""
        if name in self.bindings:
            return self
        return self.parent.holder(name) if self.parent else None

    def path(self, node: ast.AST) -> str | None:
        """The dotted path of a name or attribute: `triton.language.load` for `tl.load`; None for others.

        A name that is assigned another, `tlang = tl`, means the same.
        """
        return self._path(node, frozenset())

    def _path(self, node: ast.AST, followed: frozenset[Binding]) -> str | None:
        match node:
            case ast.Attribute(value=owner, attr=attribute):
                path = self._path(owner, followed)
                return f"{path}.{attribute}" if path else None
            case ast.Name(id=name) if (holder := self.holder(name)) and (binding := holder.find(name)):
                if binding.path is None and binding.value is not None and binding not in followed:
                    return holder._path(binding.value, followed | {binding})
                return binding.path
        return None


def module_scope(tree: ast.Module) -> NameScope:
    """The scope of a file."""
    return NameScope(_bindings(tree.body))


def function_scope(function: ast.FunctionDef | ast.AsyncFunctionDef, parent: NameScope) -> NameScope:
    """The scope of a function's body."""
    bindings = dict(_bindings(function.body))
    for parameter in parameters_of(function):
        bindings[parameter.arg] = (Binding(parameter), *bindings.get(parameter.arg, ()))
    return NameScope(bindings, parent)


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """All parameters, in order."""
    given = function.args
    stars = [star for star in (given.vararg, given.kwarg) if star]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars]


def defaults_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Mapping[str, ast.expr]:
    """The defaults of the parameters that have one."""
    given = function.args
    by_place = zip(reversed([*given.posonlyargs, *given.args]), reversed(given.defaults), strict=False)
    by_name = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {one.arg: value for one, value in (*by_place, *by_name) if value}


def own_nodes(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes in source order; a nested function or class is one node, what is in it is left out."""
    return chain.from_iterable(map(_nodes_of, body))


def children(node: ast.AST) -> list[ast.AST]:
    """What ast.iter_child_nodes gives, in less than half the time."""
    nodes: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            nodes.append(value)
        elif isinstance(value, list):
            nodes += [one for one in value if isinstance(one, ast.AST)]
    return nodes


@lru_cache(maxsize=20_000)
def _nodes_of(statement: ast.stmt) -> tuple[ast.AST, ...]:
    """Kept, since every rule asks for the nodes of the same functions."""
    nodes: list[ast.AST] = []
    ahead: list[ast.AST] = [statement]
    while ahead:
        node = ahead.pop()
        nodes.append(node)
        if not isinstance(node, Definition):
            ahead += reversed(children(node))
    return tuple(nodes)


def _bindings(body: Iterable[ast.stmt]) -> Mapping[str, tuple[Binding, ...]]:
    by_name: dict[str, list[Binding]] = defaultdict(list)
    values: dict[ast.Name, ast.expr] = {}
    for node in own_nodes(body):
        match node:
            case ast.Assign(targets=targets, value=value):
                values |= {target: value for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as annotated):
                values[target] = annotated
        for name, path in _bound_by(node):
            assigned = values.get(node) if isinstance(node, ast.Name) else None
            by_name[name].append(Binding(node, path, assigned))
    return {name: tuple(bindings) for name, bindings in by_name.items()}


def _bound_by(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Each name that this node itself binds, with the path that an import gives it."""
    match node:
        case ast.Import(names=names):
            for name in names:
                yield (name.asname, name.name) if name.asname else (name.name.split(".")[0],) * 2
        case ast.ImportFrom(module=module, names=names, level=level):
            for name in names:
                origin = "." * level + (module or "")
                yield name.asname or name.name, f"{origin}.{name.name}"
        case ast.Name(id=identifier, ctx=ast.Store() | ast.Del()) | ast.arg(arg=identifier):
            yield identifier, None
        case ast.FunctionDef(name=identifier) | ast.AsyncFunctionDef(name=identifier):
            yield identifier, None
        case ast.ClassDef(name=identifier) | ast.ExceptHandler(name=str(identifier)):
            yield identifier, None
        case ast.Global(names=identifiers) | ast.Nonlocal(names=identifiers):
            for identifier in identifiers:
                yield identifier, None


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
