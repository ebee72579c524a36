"""Check that every name and argument of Triton in some source exists in the installed Triton.

Only what is certain is reported: names that imports lead to without doubt, and
methods of what certainly is a tensor. What a file guards is left out (guarded_usage.py).
"""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.triton_api.confusions import KEYWORDS, NAMES
from pytorch_to_triton.triton_api.fixes import elsewhere, keyword_suggestion, name_suggestion, spelling_of
from pytorch_to_triton.triton_api.guarded_usage import GuardedUsage, guarded_usage
from pytorch_to_triton.triton_api.history import History
from pytorch_to_triton.triton_api.name_scope import NameScope, function_scope, module_scope, own_nodes
from pytorch_to_triton.triton_api.surface import DESCRIPTOR, TENSOR, PublicName, Surface

Fault = Literal["unknown", "removed", "deprecated", "keyword", "positional"]
"""unknown: no such name. removed: the name only raises. deprecated: it warns. keyword: the function takes
none of that name. positional: more arguments than parameters."""

_TENSORS = frozenset(
    f"triton.language.{name}"
    for name in (
        "load",
        "arange",
        "zeros",
        "full",
        "program_id",
        "num_programs",
        "dot",
        "where",
        "exp",
        "log",
    )
)
"""Functions that return a tl.tensor whatever they are given."""
_STAYS_TENSOR = frozenset({"to", "reshape", "trans", "permute", "exp", "log", "sqrt"})
"""Methods of a tl.tensor that return another."""

Place = ast.expr | ast.stmt | ast.alias | ast.keyword


@dataclass(frozen=True, eq=False)
class Misuse:
    """One wrong use of Triton's names, at a node of the syntax tree."""

    fault: Fault
    name: str
    """The dotted path: `triton.language.relu`; with a keyword, `triton.language.sum(mask=)`."""
    at: Place
    message: str
    """What is wrong."""
    suggestion: str
    """What to write."""
    versions: tuple[str, ...] = ()
    """The known releases of Triton that have it; empty where none has."""

    @property
    def line(self) -> int:
        """From 1."""
        return self.at.lineno


def check(source: str, surface: Surface, history: History) -> tuple[Misuse, ...]:
    """All wrong uses of Triton's names in a file's text, by place. Raises BadInput where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadInput(f"This is not Python source: {error}.", "Give the text of a whole file.") from error
    return misuses(tree, surface, history)


def misuses(tree: ast.Module, surface: Surface, history: History) -> tuple[Misuse, ...]:
    """All wrong uses of Triton's names in a file, by place."""
    reported = _Reader(surface, history, guarded_usage(tree)).block(tree.body, module_scope(tree))
    return tuple(sorted(reported, key=lambda misuse: (misuse.at.lineno, misuse.at.col_offset)))


@dataclass(frozen=True)
class _Reader:
    """Walks through a file, scope by scope."""

    surface: Surface
    history: History
    guarded: GuardedUsage

    def block(self, body: list[ast.stmt], scope: NameScope) -> Iterator[Misuse]:
        """The wrong uses in a module's, function's or class's statements."""
        for node in own_nodes(body):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield from self._expressions([*node.decorator_list, node.args, node.returns], scope)
                    yield from self.block(node.body, function_scope(node, scope))
                case ast.ClassDef(bases=bases, keywords=keywords, decorator_list=decorators):
                    yield from self._expressions([*decorators, *bases, *keywords], scope)
                    yield from self.block(node.body, scope)
                case _:
                    yield from self._node(node, scope)

    def _expressions(self, parts: list[ast.AST | None], scope: NameScope) -> Iterator[Misuse]:
        for part in parts:
            for node in ast.walk(part) if part else ():
                yield from self._node(node, scope)

    def _node(self, node: ast.AST, scope: NameScope) -> Iterator[Misuse]:
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield from self._import(name, "", name.name)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for name in names:
                    yield from self._import(name, module, f"{module}.{name.name}")
            case ast.Attribute(ctx=ast.Load()) if path := _path(node, scope):
                yield from self._name(node, path)
            case ast.Call(func=function) if path := _path(function, scope):
                yield from self._arguments(node, path)

    def _import(self, alias: ast.alias, module: str, whole: str) -> Iterator[Misuse]:
        """The first part of an imported path that is not there."""
        parts = whole.split(".")
        for upto in range(2, len(parts) + 1):
            path = ".".join(parts[:upto])
            reported = [*self._name(alias, path)] if parts[upto - 1] != "*" else []
            if reported:
                yield from reported
                return

    def _name(self, node: ast.Attribute | ast.alias, path: str) -> Iterator[Misuse]:
        """What is wrong with a name itself."""
        owner, _, name = path.rpartition(".")
        if self.guarded.covers(node, name):
            return
        entry = self.surface.find(path)
        if entry is None and (path in NAMES or self._is_missing(owner, name)):
            yield self._misuse("unknown", path, node)
        elif entry is not None and entry.standing != "current":
            yield self._misuse(entry.standing, path, node)

    def _is_missing(self, owner: str, name: str) -> bool:
        """Whether a module or class certainly has no such name; private ones are promised to nobody."""
        return self.surface.complete and self.surface.lists(owner) and not name.startswith("_")

    def _misuse(self, fault: Fault, path: str, node: ast.Attribute | ast.alias) -> Misuse:
        versions = self.history.having(path)
        others = elsewhere(versions, "has", "have")
        where = f" in Triton {self.surface.version}" if path.startswith("triton.") else ""
        message = {
            "unknown": f"There is no {spelling_of(path)}{where}{others}.",
            "removed": f"{spelling_of(path)} was removed{where}: every call is refused{others}.",
            "deprecated": f"{spelling_of(path)} is deprecated{where}: every call warns.",
        }[fault]
        return Misuse(fault, path, node, message, name_suggestion(path, self.surface), versions)

    def _arguments(self, call: ast.Call, path: str) -> Iterator[Misuse]:
        """What is wrong with the arguments of a call of something of Triton's."""
        entry = self.surface.find(path)
        if entry is None or entry.parameters is None or entry.standing == "removed":
            return
        own = self.surface.canonical[path]
        kinds = {parameter.kind for parameter in entry.parameters}
        if "var_keyword" not in kinds:
            yield from self._keywords(call, own, entry)
        if "var_positional" not in kinds:
            yield from self._positions(call, own, entry)

    def _keywords(self, call: ast.Call, path: str, entry: PublicName) -> Iterator[Misuse]:
        for keyword in call.keywords:
            name = keyword.arg
            if (
                name is None
                or name in entry.keywords
                or name.startswith("_")
                or self.guarded.covers(keyword, name)
            ):
                continue
            if not self.surface.complete and name not in KEYWORDS.get(path, {}):
                continue
            versions = self.history.having(path, name)
            where = f" in Triton {self.surface.version}" if versions else ""
            others = elsewhere(versions, "takes", "take")
            message = f"{spelling_of(path)} takes no keyword `{name}`{where}{others}."
            suggestion = keyword_suggestion(path, name, entry)
            yield Misuse("keyword", f"{path}({name}=)", keyword, message, suggestion, versions)

    def _positions(self, call: ast.Call, path: str, entry: PublicName) -> Iterator[Misuse]:
        allowed = [p for p in entry.parameters or () if p.kind.startswith("positional")]
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        given = len(call.args)
        if starred or given <= len(allowed) or not self.surface.complete or self.guarded.covers(call, ""):
            return
        most = f"{len(allowed)} positional argument{'' if len(allowed) == 1 else 's'}"
        by_name = [p.name for p in entry.parameters or () if p.kind == "keyword_only"]
        suggestion = f"Its positional parameters are {', '.join(p.name for p in allowed) or 'none'}."
        if by_name:
            suggestion += f" Give {', '.join(by_name)} by name."
        message = f"{spelling_of(path)} takes at most {most}; {given} are given."
        yield Misuse("positional", path, call.args[len(allowed)], message, suggestion)


def _path(node: ast.AST, scope: NameScope, followed: frozenset[str] = frozenset()) -> str | None:
    """The dotted path of what an expression names, through imports or as the member of a tensor."""
    if path := scope.path(node):
        return path
    if isinstance(node, ast.Attribute) and (owner := _class_of(node.value, scope, followed)):
        return f"{owner}.{node.attr}"
    return None


def _class_of(node: ast.AST, scope: NameScope, followed: frozenset[str]) -> str | None:
    """The class of what certainly is a tensor or a tensor descriptor."""
    match node:
        case ast.Call(func=function):
            path = _path(function, scope, followed) or ""
            owner, _, method = path.rpartition(".")
            if path in _TENSORS or (owner == TENSOR and method in _STAYS_TENSOR):
                return TENSOR
            return DESCRIPTOR if path == "triton.language.make_tensor_descriptor" else None
        case ast.Name(id=name) if name not in followed and scope.holder(name) is scope:
            # Only names of the same function: others may be given anything before it runs.
            binding = scope.find(name)
            if binding and binding.value:
                return _class_of(binding.value, scope, followed | {name})
    return None
